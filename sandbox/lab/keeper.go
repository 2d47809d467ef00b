package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/gate"
	"github.com/operator-lab/operator-lab/sandbox/host"
	"github.com/operator-lab/operator-lab/sandbox/taps"
)

// keeper keeps one operator running: it starts it again whenever a run ends.
type keeper struct {
	lab      *Lab
	round    *round
	op       operators.Operator
	taps     *taps.Taps
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
	crashed    *time.Duration // the pause before the next run, after a crash
	wake       chan struct{}  // closed and replaced at each change of the fields above
}

func newKeeper(l *Lab, r *round, op operators.Operator, spec v1alpha1.OperatorSpec) *keeper {
	k := &keeper{
		lab: l, round: r, op: op, spec: spec, generation: 1, uid: uuid.NewUUID(), created: time.Now(),
		taps: taps.New(r.journal, taps.Options{Operator: op.Name}),
		wake: make(chan struct{}), done: make(chan struct{}), failed: make(chan struct{}),
	}
	k.status = v1alpha1.OperatorStatus{State: v1alpha1.OperatorStarting, Version: l.options.Version}
	k.pause(spec.Paused)
	var ctx context.Context
	ctx, k.cancel = context.WithCancel(r.ctx)
	go k.run(ctx)
	return k
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

// change gives the operator another spec. A pause takes effect at once, in this run and the next. If the change needs a
// new run, the status no longer says that the operator runs: the old run may take seconds to end.
func (k *keeper) change(spec v1alpha1.OperatorSpec) {
	k.mu.Lock()
	paused, another := k.spec.Paused != spec.Paused, !sameLife(k.spec, spec)
	if paused || another {
		k.spec = spec
		k.generation++
	}
	if serves := k.status.State == v1alpha1.OperatorRunning || k.status.State == v1alpha1.OperatorPaused; serves && another {
		k.status.State = v1alpha1.OperatorStarting
	}
	k.wakeLocked()
	k.mu.Unlock()
	if paused {
		k.pause(spec.Paused)
	}
	k.lab.notify()
}

// sameLife reports whether a change of the spec needs no restart of the operator.
func sameLife(a, b v1alpha1.OperatorSpec) bool {
	return a.Variant == b.Variant && maps.Equal(a.Parameters, b.Parameters)
}

// crash ends the current run; the next one begins after a pause. Requests of the ended run reach nobody: its gate is
// dead already.
func (k *keeper) crash(pause time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.crashed = &pause
	k.wakeLocked()
}

func (k *keeper) wakeLocked() {
	close(k.wake)
	k.wake = make(chan struct{})
}

// stop ends the operator for good and returns when it has ended.
func (k *keeper) stop() error {
	k.cancel()
	k.taps.Close()
	<-k.done
	return nil
}

// now returns what is wanted, and a channel that is closed when that changes.
func (k *keeper) now() (spec v1alpha1.OperatorSpec, generation int64, crashed *time.Duration, changed <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.spec, k.generation, k.crashed, k.wake
}

// set changes the status.
func (k *keeper) set(change func(*v1alpha1.OperatorStatus)) {
	k.mu.Lock()
	change(&k.status)
	k.wakeLocked()
	k.mu.Unlock()
	k.lab.notify()
}

func (k *keeper) state(s v1alpha1.OperatorState, message string) {
	k.set(func(status *v1alpha1.OperatorStatus) { status.State, status.Message = s, message })
}

// run runs the operator again and again until ctx ends.
func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
	for lives := 0; ctx.Err() == nil; lives++ {
		if lives > 0 {
			k.set(func(s *v1alpha1.OperatorStatus) { s.Restarts++; s.State, s.Message = v1alpha1.OperatorStarting, "" })
		}
		k.live(ctx)
	}
	k.state(v1alpha1.OperatorStopped, "")
}

// live is one run of the operator: it returns when the next one should begin, or ctx ends.
func (k *keeper) live(ctx context.Context) {
	k.mu.Lock()
	k.crashed = nil
	k.mu.Unlock()
	spec, generation, _, _ := k.now()
	wall := k.round.faults.Gate(k.op.Name)
	life, err := k.startOnceThere(ctx, spec, wall)
	if err == nil {
		err = k.serve(ctx, life, spec)
	}
	if life != nil {
		// An error means that a reconcile did not end in time; the journal has a note.
		_ = life.End()
	}
	wall.Die() // requests of what did not end reach nobody; after a crash that is so already
	_, _, crashed, changed := k.now()
	switch {
	case ctx.Err() != nil:
	case crashed != nil:
		k.state(v1alpha1.OperatorCrashed, "")
		pause(ctx, *crashed)
	case err != nil:
		k.set(func(s *v1alpha1.OperatorStatus) {
			s.State, s.Message, s.ObservedGeneration = v1alpha1.OperatorFailed, err.Error(), generation
		})
		k.failOnce.Do(func() { close(k.failed) })
		k.awaitOther(ctx, generation, changed)
	}
}

