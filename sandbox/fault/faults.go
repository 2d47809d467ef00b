package fault

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Actor is the actor of faults in the journal.
const Actor = "lab"

// Effects injects the faults that happen outside of the injector. The lab implements it.
type Effects interface {
	// Crash ends an operator and starts it again after a pause. Its injector is dead already. It is called once for each
	// run of the operator, from a goroutine of the operator that ends next, and must not wait for the operator.
	Crash(operator string, restartAfter time.Duration)
	// Kill kills a program of the control plane and returns once it is dead; the error says why it could not.
	Kill(program string) error
	// PatchAsOther sends a JSON merge patch as another client. It must not pass the injector that it is called from.
	PatchAsOther(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, patch []byte) error
	// AwaitDone returns when an operator has heard of a watch event of a kind, if it watches the kind for that and a version is given,
	// and the operators have nothing more to do now; or when ctx ends. Further events of the kind do not come before.
	AwaitDone(ctx context.Context, operator, kind, version string)
	// Break injects a fault of pods, nodes or images, once. It returns the affected names. A lasting fault is in effect
	// when Break returns, also for containers started later, until repair is called; repair is nil if nothing lasts.
	// The error is [ErrNobody] while no container runs that the fault could kill.
	Break(spec v1alpha1.FaultSpec) (of []string, repair func() error, err error)
}

// FaultsOptions are the options of [NewFaults]; Journal and Effects are required.
type FaultsOptions struct {
	// Journal gets an event each time that a fault happens.
	Journal *trace.Journal
	// Seed is the seed of the run, for faults with a percentage.
	Seed int64
	// Effects injects faults that happen outside of the injector.
	Effects Effects
	// ReconcileOf finds the reconcile that a request's context belongs to, for the journal and the faults' messages; the
	// zero value if there is none. Default: messages say that it was a reconcile, but not which.
	ReconcileOf func(ctx context.Context, operator string) trace.ReconcileRef
	// Kind finds the kind of a resource whose plural is irregular. Default: the kind read from bodies and watches, or
	// else a guess by the rules of English.
	Kind func(resource schema.GroupResource) string
	// Now is the clock for the times in a status. Default: time.Now.
	Now func() time.Time
}

// Faults is the set of faults of a lab. All methods may be called from any goroutine.
type Faults struct {
	options FaultsOptions
	kinds   sync.Map // schema.GroupResource -> kind
	armed   atomic.Pointer[armed]
	kills   sync.WaitGroup // kills under way, and faults that wait for a target

	mu        sync.Mutex
	faults    map[string]*fault
	order     int64
	injectors map[*Injector]struct{}
	listeners map[int]func(string)
	next      int
	closed    bool
}

// armed holds the faults that can still happen, in the order they were armed. It is immutable: injectors read it without a
// lock.
type armed struct {
	calls, watches []*fault
	waiting        []*fault // immediate crashes that wait for an operator
	views          []*view  // that are shown now
}

// NewFaults returns an empty set.
func NewFaults(o FaultsOptions) *Faults {
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &Faults{options: o, faults: map[string]*fault{}, injectors: map[*Injector]struct{}{}, listeners: map[int]func(string){}}
	f.armed.Store(&armed{})
	return f
}

// Errors of [Faults.Arm].
var (
	// ErrExists is returned if there is a fault of this name that was not disarmed.
	ErrExists = errors.New("there is a fault of this name already")
	// ErrClosed is returned after [Faults.Close].
	ErrClosed = errors.New("the lab is ending")
)

// Arm validates and installs a fault. An immediate fault has taken effect when Arm returns, except that a control-plane
// kill follows just after, and a fault without a target stays pending. The error names everything that is wrong with
// the fault, or wraps [ErrExists] or [ErrClosed].
func (f *Faults) Arm(name string, spec v1alpha1.FaultSpec) error {
	if err := Validate(spec).ToAggregate(); err != nil {
		return fmt.Errorf("fault %s: %w", name, err)
	}
	now := f.options.Now()
	x := &fault{
		set: f, name: name, spec: spec, matcher: newMatcher(spec, f.options.Seed),
		phase: v1alpha1.FaultArmed, armedAt: now, over: make(chan struct{}),
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return fmt.Errorf("fault %s: %w", name, ErrClosed)
	}
	if f.faults[name] != nil {
		f.mu.Unlock()
		return fmt.Errorf("fault %s: %w", name, ErrExists)
	}
	f.order++
	x.order = f.order
	f.faults[name] = x
	if spec.Released {
		f.endLocked(x, v1alpha1.FaultReleased)
	} else if spec.ExpireAfter != nil {
		x.expire = time.AfterFunc(spec.ExpireAfter.Duration, func() { f.expire(x) })
	}
	f.publishLocked()
	f.mu.Unlock()
	f.tell(name)
	if !spec.Released && x.atOnce() {
		f.atOnce(x)
	}
	return nil
}

