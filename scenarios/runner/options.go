package runner

import (
	"context"
	"errors"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// DefaultParallel is how many tests run at once unless the configuration says so. Tests wait more than they compute.
const DefaultParallel = 8

// Options say what to run, and where.
type Options struct {
	// Configuration is how tests are run, flags already merged in. Default: Chainsaw's.
	Configuration *format.Configuration
	// Tests in the order they are to be reported.
	Tests []*format.Loaded
	// Config is the cluster that tests work on that name no other. Default: there is none, and what needs one fails.
	Config *rest.Config
	// Kubeconfig is the file with that cluster as its current context: each script and command gets a copy of it of
	// its own, so that one cannot change it for the others. Default: one is made of Config.
	Kubeconfig string
	// Connection reaches that cluster instead of Config and Kubeconfig, and keeps what it has learned of it from one run to
	// the next. Default: each run learns it anew.
	Connection *Connection
	// Once has what is asserted looked at once: what is not so by then has failed. Default: it is waited for.
	Once bool
	// Kubectl is the program that get, describe, events, podLogs, wait and proxy run. If it is a path, its directory is
	// the first on the PATH of scripts and commands. Default: kubectl.
	Kubectl string
	// Environment has more variables for scripts and commands, as NAME=value.
	Environment []string
	// Values are what tests see as $values.
	Values map[string]any
	// Seed of the names of namespaces. Default: a random one, that the report tells.
	Seed int64
	// Name of the report.
	Name string
	// Sink is told how the run goes on. Default: nobody is.
	Sink report.Sink
	// Hooks are what the lab does around tests. Default: nothing.
	Hooks Hooks
	// PauseOnFailure is called before the clean-up of a test that failed. Default: there is no pause.
	PauseOnFailure func(ctx context.Context, t *report.Test)
	// Selected says of a test whether to run it; one that is not is left out of the report too. Default: all are.
	Selected func(t *report.Test) bool
}

// Hooks is what the lab does around tests. Several tests may call it at the same time.
type Hooks interface {
	// Begin is called before the namespace of a test is made, if the test is not skipped. Its error fails the test;
	// neither Settled nor Cleaned is then called.
	Begin(ctx context.Context, t *format.Test, r *report.Test) error
	// Object is asked before an object is written, asserted or read. An error fails the operation at once. One with a
	// method Hint() string gives the report its hint.
	Object(apiVersion, kind string) error
	// Settled is called when the steps are over, before the clean-up; ok says whether they passed.
	Settled(ctx context.Context, t *format.Test, r *report.Test, ok bool) []report.Finding
	// Cleaned is called after the clean-up, and before the namespace of the test is removed with all that is left in it; ok
	// says whether the steps and the clean-up passed.
	Cleaned(ctx context.Context, t *format.Test, r *report.Test, ok bool) []report.Finding
	// Explain says what is known of the loop that owns an object, line by line: for a failed assert.
	Explain(ctx context.Context, object *unstructured.Unstructured) []string
}

// Connection is a cluster as several runs reach it. Its methods and the runs may be used from any goroutine.
type Connection struct{ cluster *cluster }

// Connect returns a connection; nothing is asked of the cluster before a run does. The kubeconfig is the file that
// programs get a copy of; empty: one is made of the configuration.
func Connect(config *rest.Config, kubeconfig string) *Connection {
	return &Connection{&cluster{
		load: func() (*rest.Config, error) { return config, nil }, file: kubeconfig, allows: nothing{}.Object,
	}}
}

// nothing is the sink and the hooks of who has none.
type nothing struct{}

func (nothing) BeginRun(*report.Run)                                         {}
func (nothing) BeginTest(*report.Test)                                       {}
func (nothing) BeginStep(*report.Test, *report.Step)                         {}
func (nothing) BeginOperation(*report.Test, *report.Step, *report.Operation) {}
func (nothing) EndOperation(*report.Test, *report.Step, *report.Operation)   {}
func (nothing) EndStep(*report.Test, *report.Step)                           {}
func (nothing) EndTest(*report.Test)                                         {}
func (nothing) EndRun(*report.Run)                                           {}
func (nothing) Begin(context.Context, *format.Test, *report.Test) error      { return nil }
func (nothing) Object(string, string) error                                  { return nil }
func (nothing) Explain(context.Context, *unstructured.Unstructured) []string { return nil }
func (nothing) Settled(context.Context, *format.Test, *report.Test, bool) []report.Finding {
	return nil
}

func (nothing) Cleaned(context.Context, *format.Test, *report.Test, bool) []report.Finding {
	return nil
}

// complete fills in the defaults.
func (o *Options) complete() {
	if o.Configuration == nil {
		o.Configuration = format.DefaultConfiguration()
	}
	if o.Kubectl == "" {
		o.Kubectl = "kubectl"
	}
	if o.Sink == nil {
		o.Sink = nothing{}
	}
	if o.Hooks == nil {
		o.Hooks = nothing{}
	}
	for o.Seed == 0 {
		o.Seed = int64(rand.Uint32()) // short enough to be typed
	}
}

// Run runs the tests and returns what came of them. That some failed is no error: an error says that they could not be
// run, or that ctx ended before all were. Then the report has what was done until then, and what the tests had made is
// removed nevertheless, which may take a while.
func Run(ctx context.Context, o Options) (*report.Run, error) {
	o.complete()
	if err := context.Cause(ctx); err != nil {
		return nil, errors.Join(errInterrupted, err)
	}
	r := newRun(o)
	defer r.close()
	r.run(ctx)
	if err := context.Cause(ctx); err != nil {
		return r.report, errors.Join(errInterrupted, err)
	}
	return r.report, nil
}

var errInterrupted = errors.New("interrupted")
