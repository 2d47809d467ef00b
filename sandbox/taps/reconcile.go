//go:build go1.23

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

// runningReconcile is a reconcile, from when a worker took the key until it calls Done. The operator's Reconcile method is
// not wrapped; the result is known from what controller-runtime's worker then does with the queue and the log: Forget
// for success, Forget and a timer for RequeueAfter, a rate-limited add for an error or Requeue, and the error in the
// log line that ends a failed one.
type runningReconcile struct {
	taps       *Taps
	controller string
	key        trace.Key
	id         int64 // its number in the journal
	start      int64 // Seq of its start event
	begun      time.Duration

	mu       sync.Mutex
	uid      types.UID // controller-runtime's reconcileID, once known
	err      error
	panicked bool
	success  bool
	comeBack *admission
}

// setUID reports whether the reconcile had no UID before.
func (r *runningReconcile) setUID(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.uid != "" {
		return false
	}
	r.uid = uid
	return true
}

// fail records the error that controller-runtime logged at the end.
func (r *runningReconcile) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// panic records that the reconciler panicked.
func (r *runningReconcile) panic() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.panicked = true
}

// succeeded records that controller-runtime forgot the key's failures.
func (r *runningReconcile) succeeded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.success = true
}

// again records that the worker requeues the key.
func (r *runningReconcile) again(a admission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.comeBack == nil || a.after < r.comeBack.after {
		r.comeBack = &a
	}
}

// end returns the event that ends the reconcile, and how its key is requeued; nil if it is not.
func (r *runningReconcile) end() (trace.Event, *admission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.uid != "" {
		r.taps.ended(r.uid)
	}
	e := trace.Event{
		Kind: trace.KindEnd, Reconcile: r.id, Cause: r.start, Outcome: r.outcome(),
		Duration: r.taps.journal.Elapsed() - r.begun,
	}
	if r.err != nil {
		e.Error, e.Reason = errorText(r.err), reasonOf(r.err)
	}
	if a := r.comeBack; a != nil {
		switch e.Outcome {
		case trace.OutcomeRequeueAfter:
			a.reason = trace.ReasonRequeueAfter
		case trace.OutcomeRequeue:
			a.reason = trace.ReasonRequeue
		}
		e.Delay, e.Try = a.after, a.try
	}
	return e, r.comeBack
}

func (r *runningReconcile) outcome() trace.Outcome {
	a := r.comeBack
	switch {
	case r.panicked:
		return trace.OutcomePanic
	case r.err != nil && errors.Is(r.err, reconcile.TerminalError(nil)):
		return trace.OutcomeTerminal
	case r.err != nil:
		return trace.OutcomeError
	case a != nil && a.reason == trace.ReasonDelayed:
		return trace.OutcomeRequeueAfter
	case a != nil:
		return trace.OutcomeRequeue
	case r.success:
		return trace.OutcomeDone
	}
	return trace.OutcomeAborted
}

// errorText returns an error's text without controller-runtime's mark of a recovered panic.
func errorText(err error) string { return strings.TrimSuffix(err.Error(), " [recovered]") }
