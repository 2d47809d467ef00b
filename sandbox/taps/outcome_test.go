package taps_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestOutcomes checks each way in which a reconcile can end, and what wakes it afterwards.
func TestOutcomes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		first  func() (reconcile.Result, error)
		want   trace.Outcome
		reason string // of the requeue; empty if there is none
		error  string
	}{
		{"done", func() (reconcile.Result, error) { return reconcile.Result{}, nil }, trace.OutcomeDone, "", ""},
		{"requeue-after", func() (reconcile.Result, error) {
			return reconcile.Result{RequeueAfter: 7 * time.Millisecond}, nil
		}, trace.OutcomeRequeueAfter, trace.ReasonRequeueAfter, ""},
		{"requeue", func() (reconcile.Result, error) {
			return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // SA1019: operators still use it
		}, trace.OutcomeRequeue, trace.ReasonRequeue, ""},
		{"error", func() (reconcile.Result, error) {
			return reconcile.Result{}, errors.New("out of song")
		}, trace.OutcomeError, trace.ReasonBackoff, "out of song"},
		{"terminal", func() (reconcile.Result, error) {
			return reconcile.Result{}, reconcile.TerminalError(errors.New("hopeless"))
		}, trace.OutcomeTerminal, "", "hopeless"},
		{"panic", func() (reconcile.Result, error) { panic("kiyoshi") }, trace.OutcomePanic, trace.ReasonBackoff, "panic: kiyoshi"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			var calls atomic.Int32
			k := &keeper{then: func(context.Context, *corev1.ConfigMap) (reconcile.Result, error) {
				if calls.Add(1) > 1 {
					return reconcile.Result{}, nil
				}
				return tt.first()
			}}
			l.startKeeper(l.newTaps("keeper"), k)
			l.must(l.you.Create(t.Context(), l.configMap("a", nil)))
			l.await("the end", func(s *trace.State) bool {
				n := 2
				if tt.reason != "" {
					n = 3
				}
				return ended("a", n)(s) && len(s.Queue()) == 0
			})
			reconcile := reconcilesOf(l.timeline.Tip(), "a")[1] // the first one creates the Secret
			if reconcile.Outcome() != tt.want || !strings.Contains(reconcile.End.Error, tt.error) {
				t.Errorf("ended %s %q, want %s %q", reconcile.Outcome(), reconcile.End.Error, tt.want, tt.error)
			}
			l.checkRequeue(reconcile, tt.reason)
			if tt.want == trace.OutcomePanic {
				logs := reconcile.Logs()
				if stack := logs[len(logs)-1].Stack; !strings.Contains(stack, "TestOutcomes") {
					t.Errorf("the panic's stack does not show the culprit: %s", stack)
				}
			}
		})
	}
}

// checkRequeue checks how a reconcile's key was requeued.
func (l *lab) checkRequeue(reconcile *trace.Reconcile, reason string) {
	l.Helper()
	requeue := l.find(func(e *trace.Event) bool {
		return e.Kind == trace.KindRequeue && e.Reconcile == reconcile.ID
	})
	switch {
	case reason == "" && requeue == nil:
	case reason == "" || requeue == nil || requeue.Reason != reason || requeue.Cause != reconcile.End.Seq:
		l.Errorf("requeue: %+v, want reason %q", requeue, reason)
	case requeue.Delay <= 0 || requeue.Delay != reconcile.End.Delay:
		l.Errorf("the delay is %s, and %s at the end", requeue.Delay, reconcile.End.Delay)
	case reason != trace.ReasonRequeueAfter && requeue.Try != 1:
		l.Errorf("try %d, want 1", requeue.Try)
	}
}

func TestBackoffCountsTries(t *testing.T) {
	l := newLab(t)
	var calls atomic.Int32
	k := &keeper{then: func(context.Context, *corev1.ConfigMap) (reconcile.Result, error) {
		if calls.Add(1) <= 4 {
			return reconcile.Result{}, errors.New("not yet")
		}
		return reconcile.Result{}, nil
	}}
	l.startKeeper(l.newTaps("keeper"), k)
	l.must(l.you.Create(t.Context(), l.configMap("a", nil)))
	l.await("success", func(s *trace.State) bool {
		reconciles := reconcilesOf(s, "a")
		return len(reconciles) >= 6 && reconciles[len(reconciles)-1].Outcome() == trace.OutcomeDone
	})
	try, delay := 0, time.Duration(0)
	for _, reconcile := range reconcilesOf(l.timeline.Tip(), "a") {
		if reconcile.Outcome() != trace.OutcomeError {
			continue
		}
		if reconcile.End.Try != try+1 || reconcile.End.Delay <= delay {
			t.Errorf("try %d after %s follows try %d after %s", reconcile.End.Try, reconcile.End.Delay, try, delay)
		}
		try, delay = reconcile.End.Try, reconcile.End.Delay
	}
	if try != 4 {
		t.Errorf("%d tries, want 4", try)
	}
}
