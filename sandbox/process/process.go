// Package process runs an operator of the user's in a process of its own. Its API server is a gate of the lab, so that
// faults, pauses and RBAC work as they do for the bundled operators, whatever language it is written in. A program that
// was built with the taps also tells over a socket what its loops do.
package process

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/guard"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/remote"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/sandbox/usage"
)

// Options are the options of [New].
type Options struct {
	// Name is the operator's name in the lab.
	Name string
	// Tapped reports that the program is built with the taps. Without them only its requests are seen.
	Tapped bool
	// Skip says which calls and watch events of a program without taps are not recorded. Default: all are.
	Skip func(*trace.Event) bool
	// Files is an existing private directory: the operator's kubeconfig and log are there.
	Files string
	// Prepare is called before each run. It may build the program and prepare the cluster, and returns what to start.
	Prepare func(ctx context.Context, cluster operatorhost.Cluster) (Command, error)
	// Begun is called in each run once the program was started, until the context ends or it returns. Its error ends the
	// run. Default: nothing is.
	Begun func(ctx context.Context, cluster operatorhost.Cluster) error
	// Line is called with the journal of each run of a program with taps, and what it returns with each line that the program
	// prints. Default: nobody is told, because the taps see what is logged.
	Line func(*trace.Journal) func(string)
}

// Command says how a run starts the program.
type Command struct {
	// Program is its path.
	Program string
	// Args are its arguments.
	Args []string
	// Dir is its working directory. Default: that of this process.
	Dir string
	// Env are variables in addition to those of this process.
	Env []string
	// ServiceAccount is the account, in Namespace, whose permissions it has. Default: it may do everything.
	ServiceAccount string
	// Namespace is where it would run in a cluster. Default: default.
	Namespace string
	// NoLeaderElection lets a program with taps work without leader election.
	NoLeaderElection bool
	// WebhookPort and WebhookCertDir are for the webhook server of a program with taps. Default: it is left as it is.
	WebhookPort    int
	WebhookCertDir string
	// pod is the program in a pod, which its node starts; then all of the above but Namespace is the pod's. nil: it is a process
	// of the lab's.
	pod *pod
}

// Operator is an operator in a process of its own.
type Operator struct {
	options Options
	guard   *guard.Guard
	// sockets makes a directory with a short path, as sockets need; the guard removes it.
	sockets func() (string, error)
	// running is the program of the newest run; nil before the first.
	running atomic.Pointer[guard.Group]
}

var _ lab.Program = (*Operator)(nil)

// mark is the variable by which the operator's processes are found.
const mark = "OPERATOR_LAB_OPERATOR_MARK"

// New returns an operator for a lab. Close it after the lab.
func New(o Options) *Operator {
	if o.Begun == nil {
		o.Begun = func(context.Context, operatorhost.Cluster) error { return nil }
	}
	sockets := sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "operator-lab-") })
	return &Operator{options: o, sockets: sockets, guard: guard.New(guard.Options{Mark: mark, Temp: sockets})}
}

// Close kills what is left of the operator's processes.
func (o *Operator) Close() { o.guard.Close() }

// Name returns the operator's name.
func (o *Operator) Name() string { return o.options.Name }

// Used returns what the program of the newest run and its children have used; false: it does not run, or the system does not tell.
func (o *Operator) Used() (usage.Used, bool) {
	group := o.running.Load()
	if group == nil {
		return usage.Used{}, false
	}
	all, err := usage.Look()
	if err != nil {
		return usage.Used{}, false
	}
	return all.OfGroup(group.ID())
}

// LogFile returns the path of the file with what the program printed in its last run.
func (o *Operator) LogFile() string { return filepath.Join(o.options.Files, "operator.log") }

// Complete refuses a variant and parameters: such a program has arguments.
func (o *Operator) Complete(spec v1alpha1.OperatorSpec) (v1alpha1.OperatorSpec, error) {
	given := slices.Sorted(maps.Keys(spec.Parameters))
	if spec.Variant != "" {
		given = append([]string{"variant"}, given...)
	}
	if len(given) == 0 {
		return spec, nil
	}
	return spec, &sandbox.Problem{
		Err:  fmt.Errorf("operator %s is not a bundled one and has no parameter %s", o.options.Name, strings.Join(given, ", ")),
		Hint: "give the program arguments after --",
	}
}

// Taps returns the taps of the operator's runs in a journal: those in the program, or a recorder at the gate.
func (o *Operator) Taps(journal *trace.Journal) lab.Taps {
	if o.options.Tapped {
		return remote.New(journal, o.options.Name)
	}
	return taps.New(journal, taps.Options{Operator: o.options.Name, Skip: o.options.Skip})
}

// Start begins a run.
func (o *Operator) Start(ctx context.Context, options lab.RunOptions) (lab.Run, error) {
	command, err := o.options.Prepare(ctx, options.Cluster)
	if err != nil {
		return nil, err
	}
	r := &run{operator: o, command: command, options: options, done: make(chan struct{})}
	r.linked, r.unlink = context.WithCancel(context.WithoutCancel(ctx))
	if err := r.start(); err != nil {
		return nil, err
	}
	return r, nil
}
