package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/fault"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Program is an operator that a lab can run: a bundled one in this process, or any other in a process of its own.
type Program interface {
	// Name returns the operator's name, which is also the user agent of its requests at the API server.
	Name() string
	// Complete returns a spec with its defaults filled in, or why the operator cannot run with it.
	Complete(spec v1alpha1.OperatorSpec) (v1alpha1.OperatorSpec, error)
	// Taps returns the taps of all runs of one epoch.
	Taps(journal *trace.Journal) Taps
	// Start begins a run. With an error it may have begun all the same; then the run is returned too, and must be ended.
	Start(ctx context.Context, o RunOptions) (Run, error)
}

// RunOptions are what a run of a [Program] gets from the lab.
type RunOptions struct {
	// Cluster is the cluster that it works on.
	Cluster operatorhost.Cluster
	// Spec is complete.
	Spec v1alpha1.OperatorSpec
	// Journal is the journal of the epoch.
	Journal *trace.Journal
	// Taps are what [Program.Taps] returned for it.
	Taps Taps
	// Known remembers what the next run need not find out.
	Known *operatorhost.Known
	// Dir is a directory for its files, which its next run finds as they were left; it need not exist. Empty: there is none.
	Dir string
	// Private says that the lab shares its cluster with other labs that run the same operator.
	Private bool
	// Injector injects the faults of this run. When it dies, the run has crashed.
	Injector *fault.Injector
}

// Run is one run of an operator. *[operatorhost.Host] is one.
type Run interface {
	// AwaitServing returns when the operator's workers take keys, or with an error when it ended before.
	AwaitServing(ctx context.Context) error
	// Done returns a channel that is closed when the run has ended by itself or by End.
	Done() <-chan struct{}
	// Err returns why it ended by itself; nil while it runs.
	Err() error
	// End ends the run and returns when it has ended, or with an error when it did not in time.
	End() error
}

// Waiting is implemented by a [Program] that somebody else starts.
type Waiting interface {
	// Waits returns the message of its status until it serves.
	Waits() string
}

// Exit is implemented by the error of a run that ended by itself and is to be followed by another one, as Kubernetes does
// with a container that ends.
type Exit interface {
	error
	// RestartAfter returns the time until the next run; 0: somebody else starts it, as the kubelet does with a program in a pod,
	// also if it has never served.
	RestartAfter() time.Duration
}

// Taps observe and control the loops of one operator: *[taps.Taps] in this process, or those of an operator in a process
// of its own.
type Taps interface {
	// Pause holds workers before they take a key, until Resume.
	Pause()
	Resume()
	Paused() bool
	// Step lets one worker take one key, and pauses.
	Step()
	// StepBy is Step, recorded as the action of an actor.
	StepBy(actor string)
	// StepCall goes on to the next write and holds it.
	StepCall()
	// HoldWrites holds each write before it is sent, until Release lets one go.
	HoldWrites()
	Release()
	// Close lets go of everything that is held, for good.
	Close()
	// Probe puts a key into a controller's queue, and reports whether there is such a controller.
	Probe(controller string, key trace.Key) bool
	// Controllers returns the names of the controllers, sorted.
	Controllers() []string
	// Metrics returns the metrics of the operator in the text format of Prometheus, or why there are none now.
	Metrics() ([]byte, error)
	// AwaitServing returns when the workers take keys; without taps in the program, when it has made its first request.
	AwaitServing(ctx context.Context) error
	// ReconcileOf returns the reconcile that a context belongs to.
	ReconcileOf(ctx context.Context) trace.ReconcileRef
}

// Bundled returns an operator of this binary as a Program, for [Options.Programs]. Its CRDs are installed already, if it has
// any.
func Bundled(op operators.Operator) Program {
	return bundled{op: op, install: func(context.Context, string, operators.Instance) error { return nil }}
}

// bundled is a Program of this binary.
type bundled struct {
	op operators.Operator
	// install installs the CRDs of an instance.
	install func(ctx context.Context, name string, instance operators.Instance) error
}