// publishLocked recomputes the faults that injectors check.
func (f *Faults) publishLocked() {
	all := make([]*fault, 0, len(f.faults))
	for _, x := range f.faults {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *fault) int { return cmp.Compare(a.order, b.order) })
	set := &armed{}
	for _, x := range all {
		if x.view != nil && x.view.shown {
			set.views = append(set.views, x.view)
		}
		switch {
		case x.ended():
		case x.view != nil && !x.view.shown: // it waits for the next write
			set.calls = append(set.calls, x)
		case x.atOnce():
			if x.spec.Crash != nil && !x.spent() {
				set.waiting = append(set.waiting, x)
			}
		case x.watches(): // also a spent one: events that it left out stay out
			set.watches = append(set.watches, x)
		case !x.spent():
			set.calls = append(set.calls, x)
		}
	}
	f.armed.Store(set)
}

// Release ends a fault: calls that it holds go on, and what it keeps broken is repaired. Its status stays. An unknown
// name is ignored.
func (f *Faults) Release(name string) {
	f.mu.Lock()
	x := f.faults[name]
	if x != nil && !x.ended() {
		f.endLocked(x, v1alpha1.FaultReleased)
		f.publishLocked()
	}
	f.mu.Unlock()
	if x != nil {
		x.repair()
		f.tell(name)
	}
}

// Disarm releases a fault and forgets it.
func (f *Faults) Disarm(name string) {
	f.mu.Lock()
	x := f.faults[name]
	if x != nil {
		f.endLocked(x, v1alpha1.FaultReleased)
		delete(f.faults, name)
		f.publishLocked()
	}
	f.mu.Unlock()
	if x != nil {
		x.repair()
		f.tell(name)
	}
}

// expire ends a fault whose time ran out. A fault that is already done keeps its phase.
func (f *Faults) expire(x *fault) {
	f.mu.Lock()
	if x.done() {
		f.mu.Unlock()
		return
	}
	f.endLocked(x, v1alpha1.FaultExpired)
	f.publishLocked()
	f.mu.Unlock()
	x.repair()
	f.tell(x.name)
}

// endLocked sets the phase of an ended fault and lets the calls that it holds go on.
func (f *Faults) endLocked(x *fault, phase v1alpha1.FaultPhase) {
	if x.expire != nil {
		x.expire.Stop()
	}
	if x.ended() {
		return
	}
	if !x.done() {
		x.doneAt = f.options.Now()
	}
	x.phase = phase
	close(x.over)
}

// Status returns the status of a fault; false if there is none of this name.
func (f *Faults) Status(name string) (v1alpha1.FaultStatus, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.faults[name]
	if x == nil {
		return v1alpha1.FaultStatus{}, false
	}
	return x.status(), true
}

// Subscribe calls a function with the name of each fault whose status changed, until cancel is called. The calls come
// from goroutines of operators among others, so the function must return soon.
func (f *Faults) Subscribe(changed func(name string)) (cancel func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	id := f.next
	f.listeners[id] = changed
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.listeners, id)
	}
}

// tell calls the listeners; the lock must not be held.
func (f *Faults) tell(name string) {
	f.mu.Lock()
	listeners := make([]func(string), 0, len(f.listeners))
	for _, l := range f.listeners {
		listeners = append(listeners, l)
	}
	f.mu.Unlock()
	for _, l := range listeners {
		l(name)
	}
}

// Close disarms all faults and refuses further ones. It returns when kills are finished and everything is repaired.
func (f *Faults) Close() {
	f.mu.Lock()
	f.closed = true
	all := slices.Collect(maps.Values(f.faults))
	for _, x := range all {
		f.endLocked(x, v1alpha1.FaultReleased)
	}
	f.publishLocked()
	f.mu.Unlock()
	f.kills.Wait()
	for _, x := range all {
		x.repair()
	}
}

// match counts a match of a fault and returns its number, and whether the fault happens at it.
func (f *Faults) match(x *fault) (n int32, happens bool) {
	f.mu.Lock()
	before := x.matched
	happens = x.match()
	n = x.matched
	if happens && x.spent() {
		f.publishLocked()
	}
	f.mu.Unlock()
	if n != before {
		f.tell(x.name)
	}
	return n, happens
}

