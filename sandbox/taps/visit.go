package taps

import (
	"errors"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// visit is a running reconcile, from when a worker took the key until it calls Done. The operator's Reconcile method is
// not wrapped; the result is known from what controller-runtime's worker then does with the queue and the log: Forget
// for success, Forget and a timer for RequeueAfter, a rate-limited add for an error or Requeue, and the error in the
// log line that ends a failed one.
type visit struct {
	taps       *Taps
	controller string
	key        trace.Key
	span       int64
	start      int64 // Seq of its start event
	begun      time.Duration

	mu       sync.Mutex
	id       types.UID // controller-runtime's reconcileID, once known
	err      error
	panicked bool
	success  bool
	comeBack *admission
}

// bind connects a visit to controller-runtime's reconcileID.
func (t *Taps) bind(controller string, key trace.Key, id types.UID) *visit {
	t.mu.Lock()
	queues := make([]*queue, 0, len(t.queues))
	for q := range t.queues {
		queues = append(queues, q)
	}
	t.mu.Unlock()
	for _, q := range queues {
		if controller != "" && q.name != controller {
			continue
		}
		q.mu.Lock()
		v := q.locked[request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: key.Name}}]
		q.mu.Unlock()
		if v != nil && v.setID(id) {
			t.mu.Lock()
			t.visits[id] = v
			t.mu.Unlock()
			return v
		}
	}
	return nil
}

// setID reports whether the visit had no id before.
func (v *visit) setID(id types.UID) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.id != "" {
		return false
	}
	v.id = id
	return true
}

// fail records the error that controller-runtime logged at the end.
func (v *visit) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
}

// panic records that the reconciler panicked.
func (v *visit) panic() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.panicked = true
}

// succeeded records that controller-runtime forgot the key's failures.
func (v *visit) succeeded() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.success = true
}

// again records that the worker requeues the key.
func (v *visit) again(a admission) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.comeBack == nil || a.after < v.comeBack.after {
		v.comeBack = &a
	}
}

// end returns the event that ends the reconcile, and how its key is requeued; nil if it is not.
func (v *visit) end() (trace.Event, *admission) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.id != "" {
		v.taps.mu.Lock()
		delete(v.taps.visits, v.id)
		v.taps.mu.Unlock()
	}
	e := trace.Event{
		Kind: trace.KindEnd, Reconcile: v.span, Cause: v.start, Outcome: v.outcome(),
		Duration: v.taps.journal.Elapsed() - v.begun,
	}
	if v.err != nil {
		e.Error, e.Reason = errorText(v.err), reasonOf(v.err)
	}
	if a := v.comeBack; a != nil {
		switch e.Outcome {
		case trace.OutcomeRequeueAfter:
			a.reason = trace.ReasonRequeueAfter
		case trace.OutcomeRequeue:
			a.reason = trace.ReasonRequeue
		}
		e.Delay, e.Try = a.after, a.try
	}
	return e, v.comeBack
}

func (v *visit) outcome() trace.Outcome {
	a := v.comeBack
	switch {
	case v.panicked:
		return trace.OutcomePanic
	case v.err != nil && errors.Is(v.err, reconcile.TerminalError(nil)):
		return trace.OutcomeTerminal
	case v.err != nil:
		return trace.OutcomeError
	case a != nil && a.reason == trace.ReasonDelayed:
		return trace.OutcomeRequeueAfter
	case a != nil:
		return trace.OutcomeRequeue
	case v.success:
		return trace.OutcomeDone
	}
	return trace.OutcomeAborted
}

// errorText returns an error's text without controller-runtime's mark of a recovered panic.
func errorText(err error) string { return strings.TrimSuffix(err.Error(), " [recovered]") }
