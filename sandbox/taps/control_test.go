package taps_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func ready(n int) func(*trace.State) bool {
	return func(s *trace.State) bool {
		got := 0
		for _, i := range s.Queue() {
			if i.Ready {
				got++
			}
		}
		return got == n
	}
}

func TestPauseMergesAndStepTakesOneKey(t *testing.T) {
	l := newLab(t)
	op := l.startKeeper(l.newTaps("keeper"), &keeper{})
	op.taps.Pause()
	for _, name := range []string{"a", "b", "c"} {
		l.must(l.you.Create(t.Context(), l.configMap(name, nil)))
	}
	for i := range 2 {
		l.must(l.you.Update(t.Context(), l.configMap("a", map[string]string{"i": fmt.Sprint(i)})))
	}
	l.await("three keys with five events", func(s *trace.State) bool {
		return ready(3)(s) && s.Queue()[0].Merged() == 2
	})
	s := l.timeline.Tip()
	if !s.Mode().Paused || len(s.Running()) != 0 {
		t.Errorf("mode %+v, %d reconciles run", s.Mode(), len(s.Running()))
	}
	op.taps.Step()
	l.await("one reconcile, and its own echo in the queue", func(s *trace.State) bool {
		return ended("a", 1)(s) && ready(3)(s)
	})
	reconcile := reconcilesOf(l.timeline.Tip(), "a")[0]
	if reconcile.Merged() != 2 {
		t.Errorf("the step answers %d events, want 3", len(reconcile.Woken))
	}
	op.taps.Resume()
	op.taps.StepBy(trace.Demo)
	for verb, want := range map[string]string{trace.VerbResume: "you", trace.VerbStep: trace.Demo} {
		e := l.find(func(e *trace.Event) bool { return e.Kind == trace.KindControl && e.Verb == verb && e.Actor == want })
		if e == nil {
			t.Errorf("%q is not recorded as an action of %q", verb, want)
		}
	}
	op.taps.Resume()
	l.await("everything to run", func(s *trace.State) bool {
		return ended("a", 2)(s) && ended("b", 2)(s) && ended("c", 2)(s) && ready(0)(s)
	})
}

func TestTimerRunsOutWhilePaused(t *testing.T) {
	l := newLab(t)
	k := &keeper{}
	op := l.startKeeper(l.newTaps("keeper"), k)
	k.then = func(ctx context.Context, cm *corev1.ConfigMap) (reconcile.Result, error) {
		op.taps.Pause() // after the key was taken, before the timer is set
		// A running reconcile goes on, with its requests that pass the client by.
		return reconcile.Result{RequeueAfter: time.Millisecond}, op.mgr.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(cm), &corev1.ConfigMap{})
	}
	l.must(l.you.Create(t.Context(), l.configMap("a", nil)))
	l.await("the timer to run out", func(s *trace.State) bool {
		return l.find(func(e *trace.Event) bool { return e.Kind == trace.KindReady }) != nil
	})
	l.await("a key that waits", ready(1))
	if n := len(reconcilesOf(l.timeline.Tip(), "a")); n != 2 {
		t.Errorf("%d reconciles ran, want 2", n)
	}
	op.stop() // while workers are held
	l.await("an empty queue", ready(0))
}

func TestHeldWriteShowsItsPlan(t *testing.T) {
	l := newLab(t)
	op := l.startKeeper(l.newTaps("keeper"), &keeper{})
	op.taps.StepCall()
	l.must(l.you.Create(t.Context(), l.configMap("a", nil)))
	l.await("a held write", func(s *trace.State) bool { return len(s.Running()) == 1 && s.Running()[0].Held != nil })
	s := l.timeline.Tip()
	held := s.Running()[0].Held
	if held.Verb != trace.VerbCreate || held.Object.Kind != "Secret" || held.Before != nil || !strings.Contains(string(held.After), `"name":"a"`) {
		t.Errorf("held: %+v %s", held, held.After)
	}
	var secret corev1.Secret
	if err := l.you.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "a"}, &secret); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the held Secret: %v, want that it does not exist", err)
	}
	for _, lang := range []trace.Language{trace.English, trace.Japanese} {
		if why := s.WhyReconcile(s.Running()[0], lang); !strings.Contains(why, "Secret a") {
			t.Errorf("%s", why)
		}
	}
	op.taps.StepCall()
	l.await("the write to be sent", func(s *trace.State) bool {
		return ended("a", 1)(s) && reconcilesOf(s, "a")[0].Tally.Writes == 1
	})
	if steps := reconcilesOf(l.timeline.Tip(), "a")[0].Calls(); steps[len(steps)-1].Cause != held.Seq {
		t.Errorf("the call's cause is %d, want the hold %d", steps[len(steps)-1].Cause, held.Seq)
	}
	op.taps.Resume()
	l.await("the echo", ended("a", 2))
	if m := l.timeline.Tip().Mode(); m.Paused || m.HoldWrites {
		t.Errorf("mode after resume: %+v", m)
	}
}

