package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/fault"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// supervisor keeps one operator of an epoch running: it starts it again whenever a run ends.
type supervisor struct {
	lab      *Lab
	epoch    *epoch
	program  Program
	taps     Taps
	uid      types.UID
	created  time.Time
	cancel   context.CancelFunc
	done     chan struct{}
	failed   chan struct{} // closed at the first failure
	failOnce sync.Once

	mu         sync.Mutex
	spec       v1alpha1.OperatorSpec
	generation int64
	status     v1alpha1.OperatorStatus
	failure    error          // why State is Failed
	crashed    *time.Duration // the pause before the next run, after a crash or an ordered end
	ordered    bool           // the end was ordered: it is no crash
	served     bool           // a run has served, in this epoch or before
	wake       chan struct{}  // closed and replaced at each change of the fields above
}

func newSupervisor(l *Lab, r *epoch, program Program, spec v1alpha1.OperatorSpec, served bool) *supervisor {
	sv := &supervisor{
		lab: l, epoch: r, program: program, spec: spec, generation: 1, uid: uuid.NewUUID(), created: time.Now(),
		taps: program.Taps(r.journal), served: served,
		wake: make(chan struct{}), done: make(chan struct{}), failed: make(chan struct{}),
	}
	sv.status = v1alpha1.OperatorStatus{State: v1alpha1.OperatorStarting, Version: l.options.Version, Message: sv.waits()}
	sv.pause(spec.Paused)
	var ctx context.Context
	ctx, sv.cancel = context.WithCancel(r.ctx)
	go sv.run(ctx)
	return sv
}

// waits returns the message of an operator that waits for somebody else to start its program; empty for others.
func (sv *supervisor) waits() string {
	if p, is := sv.program.(Waiting); is {
		return p.Waits()
	}
	return ""
}

// change gives the operator another spec. A pause takes effect at once, in this run and the next. If the change needs a
// new run, the status no longer says that the operator runs: the old run may take seconds to end.
func (sv *supervisor) change(spec v1alpha1.OperatorSpec) {
	sv.mu.Lock()
	paused, another := sv.spec.Paused != spec.Paused, !sameRun(sv.spec, spec)
	if paused || another {
		sv.spec = spec
		sv.generation++
	}
	if serves := sv.status.State == v1alpha1.OperatorRunning || sv.status.State == v1alpha1.OperatorPaused; serves && another {
		sv.status.State = v1alpha1.OperatorStarting
	}
	sv.wakeLocked()
	sv.mu.Unlock()
	if paused {
		sv.pause(spec.Paused)
	}
	sv.lab.notify()
}

// sameRun reports whether a change of the spec needs no restart of the operator.
func sameRun(a, b v1alpha1.OperatorSpec) bool {
	return a.Variant == b.Variant && maps.Equal(a.Parameters, b.Parameters)
}

// crash ends the current run; the next one begins after a pause. Requests of the ended run reach nobody: its injector is
// dead already.
func (sv *supervisor) crash(pause time.Duration) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	sv.crashed = &pause
	sv.wakeLocked()
}

// restart ends the current run in order; the next one begins at once, also after a failure.
func (sv *supervisor) restart() {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	sv.generation++
	sv.ordered, sv.crashed = true, new(time.Duration)
	sv.wakeLocked()
}

func (sv *supervisor) wakeLocked() {
	close(sv.wake)
	sv.wake = make(chan struct{})
}

// stop ends the operator for good and returns when it has ended.
func (sv *supervisor) stop() error {
	sv.cancel()
	<-sv.done
	sv.taps.Close() // not before: a paused worker would take a key
	return nil
}

// now returns what is wanted, and a channel that is closed when that changes.
func (sv *supervisor) now() (spec v1alpha1.OperatorSpec, generation int64, crashed *time.Duration, changed <-chan struct{}) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	return sv.spec, sv.generation, sv.crashed, sv.wake
}

// set changes the status.
func (sv *supervisor) set(change func(*v1alpha1.OperatorStatus)) {
	sv.mu.Lock()
	change(&sv.status)
	sv.wakeLocked()
	sv.mu.Unlock()
	sv.lab.notify()
}