// How long the API server may be unreachable when an operator is started, and how often to try.
const (
	awayPatience = 30 * time.Second
	awayPause    = 50 * time.Millisecond
)

// startOnceThere starts the operator. While the API server is unreachable, as after a fault, it tries again, as a real
// cluster restarts an operator that cannot reach it.
func (k *keeper) startOnceThere(ctx context.Context, spec v1alpha1.OperatorSpec, wall *gate.Gate) (*host.Host, error) {
	deadline := time.Now().Add(awayPatience)
	for {
		life, err := k.start(ctx, spec, wall)
		now, _, crashed, _ := k.now()
		if !sandbox.IsAway(err) || ctx.Err() != nil || crashed != nil || !sameLife(spec, now) || time.Now().After(deadline) {
			return life, err
		}
		pause(ctx, awayPause)
	}
}

// start starts the operator. With an error it may have started all the same, and must be ended.
func (k *keeper) start(ctx context.Context, spec v1alpha1.OperatorSpec, wall *gate.Gate) (*host.Host, error) {
	instance, err := InstanceOf(k.op, spec)
	if err != nil {
		return nil, err
	}
	if err := k.lab.install(ctx, k.op.Name, instance); err != nil {
		return nil, err
	}
	return host.Start(ctx, k.lab.options.Cluster, k.op, instance, host.Options{Taps: k.taps, Transport: wall.Wrap})
}

func (k *keeper) pause(paused bool) {
	if paused {
		k.taps.Pause()
	} else {
		k.taps.Resume()
	}
}

// errNewLife is the cause of ending a run because another one is wanted.
var errNewLife = errors.New("another life is wanted")

// serve waits until the run is over. It returns nil if it ended on request.
func (k *keeper) serve(ctx context.Context, life *host.Host, spec v1alpha1.OperatorSpec) error {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go k.cancelWhenUnwanted(waiting, cancel, spec)
	if err := life.AwaitServing(waiting); err != nil {
		if errors.Is(err, errNewLife) || ctx.Err() != nil {
			return nil
		}
		return err
	}
	for told := int64(0); ; {
		now, generation, crashed, changed := k.now()
		if crashed != nil || !sameLife(spec, now) {
			return nil
		}
		if generation != told { // the first one, a pause, or a change that was reverted at once
			told = generation
			k.serves(spec)
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-life.Done():
			return orEnded(life.Err())
		case <-changed:
		}
	}
}

// serves records that the operator serves, unless another spec is wanted.
func (k *keeper) serves(spec v1alpha1.OperatorSpec) {
	k.set(func(s *v1alpha1.OperatorStatus) {
		if sameLife(spec, k.spec) {
			s.State, s.Message, s.ObservedGeneration = runningOr(k.spec.Paused), "", k.generation
			s.Controllers = k.taps.Controllers()
		}
	})
}

func orEnded(err error) error {
	if err == nil {
		return errors.New("it ended by itself")
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
func (k *keeper) cancelWhenUnwanted(ctx context.Context, cancel context.CancelCauseFunc, spec v1alpha1.OperatorSpec) {
	for ctx.Err() == nil {
		now, _, crashed, changed := k.now()
		if crashed != nil || !sameLife(spec, now) {
			cancel(errNewLife)
			return
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// awaitOther waits until another spec than the failed one is wanted.
func (k *keeper) awaitOther(ctx context.Context, failed int64, changed <-chan struct{}) {
	for {
		_, generation, _, next := k.now()
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
func (k *keeper) awaitServing(ctx context.Context) error {
	for {
		k.mu.Lock()
		status, generation, changed := k.status, k.generation, k.wake
		k.mu.Unlock()
		if status.ObservedGeneration == generation {
			switch status.State {
			case v1alpha1.OperatorRunning, v1alpha1.OperatorPaused:
				return nil
			case v1alpha1.OperatorFailed:
				return fmt.Errorf("operator %s: %s", k.op.Name, status.Message)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for operator %s, which is %s: %w", k.op.Name, status.State, ctx.Err())
		case <-k.done:
			return fmt.Errorf("operator %s was stopped", k.op.Name)
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