func (b bundled) Name() string { return b.op.Name }

func (b bundled) Complete(spec v1alpha1.OperatorSpec) (v1alpha1.OperatorSpec, error) {
	instance, err := InstanceOf(b.op, spec)
	if err != nil {
		return spec, err
	}
	spec.Variant = instance.Variant()
	return spec, nil
}

func (b bundled) Taps(journal *trace.Journal) Taps {
	return taps.New(journal, taps.Options{Operator: b.op.Name})
}

func (b bundled) Start(ctx context.Context, o RunOptions) (Run, error) {
	instance, err := InstanceOf(b.op, o.Spec)
	if err != nil {
		return nil, err
	}
	if err := b.install(ctx, b.op.Name, instance); err != nil {
		return nil, err
	}
	host, err := operatorhost.Start(ctx, o.Cluster, b.op, instance, operatorhost.Options{
		Taps: o.Taps.(*taps.Taps), Transport: o.Injector.Wrap, Known: o.Known, Dir: o.Dir,
	})
	if host == nil {
		return nil, err
	}
	return host, err
}

// programs returns Options.Programs and those that were adopted.
func (l *Lab) programs() []Program {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Concat(l.options.Programs, l.adopted)
}

// InPods returns the names in Options.InPods.
func (l *Lab) InPods() []string { return l.options.InPods }

// Adopt loads an operator that was not named when the lab was opened, if it is not loaded in this epoch. It returns at once.
func (l *Lab) Adopt(p Program) error {
	known, found := l.program(p.Name())
	switch {
	case found && known != p:
		return fmt.Errorf("the lab has another operator %s", p.Name())
	case l.Taps(p.Name()) != nil:
		return nil
	}
	l.mu.Lock()
	if !found {
		l.adopted = append(l.adopted, p)
	}
	l.epoch.others.Skip(p.Name())
	l.mu.Unlock()
	return l.apply(p.Name(), v1alpha1.OperatorSpec{}, false)
}

// program returns the operator with a name: one of Options.Programs, or a bundled one.
func (l *Lab) program(name string) (Program, bool) {
	for _, p := range l.programs() {
		if p.Name() == name {
			return p, true
		}
	}
	op, found := operators.Find(name)
	return bundled{op, l.install}, found
}

// programNames returns the names of all operators that the lab can run, sorted.
func (l *Lab) programNames() []string {
	names := operators.Names()
	for _, p := range l.programs() {
		names = append(names, p.Name())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// InstanceOf returns an instance with the parameters of a spec.
func InstanceOf(op operators.Operator, spec v1alpha1.OperatorSpec) (operators.Instance, error) {
	instance := op.New()
	flags := pflag.NewFlagSet(op.Name, pflag.ContinueOnError)
	instance.Flags(flags)
	parameters := maps.Clone(spec.Parameters)
	if spec.Variant != "" {
		if parameters == nil {
			parameters = map[string]string{}
		}
		parameters["variant"] = spec.Variant
	}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if flags.Lookup(name) == nil {
			var known []string
			flags.VisitAll(func(f *pflag.Flag) {
				if f.Name != "variant" { // the variant is a field of its own
					known = append(known, f.Name)
				}
			})
			return nil, &sandbox.Problem{
				Err:  fmt.Errorf("operator %s has no parameter %q", op.Name, name),
				Hint: "its parameters are " + strings.Join(known, ", "),
			}
		}
		if err := flags.Set(name, parameters[name]); err != nil {
			return nil, &sandbox.Problem{
				Err: &parameterError{operator: op.Name, parameter: name, err: err}, Hint: "it is: " + flags.Lookup(name).Usage,
			}
		}
	}
	return instance, nil
}

// parameterError says that a parameter of an operator has a value that it cannot have.
type parameterError struct {
	operator, parameter string
	err                 error
}

func (e *parameterError) Error() string {
	return fmt.Sprintf("parameter %s of operator %s: %v", e.parameter, e.operator, e.err)
}

func (e *parameterError) Unwrap() error { return e.err }
