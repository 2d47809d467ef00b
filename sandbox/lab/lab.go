// Package lab runs operators in a sandbox: it starts them, injects faults, restarts them after a crash, and serves what
// it observes as the API operator-lab.dev.
package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/fault"
	"github.com/operator-lab/operator-lab/sandbox/labapi"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Options are the options of [Open].
type Options struct {
	// Cluster is the cluster that the operators run in.
	Cluster operatorhost.Cluster
	// Programs are operators in addition to the bundled ones. One with the name of a bundled one takes its place.
	Programs []Program
	// InPods are names of operators that may come with [Lab.Adopt]: faults can name them before. Others can come, too.
	InPods []string
	// Kill ends a program of the control plane. Default: such faults are refused.
	Kill func(program string) error
	// Machines are the nodes, for faults that happen there. Default: such faults are refused.
	Machines Machines
	// Journal is the journal of the first epoch. Default: a new one.
	Journal *trace.Journal
	// Private serves no API: the cluster is left as it is. Faults are armed with [Lab.Arm].
	Private bool
	// Unchanging says that nobody touches the definitions and permissions of the operators: they are looked at once.
	Unchanging bool
	// Dir is where bundled operators keep files, each in a directory of its own. Default: they keep none from one life to the next.
	Dir string
	// Installed maps an operator to the variant whose CRDs the cluster has.
	Installed map[string]string
	// Seed is the seed of faults without one of their own.
	Seed int64
	// Version is the version of the lab.
	Version string
}

// Lab runs operators in a sandbox. All methods may be called from any goroutine.
type Lab struct {
	options Options
	server  *labapi.Server
	known   operatorhost.Known

	mu        sync.Mutex
	epoch     *epoch
	installed map[string]string
	adopted   []Program
	changed   chan struct{}
}

// epoch is the time from one [Lab.Begin] to the next. It has a journal, operators and faults of its own.
type epoch struct {
	journal     *trace.Journal
	others      *operatorhost.Others
	faults      *fault.Faults
	loops       *loops
	cancel      context.CancelFunc
	ctx         context.Context
	follows     sync.WaitGroup
	supervisors map[string]*supervisor
}

// Open begins a first epoch and serves the lab's API in the cluster, unless it is private. It returns when the API is
// served.
func Open(ctx context.Context, o Options) (*Lab, error) {
	l := &Lab{options: o, installed: map[string]string{}, changed: make(chan struct{})}
	l.known.Unchanging = o.Unchanging
	maps.Copy(l.installed, o.Installed)
	journal := o.Journal
	if journal == nil {
		journal = l.NewJournal()
	}
	l.begin(context.WithoutCancel(ctx), journal)
	if o.Private {
		return l, nil
	}
	server, err := labapi.Start(ctx, o.Cluster.Config(), labapi.Options{Backend: (*backend)(l)})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("serve the lab's own API: %w", err), l.end())
	}
	l.server = server
	return l, nil
}

// NewJournal returns an empty journal for an epoch.
func (l *Lab) NewJournal() *trace.Journal {
	return trace.New(trace.Options{Product: l.options.Version})
}

// Begin ends the current epoch and begins another one without operators and faults; what happens from now on goes into
// the given journal.
func (l *Lab) Begin(ctx context.Context, journal *trace.Journal) error {
	err := l.end()
	if l.options.Machines != nil { // a fault may just have returned a lost node
		err = errors.Join(err, l.options.Machines.Await(ctx))
	}
	l.begin(context.WithoutCancel(ctx), journal)
	return err
}

func (l *Lab) begin(ctx context.Context, journal *trace.Journal) {
	r := &epoch{journal: journal, loops: newLoops(journal), supervisors: map[string]*supervisor{}}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.others = operatorhost.NewOthers(journal, append(l.programNames(), quietClients...)...)
	r.faults = fault.NewFaults(fault.FaultsOptions{
		Journal: journal, Seed: l.options.Seed, ReconcileOf: l.reconcileOf,
		Effects: &effects{lab: l, epoch: r, nodeEffects: nodeEffects{machines: l.options.Machines, lost: map[string]int{}}},
	})
	r.faults.Subscribe(func(string) { l.notify() })
	r.follows.Go(func() { l.follow(r) })
	l.mu.Lock()
	l.epoch = r
	l.mu.Unlock()
	l.notify()
}

// Person is the actor of what is done by hand, and the user agent of clients for that in this process: their calls are
// recorded already.
const Person = "you"

// quietClients are the names of clients whose calls are not taken from the audit log: the lab's own, which are not
// recorded, Person, and a demo.
var quietClients = []string{"operator-lab", Person, trace.Demo}

// end stops all operators of the epoch and disarms its faults.
func (l *Lab) end() error {
	l.mu.Lock()
	r := l.epoch
	l.mu.Unlock()
	if r == nil {
		return nil
	}
	r.faults.Close()
	var errs []error
	for _, sv := range l.supervisors() {
		errs = append(errs, sv.stop())
	}
	r.cancel()
	r.follows.Wait()
	return errors.Join(errs...)
}

// Close ends the epoch and stops serving the API.
func (l *Lab) Close(ctx context.Context) error {
	var errs []error
	if l.server != nil {
		errs = append(errs, l.server.Stop(ctx))
	}
	return errors.Join(append(errs, l.end())...)
}

