package lab_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// word matches the creation of the n-th word since the fault was armed.
func word(n int32) *v1alpha1.FaultMatch {
	return &v1alpha1.FaultMatch{Verbs: []string{"create"}, Kind: "Zundoko", Nth: n}
}

// TestCrash checks that the operator dies before or after it creates the third word, and that the next run creates it
// if it does not exist.
func TestCrash(t *testing.T) {
	for _, when := range []v1alpha1.When{v1alpha1.Before, v1alpha1.After} {
		t.Run(string(when), func(t *testing.T) {
			w := open(t)
			w.load(song())
			f := w.arm("crash", v1alpha1.FaultSpec{Operator: "zundoko", Crash: &v1alpha1.CrashFault{When: when}, Match: word(3)})
			w.sing("hikawa")
			w.sungOnce()
			w.awaitFault(f, "the crash to be done", func(s *v1alpha1.FaultStatus) bool {
				return injected(s) && s.Matched == 3 && s.Times == 1 && s.At != nil &&
					meta.IsStatusConditionTrue(s.Conditions, "Injected") && meta.IsStatusConditionTrue(s.Conditions, "Done")
			})
			w.awaitOperator("one more run", restarted(1))
			w.loop("hikawa", quiet)
			lost := map[v1alpha1.When]int{v1alpha1.Before: 0, v1alpha1.After: 1}[when]
			all := writes(trace.VerbCreate, "Zundoko")
			unseen := w.count(func(e *trace.Event) bool { return all(e) && e.Lost })
			if n := w.count(all); n != 5 || unseen != lost {
				t.Errorf("%d words were created, %d of them without an answer; want 5 and %d", n, unseen, lost)
			}
		})
	}
}

func TestCrashRestartsAfterAPause(t *testing.T) {
	w := open(t)
	w.load(song())
	f := w.arm("crash", v1alpha1.FaultSpec{Crash: &v1alpha1.CrashFault{RestartAfter: metav1.Duration{Duration: time.Hour}}})
	o := w.awaitOperator("the crash", func(o *v1alpha1.Operator) bool { return o.Status.State == v1alpha1.OperatorCrashed })
	if o.Status.Restarts != 0 {
		t.Errorf("crashed, it is %+v", o.Status)
	}
	w.awaitFault(f, "the fault to be done", func(s *v1alpha1.FaultStatus) bool {
		return injected(s) && meta.IsStatusConditionTrue(s.Conditions, "Done")
	})
	// The operator can be unloaded and loaded while it is down.
	w.must(w.you.Delete(t.Context(), o))
	w.load(song())
	w.sing("hikawa")
}

func TestCrashWhilePausedStaysPaused(t *testing.T) {
	w := open(t)
	w.load(song())
	w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Paused = true })
	paused := func(restarts int32) func(o *v1alpha1.Operator) bool {
		return func(o *v1alpha1.Operator) bool {
			return o.Status.State == v1alpha1.OperatorPaused && o.Status.ObservedGeneration == o.Generation && o.Status.Restarts == restarts
		}
	}
	w.awaitOperator("the pause", paused(0))
	w.ask("hikawa", time.Millisecond)
	w.arm("crash", v1alpha1.FaultSpec{Crash: &v1alpha1.CrashFault{}})
	w.awaitOperator("another run, as paused", paused(1))
	w.eventually("the key to be ready", func() error { return unless(w.readyKeys() > 0, "no key is ready") })
	if n := w.reconciles(); n != 0 {
		t.Errorf("%d reconciles began although it is paused", n)
	}
	w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Paused = false })
	w.awaitOperator("it to go on", restarted(1))
	w.awaitSung("hikawa")
}

