package runner

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// DefaultParallel is the default number of tests that run concurrently. Tests wait more than they compute.
const DefaultParallel = 8

// Options are the options of [Run].
type Options struct {
	// Configuration is the configuration of the run, with flags already merged in. Default: Chainsaw's.
	Configuration *format.Configuration
	// Tests are the tests in the order in which they are reported.
	Tests []*format.Loaded
	// Config is the config of the default cluster. Default: there is none, and operations that need one fail.
	Config *rest.Config
	// Kubeconfig is a file with that cluster as its current context. Each script and command gets its own copy, so that
	// one cannot change it for the others. Default: one is generated from Config.
	Kubeconfig string
	// Connection replaces Config and Kubeconfig. It keeps what it has learned of the cluster from one run to the next.
	// Default: each run learns it again.
	Connection *Connection
	// Once makes assertions fail that do not hold at the first look. Default: the runner waits for them.
	Once bool
	// GiveUp makes assertions fail as soon as nothing can change any more, as the annotation of a test does. Default: they wait for
	// the whole of their timeout.
	GiveUp bool
	// TimeoutScale multiplies every timeout, of the configuration and of the tests. Default: 1.
	TimeoutScale float64
	// Kubectl is the program for get, describe, events, podLogs, wait and proxy. If it is a path, its directory comes
	// first on the PATH of scripts and commands. Default: kubectl.
	Kubectl string
	// Environment holds additional variables for scripts and commands, as NAME=value.
	Environment []string
	// Values is the value of $values in tests.
	Values map[string]any
	// Seed is the seed of the names of namespaces. Default: a random one, which the report contains.
	Seed int64
	// Name is the name of the report.
	Name string
	// Sink receives the progress of the run. Default: none.
	Sink report.Sink
	// Hooks are called around tests. Default: none.
	Hooks Hooks
	// Meter begins to write to an etcd cluster, for tests that ask for it. Default: such tests fail.
	Meter func(ctx context.Context, cluster types.NamespacedName) Meter
	// PauseOnFailure is called before the clean-up of a test that failed. Default: there is no pause.
	PauseOnFailure func(ctx context.Context, t *report.Test)
	// Selected reports whether to run a test; a test that is not selected is not in the report either. Default: all are
	// selected.
	Selected func(t *report.Test) bool
}

// Hooks are called around tests by the runner, concurrently for several tests.
type Hooks interface {
	// Begin is called before the namespace of a test is created, unless the test is skipped. Its error fails the test;
	// then neither Settled nor Cleaned is called.
	Begin(ctx context.Context, t *format.Test, r *report.Test) error
	// Object is called before an object is written, asserted or read. An error fails the operation at once. If it has a
	// method Hint() string, that is the hint in the report.
	Object(apiVersion, kind string) error
	// Settled is called after the steps, before the clean-up; ok reports whether the steps passed.
	Settled(ctx context.Context, t *format.Test, r *report.Test, ok bool) []report.Finding
	// Cleaned is called after the clean-up, before the test's namespace is removed with its remaining content; ok
	// reports whether the steps and the clean-up passed.
	Cleaned(ctx context.Context, t *format.Test, r *report.Test, ok bool) []report.Finding
	// AtRest reports whether nothing can change by itself within a time. It is called for an assert that does not hold, in tests
	// that give up then.
	AtRest(ctx context.Context, t *format.Test, within time.Duration) bool
	// Explain returns what is known of the loop that owns an object, line by line. It is called for a failed assert.
	Explain(ctx context.Context, object *unstructured.Unstructured) []string
}

// Meter writes to a store all the time, and measures for how long no write is acknowledged.
type Meter interface {
	// Reset forgets what was measured so far.
	Reset()
	// Lap waits for a write that begins from now on to be acknowledged, and returns the longest time from one acknowledged write to the
	// next since the last Reset or Lap. A time that had begun before that counts in full.
	Lap(ctx context.Context) (time.Duration, error)
	// Stop ends the writes.
	Stop()
}

// Connection is a cluster that several runs share. It may be used by concurrent runs.
type Connection struct{ cluster *cluster }

// Connect returns a connection; the cluster is first contacted by a run. kubeconfig is the file that programs get a
// copy of; if empty, it is generated from the config.
func Connect(config *rest.Config, kubeconfig string) *Connection {
	return &Connection{&cluster{
		load: func() (*rest.Config, error) { return config, nil }, file: kubeconfig, allows: nothing{}.Object,
	}}
}

// nothing is the default hooks.
type nothing struct{}

// Begin does nothing.
func (nothing) Begin(context.Context, *format.Test, *report.Test) error { return nil }

// Object allows every kind.
func (nothing) Object(string, string) error { return nil }

// AtRest does not know.
func (nothing) AtRest(context.Context, *format.Test, time.Duration) bool { return false }

// Explain knows nothing.
func (nothing) Explain(context.Context, *unstructured.Unstructured) []string { return nil }

// Settled finds nothing.
func (nothing) Settled(context.Context, *format.Test, *report.Test, bool) []report.Finding {
	return nil
}

// Cleaned finds nothing.
func (nothing) Cleaned(context.Context, *format.Test, *report.Test, bool) []report.Finding {
	return nil
}

// complete sets the defaults.
func (o *Options) complete() {
	if o.Configuration == nil {
		o.Configuration = format.DefaultConfiguration()
	}
	if o.Kubectl == "" {
		o.Kubectl = "kubectl"
	}
	if o.Sink == nil {
		o.Sink = report.Nothing{}
	}
	if o.Hooks == nil {
		o.Hooks = nothing{}
	}
	for o.Seed == 0 {
		o.Seed = int64(rand.Uint32()) // short enough to type
	}
}

// Run runs the tests and returns the report. Failed tests are not an error: an error says that the tests could not be
// run, or that ctx ended before all were. Then the report covers what was done until then, and Run still removes what
// the tests had created, which may take a while.
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