func (sv *supervisor) state(s v1alpha1.OperatorState, message string) {
	sv.set(func(status *v1alpha1.OperatorStatus) { status.State, status.Message = s, message })
}

// run runs the operator again and again until ctx ends.
func (sv *supervisor) run(ctx context.Context) {
	defer close(sv.done)
	for runs := 0; ctx.Err() == nil; runs++ {
		if runs > 0 {
			sv.set(func(s *v1alpha1.OperatorStatus) {
				s.Restarts++
				s.State, s.Message = v1alpha1.OperatorStarting, sv.waits()
			})
		}
		sv.runOnce(ctx)
	}
	sv.state(v1alpha1.OperatorStopped, "")
}

// runOnce is one run of the operator: it returns when the next one should begin, or ctx ends.
func (sv *supervisor) runOnce(ctx context.Context) {
	sv.mu.Lock()
	sv.crashed, sv.ordered = nil, false
	sv.mu.Unlock()
	spec, generation, _, _ := sv.now()
	injector := sv.epoch.faults.Injector(sv.program.Name())
	run, err := sv.startOnceThere(ctx, spec, injector)
	if err == nil {
		err = sv.serve(ctx, run, spec, injector)
	}
	if run != nil {
		// An error means that a reconcile did not end in time; the journal has a note.
		_ = run.End()
	}
	injector.Die() // requests of what did not end reach nobody; after a crash that is so already
	_, _, crashed, changed := sv.now()
	switch {
	case ctx.Err() != nil:
	case crashed != nil:
		if !sv.wasOrdered() {
			sv.state(v1alpha1.OperatorCrashed, "")
		}
		pause(ctx, *crashed)
	case err != nil:
		sv.set(func(s *v1alpha1.OperatorStatus) {
			s.State, s.Message, s.ObservedGeneration = v1alpha1.OperatorFailed, err.Error(), generation
			sv.failure = err
		})
		sv.failOnce.Do(func() { close(sv.failed) })
		sv.awaitOther(ctx, generation, changed)
	}
}

func (sv *supervisor) wasOrdered() bool {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	return sv.ordered
}

// How long the API server may be unreachable when an operator is started, and how often to try.
const (
	awayPatience = 30 * time.Second
	awayPause    = 50 * time.Millisecond
)

// startOnceThere starts the operator. While the API server is unreachable, as after a fault, it tries again, as a real
// cluster restarts an operator that cannot reach it.
func (sv *supervisor) startOnceThere(ctx context.Context, spec v1alpha1.OperatorSpec, injector *fault.Injector) (Run, error) {
	deadline := time.Now().Add(awayPatience)
	dir := sv.lab.options.Dir
	if dir != "" {
		dir = filepath.Join(dir, sv.program.Name())
	}
	for {
		run, err := sv.program.Start(ctx, RunOptions{
			Cluster: sv.lab.options.Cluster, Spec: spec, Journal: sv.epoch.journal, Taps: sv.taps, Known: &sv.lab.known,
			Dir: dir, Private: sv.lab.options.Private, Injector: injector,
		})
		now, _, crashed, _ := sv.now()
		if !sandbox.IsAway(err) || ctx.Err() != nil || crashed != nil || !sameRun(spec, now) || time.Now().After(deadline) {
			return run, err
		}
		pause(ctx, awayPause)
	}
}

func (sv *supervisor) pause(paused bool) {
	if paused {
		sv.taps.Pause()
	} else {
		sv.taps.Resume()
	}
}

// errNewRun is the cause of ending a run because another one is wanted.
var errNewRun = errors.New("another run is wanted")