// TestUnpausedWhileDown checks that the next run is not paused if the pause was removed while no run existed.
func TestUnpausedWhileDown(t *testing.T) {
	sandboxtest.Long(t)
	w := open(t)
	spec := song()
	spec.Paused = true
	w.load(spec)
	w.arm("crash", v1alpha1.FaultSpec{Crash: &v1alpha1.CrashFault{RestartAfter: metav1.Duration{Duration: 3 * time.Second}}})
	w.awaitOperator("the crash", func(o *v1alpha1.Operator) bool { return o.Status.State == v1alpha1.OperatorCrashed })
	w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Paused = false })
	w.awaitOperator("it to go on", restarted(1))
	w.sing("hikawa")
}

func TestHoldIsReleased(t *testing.T) {
	w := open(t)
	w.load(song())
	f := w.arm("hold", v1alpha1.FaultSpec{Operator: "zundoko", Hold: &v1alpha1.HoldFault{}, Match: word(3)})
	w.ask("hikawa", time.Millisecond)
	w.awaitFault(f, "the hold", func(s *v1alpha1.FaultStatus) bool {
		return injected(s) && !meta.IsStatusConditionTrue(s.Conditions, "Done")
	})
	var words v1beta1.ZundokoList
	w.must(w.you.List(t.Context(), &words, client.InNamespace(w.namespace)))
	if len(words.Items) != 2 {
		t.Errorf("%d words were said, want 2", len(words.Items))
	}
	w.loop("hikawa", func(s *v1alpha1.LoopStatus) bool { return !s.Quiet })
	f.Spec.Released = true
	w.must(w.you.Update(t.Context(), f))
	w.awaitFault(f, "the release", func(s *v1alpha1.FaultStatus) bool {
		return s.Phase == v1alpha1.FaultReleased && meta.IsStatusConditionTrue(s.Conditions, "Done")
	})
	w.awaitSung("hikawa")
	w.sungOnce()
}

// TestHeldOperatorCanBeDeleted checks that a held call does not block the lab.
func TestHeldOperatorCanBeDeleted(t *testing.T) {
	w := open(t)
	w.load(song())
	f := w.arm("hold", v1alpha1.FaultSpec{Hold: &v1alpha1.HoldFault{When: v1alpha1.After}, Match: word(1)})
	w.ask("hikawa", time.Millisecond)
	w.awaitFault(f, "the hold", injected)
	w.must(w.you.Delete(t.Context(), w.operator()))
	w.awaitFault(f, "nothing to be held", func(s *v1alpha1.FaultStatus) bool { return meta.IsStatusConditionTrue(s.Conditions, "Done") })
	w.must(w.you.Delete(t.Context(), f))
	w.load(song())
	w.awaitSung("hikawa")
}

// TestReplies checks that the song ends correctly whatever the API server replies.
func TestReplies(t *testing.T) {
	w := open(t)
	w.load(song())
	for i, reply := range []v1alpha1.APIReply{v1alpha1.ReplyLost, v1alpha1.ReplyInternalError, v1alpha1.ReplyConflict, v1alpha1.ReplyForbidden, v1alpha1.ReplyTrue} {
		w.namespace = w.newNamespace()
		f := w.arm("reply", v1alpha1.FaultSpec{
			API: &v1alpha1.APIFault{Reply: reply, Delay: metav1.Duration{Duration: 10 * time.Millisecond}}, Match: word(2),
		})
		w.sing("hikawa")
		w.sungOnce()
		w.awaitFault(f, string(reply), func(s *v1alpha1.FaultStatus) bool { return injected(s) && s.Times == 1 })
		loop := w.loop("hikawa", quiet)
		wantFailed := int64(1)
		if reply == v1alpha1.ReplyTrue {
			wantFailed = 0
		}
		// After a lost reply the word exists, so creating it again fails once more.
		if failed := loop.Status.Writes.Failed; failed < wantFailed || failed > 2*wantFailed {
			t.Errorf("%d %s: %d writes failed: %+v", i, reply, failed, loop.Status)
		}
	}
}