func TestStopWhileAWriteIsHeld(t *testing.T) {
	l := newLab(t)
	op := l.startKeeper(l.newTaps("keeper"), &keeper{})
	op.taps.HoldWrites()
	l.must(l.you.Create(t.Context(), l.configMap("a", nil)))
	l.await("a held write", func(s *trace.State) bool { return len(s.Running()) == 1 && s.Running()[0].Held != nil })
	if op.taps.HeldWrites() != 1 {
		t.Errorf("%d writes are held", op.taps.HeldWrites())
	}
	op.stop()
	l.await("nothing to run", func(s *trace.State) bool { return len(s.Running()) == 0 })
	reconcile := reconcilesOf(l.timeline.Tip(), "a")[0]
	if reconcile.Tally.Writes != 0 || reconcile.Outcome() != trace.OutcomeError || !strings.Contains(reconcile.End.Error, "never sent") {
		t.Errorf("the held reconcile ended %s: %s", reconcile.Outcome(), reconcile.End.Error)
	}
	op.taps.Close()
	if op.taps.HeldWrites() != 0 {
		t.Error("Close holds on to writes")
	}
	if e := l.find(func(e *trace.Event) bool { return e.Verb == trace.VerbSendWrites || e.Verb == trace.VerbResume }); e != nil {
		t.Errorf("the journal says that somebody let go: %+v", e)
	}
}

// TestStopWhilePaused: who quits while the loop is paused wants no more of it. A key that waits is not reconciled.
func TestStopWhilePaused(t *testing.T) {
	l := newLab(t)
	op := l.startKeeper(l.newTaps("keeper"), &keeper{})
	op.taps.Pause()
	l.must(l.you.Create(t.Context(), l.configMap("a", nil)))
	l.await("a key that waits", func(s *trace.State) bool { return len(s.Queue()) == 1 })
	op.stop()
	l.await("the end of the operator", func(s *trace.State) bool { return s.ModeOf("keeper").Down })
	if reconciles := reconcilesOf(l.timeline.Tip(), "a"); len(reconciles) > 0 {
		t.Errorf("it was reconciled: %+v", reconciles[0].End)
	}
}

func TestLeaderElectionGoesOnWhilePaused(t *testing.T) {
	l := newLab(t)
	// A manager that cannot renew its lease in time ends; on a busy machine a call may take seconds.
	lease, renew, retry := 60*time.Second, 40*time.Second, 100*time.Millisecond
	k := &keeper{}
	op := l.start(l.newTaps("keeper"), ctrl.Options{
		LeaderElection: true, LeaderElectionID: "keeper", LeaderElectionNamespace: l.namespace,
		LeaseDuration: &lease, RenewDeadline: &renew, RetryPeriod: &retry, LeaderElectionReleaseOnCancel: true,
	}, k.setup)
	l.must(l.you.Create(t.Context(), l.configMap("warm-up", nil)))
	l.await("the leader to work", ended("warm-up", 2))
	op.taps.Pause()
	op.taps.HoldWrites()
	version := func() string {
		var lease coordinationv1.Lease
		l.must(l.you.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "keeper"}, &lease))
		return lease.ResourceVersion
	}
	last := version()
	deadline := time.Now().Add(patience)
	for renewed := 0; renewed < 5; {
		if v := version(); v != last {
			last, renewed = v, renewed+1
		}
		if time.Now().After(deadline) {
			l.Fatalf("the lease was renewed %d times", renewed)
		}
		<-time.After(10 * time.Millisecond)
	}
	if e := l.find(func(e *trace.Event) bool {
		return e.Operator == "keeper" && e.Object.Kind == "Lease" && e.Via != trace.ViaRecorder
	}); e != nil {
		t.Errorf("leader election is in the journal: %+v", e)
	}
	op.taps.Close()
	l.must(l.you.Create(t.Context(), l.configMap("a", nil)))
	l.await("work after the pause", ended("a", 2))
}