// Load starts an operator, or changes its spec, and returns when it serves. One of Options.InPods is waited for.
func (l *Lab) Load(ctx context.Context, name string, spec v1alpha1.OperatorSpec) (Taps, error) {
	if slices.Contains(l.options.InPods, name) {
		if err := l.awaitProgram(ctx, name); err != nil {
			return nil, err
		}
	}
	if err := l.apply(name, spec, false); err != nil {
		return nil, err
	}
	sv := l.supervisor(name)
	return sv.taps, sv.awaitServing(ctx)
}

// find records in the journal what was there when the operators started and belongs to their objects, but is none that they
// read. It needs the audit log, which alone tells when one of them goes: in a cluster without it they would stay on the screen.
func (l *Lab) find(ctx context.Context) error {
	l.mu.Lock()
	others := l.epoch.others
	l.mu.Unlock()
	return others.Find(func(wanted func(schema.GroupKind) bool) ([]unstructured.Unstructured, error) {
		return sandbox.Objects(ctx, l.options.Cluster.Config(), wanted)
	})
}

// awaitProgram returns when there is an operator of a name: one of Options.Programs, or one that was adopted.
func (l *Lab) awaitProgram(ctx context.Context, name string) error {
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		if _, found := l.program(name); found {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Delivering reports whether a watch event is on its way to a controller of an operator; of programs it is not known.
func (l *Lab) Delivering(name string) bool {
	taps, tells := l.Taps(name).(interface{ Delivering() bool })
	return tells && taps.Delivering()
}

// Taps returns the taps of an operator of this epoch; nil if it is not loaded.
func (l *Lab) Taps(name string) Taps {
	if sv := l.supervisor(name); sv != nil {
		return sv.taps
	}
	return nil
}

// reconcileOf returns the reconcile that a call of an operator belongs to.
func (l *Lab) reconcileOf(ctx context.Context, operator string) trace.ReconcileRef {
	sv := l.supervisor(operator)
	if sv == nil {
		return trace.ReconcileRef{}
	}
	return sv.taps.ReconcileOf(ctx)
}

// Err returns why an operator failed; nil if it has not.
func (l *Lab) Err(name string) error {
	sv := l.supervisor(name)
	if sv == nil {
		return nil
	}
	sv.mu.Lock()
	defer sv.mu.Unlock()
	if sv.status.State != v1alpha1.OperatorFailed {
		return nil
	}
	return fmt.Errorf("operator %s: %w", name, sv.failure)
}

// Failed returns a channel that is closed when an operator has failed; nil if it is not loaded.
func (l *Lab) Failed(name string) <-chan struct{} {
	if sv := l.supervisor(name); sv != nil {
		return sv.failed
	}
	return nil
}

// Restart ends the run of an operator in order and begins another one; one that has failed is tried again. It returns at
// once, and does nothing if the operator is not loaded.
func (l *Lab) Restart(name string) {
	if sv := l.supervisor(name); sv != nil {
		sv.restart()
	}
}

// Stop ends all operators; the API goes on showing them.
func (l *Lab) Stop() error { return l.end() }

// Journal returns the journal of this epoch.
func (l *Lab) Journal() *trace.Journal {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch.journal
}

// Faults returns the faults of this epoch.
func (l *Lab) Faults() *fault.Faults {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch.faults
}

// Arm arms a fault as one who creates a Fault object does.
func (l *Lab) Arm(spec v1alpha1.FaultSpec) error {
	if wrong := (*backend)(l).ValidateFault(spec); len(wrong) > 0 {
		return wrong.ToAggregate()
	}
	return l.Faults().Arm("break-"+utilrand.String(5), spec)
}

// Audit takes a line of the API server's audit log; see [sandbox.Options].
func (l *Lab) Audit(line []byte) {
	l.mu.Lock()
	r := l.epoch
	l.mu.Unlock()
	r.others.Note(line)
}

// Exited records the death of a program; see [sandbox.Options].
func (l *Lab) Exited(e sandbox.Exit) {
	l.Journal().Append(trace.Event{
		Kind: trace.KindNote, Actor: e.Program,
		Message: fmt.Sprintf("%s died; restarted: %v. The end of its log: %s", e.Program, e.Restarted, e.LogEnd),
	})
}

func (l *Lab) supervisor(name string) *supervisor {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch.supervisors[name]
}

func (l *Lab) supervisors() []*supervisor {
	l.mu.Lock()
	defer l.mu.Unlock()
	supervisors := make([]*supervisor, 0, len(l.epoch.supervisors))
	for _, sv := range l.epoch.supervisors {
		supervisors = append(supervisors, sv)
	}
	return supervisors
}

// notify wakes the API server after a change.
func (l *Lab) notify() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}

// followPause is the minimum time between two comparisons of the loops while the journal grows.
const followPause = 10 * time.Millisecond

// follow notifies the API server of changes of the loops.
func (l *Lab) follow(r *epoch) {
	grown, cancel := r.journal.Subscribe()
	defer cancel()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-grown:
			l.notify()
		}
		select {
		case <-r.ctx.Done():
			return
		case <-time.After(followPause):
		}
	}
}