func TestWatches(t *testing.T) {
	w := open(t)
	w.load(song())
	for _, action := range []v1alpha1.WatchAction{v1alpha1.WatchCut, v1alpha1.WatchDelay, v1alpha1.WatchCoalesce} {
		w.namespace = w.newNamespace()
		spec := v1alpha1.FaultSpec{
			Watch: &v1alpha1.WatchFault{Action: action},
			Match: &v1alpha1.FaultMatch{Verbs: []string{"ADDED"}, Kind: "Zundoko", Name: "hikawa-zundoko-002"},
		}
		f := w.arm("watch", spec)
		w.ask("hikawa", time.Millisecond)
		w.awaitFault(f, string(action), injected)
		switch action {
		case v1alpha1.WatchDelay:
			f.Spec.Released = true
			w.must(w.you.Update(t.Context(), f))
		case v1alpha1.WatchCoalesce:
			// The operator learns of the second word by the word's next event.
			second := &v1beta1.Zundoko{}
			w.must(w.you.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "hikawa-zundoko-002"}, second))
			second.Labels = map[string]string{"seen": "now"}
			w.must(w.you.Update(t.Context(), second))
		}
		w.awaitSung("hikawa")
		w.sungOnce()
	}
}

// TestConflict checks a conflicting write by another client, and its name in the journal.
func TestConflict(t *testing.T) {
	w := open(t)
	spec := song()
	spec.Variant = "classic" // the hardened variant has no conflicts, because it applies
	w.load(spec)
	f := w.arm("conflict", v1alpha1.FaultSpec{
		Conflict: &v1alpha1.ConflictFault{}, Match: &v1alpha1.FaultMatch{Verbs: []string{"update"}, Kind: "Hikawa"},
	})
	w.sing("hikawa")
	w.awaitFault(f, "the conflict", injected)
	if loop := w.loop("hikawa", quiet); loop.Status.Conflicts < 1 { // one more if the operator's cache is late
		t.Errorf("the loop is %+v; want a conflict", loop.Status)
	}
	w.eventually("the second writer to be in the journal", func() error {
		return unless(w.count(func(e *trace.Event) bool { return e.Actor == "somebody-else" && e.IsWrite() }) == 1, "it is not")
	})
	w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Variant = "" }) // the next test needs the other CRDs
	w.awaitOperator("the other variant", running)
}