// giveBack undoes the reservation of a match, because something else ended the call first.
func (f *Faults) giveBack(x *fault) {
	f.mu.Lock()
	x.reserved--
	f.publishLocked()
	f.mu.Unlock()
}

// happened records in the status and in the journal that a fault happened.
func (f *Faults) happened(x *fault, e trace.Event) {
	f.mu.Lock()
	now := f.options.Now()
	if x.times == 0 {
		x.firstAt = now
	}
	x.times++
	x.at, x.message = now, e.Message
	if x.phase == v1alpha1.FaultArmed {
		x.phase = v1alpha1.FaultInjected
	}
	f.settleLocked(x, now)
	f.mu.Unlock()
	f.record(x, e)
	f.tell(x.name)
}

// settleLocked records or clears the time at which a fault was done.
func (f *Faults) settleLocked(x *fault, now time.Time) {
	switch {
	case !x.done():
		x.doneAt = time.Time{}
	case x.doneAt.IsZero():
		x.doneAt = now
	}
}

// failed records why a fault could not happen, and undoes the reservation of its match.
func (f *Faults) failed(x *fault, e trace.Event, err error) {
	f.mu.Lock()
	x.reserved--
	x.message = err.Error()
	f.publishLocked()
	f.mu.Unlock()
	e.Error = err.Error()
	f.record(x, e)
	f.tell(x.name)
}

// complain sets the message of a fault without counting anything.
func (f *Faults) complain(x *fault, err error) {
	f.mu.Lock()
	same := x.message == err.Error()
	x.message = err.Error()
	f.mu.Unlock()
	if !same {
		f.tell(x.name)
	}
}

func (f *Faults) record(x *fault, e trace.Event) {
	e.Kind, e.Actor, e.Reason = trace.KindFault, Actor, x.name
	payload := e.Fault()
	payload.Kind, payload.Detail = kindOf(x.spec), x.detail()
	if x.spec.Crash != nil {
		payload.Of = []string{x.spec.Crash.RestartAfter.Duration.String()}
	}
	f.mu.Lock()
	if x.view != nil && x.spec.Stale.Restart {
		payload.Of = []string{"0s", x.view.kind}
	}
	f.mu.Unlock()
	e.Values = payload.Values()
	f.options.Journal.Append(e)
}

// errDead is returned for requests of an operator that has crashed.
var errDead = errors.New("the operator has crashed: no answer reaches it")

// wait blocks a call or a stream until the fault is over, until fires or the stream has ended. The error says why the
// call must not go on.
func (f *Faults) wait(ctx context.Context, in *Injector, x *fault, until <-chan time.Time, ended <-chan struct{}) error {
	f.hold(x, 1)
	defer f.hold(x, -1)
	select {
	case <-x.over:
	case <-until:
	case <-ended:
	case <-in.dead:
		return errDead
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (f *Faults) hold(x *fault, n int32) {
	f.mu.Lock()
	x.holding += n
	f.settleLocked(x, f.options.Now())
	f.mu.Unlock()
	f.tell(x.name)
}

// kind returns the kind of a resource; empty if it is not known.
func (f *Faults) kind(r schema.GroupResource) string {
	if kind, ok := f.kinds.Load(r); ok {
		return kind.(string)
	}
	if f.options.Kind != nil {
		if kind := f.options.Kind(r); kind != "" {
			f.kinds.Store(r, kind)
			return kind
		}
	}
	return ""
}

// learn remembers the kind of a resource.
func (f *Faults) learn(r schema.GroupResource, kind string) {
	if kind != "" && kind != "PartialObjectMetadata" && kind != "Table" {
		f.kinds.LoadOrStore(r, kind)
	}
}

// callKind returns the kind of a call's object; empty if it is not known.
func (f *Faults) callKind(c *call) string {
	if kind := f.kind(c.GroupResource()); kind != "" {
		return kind
	}
	if c.content() != nil && (c.Subresource == "" || c.Subresource == "status") {
		f.learn(c.GroupResource(), c.head.Kind)
		return c.head.Kind
	}
	return ""
}

// otherPatch returns the patch of the second writer; n makes each patch a change.
func (x *fault) otherPatch(n int32) []byte {
	if p := x.spec.Conflict.Patch; p != nil {
		return p.Raw
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		"operator-lab.dev/touched": fmt.Sprint(n),
	}}})
	if err != nil {
		return nil
	}
	return patch
}