// serve waits until the run is over. It returns nil if it ended on request.
func (sv *supervisor) serve(ctx context.Context, run Run, spec v1alpha1.OperatorSpec, injector *fault.Injector) error {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go sv.cancelWhenUnwanted(waiting, cancel, spec)
	if err := run.AwaitServing(waiting); err != nil {
		if errors.Is(err, errNewRun) || ctx.Err() != nil {
			return nil
		}
		if injector.IsDead() {
			sv.awaitCrash(ctx)
			return nil
		}
		if exit, is := errors.AsType[Exit](err); is && (sv.hasServed() || exit.RestartAfter() == 0) {
			return sv.ended(exit) // it can be started, so what ends it may pass, or be mended
		}
		return err
	}
	for told := int64(0); ; {
		now, generation, crashed, changed := sv.now()
		if crashed != nil || !sameRun(spec, now) {
			return nil
		}
		if generation != told { // the first one, a pause, or a change that was reverted at once
			told = generation
			sv.serves(spec)
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-run.Done():
			if injector.IsDead() {
				sv.awaitCrash(ctx)
				return nil
			}
			return sv.ended(run.Err())
		case <-changed:
		}
	}
}

// serves records that the operator serves, unless another spec is wanted.
func (sv *supervisor) serves(spec v1alpha1.OperatorSpec) {
	sv.set(func(s *v1alpha1.OperatorStatus) {
		if sameRun(spec, sv.spec) {
			s.State, s.Message, s.ObservedGeneration = runningOr(sv.spec.Paused), "", sv.generation
			s.Controllers = sv.taps.Controllers()
			sv.served = true
		}
	})
}

// awaitCrash returns when the fault that has ended a run has told so, or ctx ends.
func (sv *supervisor) awaitCrash(ctx context.Context) {
	for {
		_, _, crashed, changed := sv.now()
		if crashed != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func (sv *supervisor) hasServed() bool {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	return sv.served
}

// ended returns the error of a run that ended by itself after one had served; nil if it counts as a crash.
func (sv *supervisor) ended(err error) error {
	if err == nil {
		return errors.New("it ended by itself")
	}
	if exit, is := errors.AsType[Exit](err); is {
		message := exit.Error()
		if after := exit.RestartAfter(); after > 0 {
			message = fmt.Sprintf("the program ended: %v; it is started again in %v", err, after)
		}
		sv.epoch.journal.Append(trace.Event{
			Kind: trace.KindNote, Actor: sv.program.Name(), Operator: sv.program.Name(), Message: message,
		})
		sv.crash(exit.RestartAfter())
		return nil
	}
	return fmt.Errorf("it ended by itself: %w", err)
}

func runningOr(paused bool) v1alpha1.OperatorState {
	if paused {
		return v1alpha1.OperatorPaused
	}
	return v1alpha1.OperatorRunning
}

// cancelWhenUnwanted cancels a wait when another run is wanted.
func (sv *supervisor) cancelWhenUnwanted(ctx context.Context, cancel context.CancelCauseFunc, spec v1alpha1.OperatorSpec) {
	for ctx.Err() == nil {
		now, _, crashed, changed := sv.now()
		if crashed != nil || !sameRun(spec, now) {
			cancel(errNewRun)
			return
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// awaitOther waits until another spec than the failed one is wanted.
func (sv *supervisor) awaitOther(ctx context.Context, failed int64, changed <-chan struct{}) {
	for {
		_, generation, _, next := sv.now()
		if generation != failed {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		changed = next
	}
}

// awaitServing returns when the operator serves its newest spec, or with an error when it cannot.
func (sv *supervisor) awaitServing(ctx context.Context) error {
	for {
		sv.mu.Lock()
		status, generation, changed, failure, crashed := sv.status, sv.generation, sv.wake, sv.failure, sv.crashed
		sv.mu.Unlock()
		if status.ObservedGeneration == generation && crashed == nil {
			switch status.State {
			case v1alpha1.OperatorRunning, v1alpha1.OperatorPaused:
				return nil
			case v1alpha1.OperatorFailed:
				return fmt.Errorf("operator %s: %w", sv.program.Name(), failure)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for operator %s, which is %s: %w", sv.program.Name(), status.State, context.Cause(ctx))
		case <-sv.done:
			return fmt.Errorf("operator %s was stopped", sv.program.Name())
		case <-changed:
		}
	}
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