// TestControlPlane kills each program of the control plane, at once and in the middle of a song, and checks that
// everything recovers. The API server is killed by the request that it is answering.
func TestControlPlane(t *testing.T) {
	sandboxtest.Long(t)
	w := open(t)
	w.load(song())
	for _, program := range sandbox.Programs() {
		for i, match := range []*v1alpha1.FaultMatch{nil, word(3)} {
			pid := box.PIDs()[program]
			kill := v1alpha1.FaultSpec{ControlPlane: &v1alpha1.ControlPlaneFault{Program: program}, Match: match}
			// The answer may be lost with the API server; the lab has the fault all the same.
			w.eventually("the fault to be armed", func() error {
				return unlessThere(w.you.Create(t.Context(), w.fault(fmt.Sprint("kill-", program, i), kill)))
			})
			name := fmt.Sprint(program, i)
			w.eventually("a song to be asked for", func() error { // the API server may be unreachable
				hikawa := &v1beta1.Hikawa{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
				hikawa.Spec.IntervalMillis = 1
				return unlessThere(w.you.Create(t.Context(), hikawa))
			})
			w.eventually(program+" to be another one", func() error {
				now := box.PIDs()[program]
				return unless(now != 0 && now != pid, "it is not")
			})
			w.awaitSung(name)
			if match == nil {
				continue
			}
			w.eventually("the fault to be told of", func() error {
				var faults v1alpha1.FaultList
				if err := w.you.List(t.Context(), &faults); err != nil {
					return err
				}
				return unless(slices.ContainsFunc(faults.Items, func(f v1alpha1.Fault) bool {
					return f.Name == w.namespace+"-"+fmt.Sprint("kill-", program, 1) && injected(&f.Status)
				}), "it is not injected")
			})
		}
		w.loop(program+"1", quiet)
	}
	if o := w.operator(); !running(o) || o.Status.Restarts != 0 {
		t.Errorf("the operator is %+v", o.Status)
	}
	notes := w.count(func(e *trace.Event) bool {
		return e.Kind == trace.KindNote && slices.Contains(sandbox.Programs(), e.Actor)
	})
	if want := 2 * len(sandbox.Programs()); notes < want {
		t.Errorf("the journal tells of %d deaths, want %d", notes, want)
	}
}

// unlessThere returns the error of a creation, except that the object exists, because an earlier try may have got no
// answer.
func unlessThere(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// TestRestartWhileTheAPIServerIsAway checks that the operator comes back when the API server does.
func TestRestartWhileTheAPIServerIsAway(t *testing.T) {
	sandboxtest.Long(t)
	w := open(t)
	w.load(song())
	w.arm("crash", v1alpha1.FaultSpec{Crash: &v1alpha1.CrashFault{}, Match: word(2)})
	w.arm("kill", v1alpha1.FaultSpec{ControlPlane: &v1alpha1.ControlPlaneFault{Program: "kube-apiserver"}, Match: word(2)})
	w.ask("hikawa", time.Millisecond)
	w.awaitSung("hikawa")
	w.sungOnce()
	w.awaitOperator("one more run", restarted(1))
}

func TestRefusedFaults(t *testing.T) {
	w := open(t)
	for name, spec := range map[string]v1alpha1.FaultSpec{
		"nothing": {},
		"nobody":  {Operator: "nobody", Crash: &v1alpha1.CrashFault{}},
		"program": {ControlPlane: &v1alpha1.ControlPlaneFault{Program: "kubelet"}},
	} {
		err := w.you.Create(t.Context(), &v1alpha1.Fault{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFaultsEndWithTheLab checks that held calls go on when the lab closes.
func TestFaultsEndWithTheLab(t *testing.T) {
	w := open(t)
	w.load(song())
	f := w.arm("hold", v1alpha1.FaultSpec{Hold: &v1alpha1.HoldFault{}, Match: word(1)})
	w.ask("hikawa", time.Millisecond)
	w.awaitFault(f, "the hold", injected)
	w.must(w.lab.Begin(context.WithoutCancel(t.Context()), w.lab.NewJournal()))
	w.load(song())
	w.awaitSung("hikawa")
}

// TestPrivate checks that a private lab arms faults without its API, and says which need a lab's own control plane.
func TestPrivate(t *testing.T) {
	w := openWith(t, lab.Options{Cluster: box, Private: true, Installed: crds})
	for what, spec := range map[string]v1alpha1.FaultSpec{
		"did not start": {ControlPlane: &v1alpha1.ControlPlaneFault{Program: "etcd"}},
		"spec.node":     {Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeLost}},
	} {
		if err := w.lab.Arm(spec); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want an error with %q, not %v", what, err)
		}
	}
	if err := w.you.List(t.Context(), &v1alpha1.FaultList{}); err == nil {
		t.Error("a private lab serves its API")
	}
	_, err := w.lab.Load(t.Context(), "zundoko", v1alpha1.OperatorSpec{})
	w.must(err)
	w.must(w.lab.Arm(v1alpha1.FaultSpec{Operator: "zundoko", Match: &v1alpha1.FaultMatch{Verbs: []string{"create"}}, Crash: &v1alpha1.CrashFault{When: v1alpha1.After}}))
	w.ask("sings", time.Millisecond)
	w.eventually("the crash", func() error {
		for _, e := range w.lab.Journal().Since(0) {
			if e.Kind == trace.KindFault && e.Fault().Kind == trace.FaultCrash {
				return nil
			}
		}
		return errors.New("no crash yet")
	})
}
