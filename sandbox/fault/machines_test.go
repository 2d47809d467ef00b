package fault_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/fault"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func lost(d *metav1.Duration) spec {
	return spec{Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeLost, For: d}}
}

// TestKilledAtOnce checks that running containers are killed before Arm returns, and named in the status and in the
// journal.
func TestKilledAtOnce(t *testing.T) {
	b := newBench(t)
	b.effects.run("default/web-1/page", "default/web-2/page")
	b.arm("f", spec{Pod: &pod{Action: v1alpha1.PodKill, Name: "web-*"}})
	s := b.wantStatus("f", v1alpha1.FaultInjected, 1, 1, true)
	if want := "killed default/web-1/page, default/web-2/page when the fault was made"; s.Message != want {
		t.Errorf("message %q, want %q", s.Message, want)
	}
	events := b.injected()
	if len(events) != 1 {
		t.Fatal(events)
	}
	payload := trace.FaultPayload{Kind: trace.FaultPod, Detail: "Kill", Of: []string{"default/web-1/page", "default/web-2/page"}}
	if diff := cmp.Diff(payload, events[0].Fault()); diff != "" {
		t.Error(diff)
	}
}

// TestKillWaitsForAContainer checks that the fault waits while no container runs, and counts no match before.
func TestKillWaitsForAContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.arm("f", spec{Pod: &pod{Action: v1alpha1.PodOOMKill}})
		b.arm("never", spec{Pod: &pod{Action: v1alpha1.PodKill}, ExpireAfter: &metav1.Duration{Duration: time.Second}})
		time.Sleep(30 * time.Second) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		if s := b.wantStatus("f", v1alpha1.FaultArmed, 0, 0, false); s.Message != "no container that it chooses is running: it waits for one" {
			t.Errorf("message %q", s.Message)
		}
		b.wantStatus("never", v1alpha1.FaultExpired, 0, 0, true)
		b.effects.run("default/web/page")
		time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		s := b.wantStatus("f", v1alpha1.FaultInjected, 1, 1, true)
		if want := "killed default/web/page for want of memory when the fault was made"; s.Message != want {
			t.Errorf("message %q, want %q", s.Message, want)
		}
	})
}

// TestKillAtACall checks that a call while no container runs does not use up the fault.
func TestKillAtACall(t *testing.T) {
	b := newBench(t)
	b.arm("f", spec{Pod: &pod{Action: v1alpha1.PodKill}, Match: &match{Verbs: []string{"create"}, Nth: 2}})
	b.effects.run("default/web/page")
	b.must("POST "+songs, song("one", ""))
	b.wantStatus("f", v1alpha1.FaultArmed, 1, 0, false)
	b.effects.run()
	b.must("POST "+songs, song("two", ""))
	if s := b.wantStatus("f", v1alpha1.FaultArmed, 2, 0, false); !strings.Contains(s.Message, "it waits for another match") {
		t.Errorf("message %q", s.Message)
	}
	b.effects.run("default/web/page")
	b.must("POST "+songs, song("three", ""))
	s := b.wantStatus("f", v1alpha1.FaultInjected, 3, 1, true)
	if want := "killed default/web/page, just before create Song default/three"; s.Message != want {
		t.Errorf("message %q, want %q", s.Message, want)
	}
	if n := b.server.count(); n != 3 {
		t.Errorf("%d calls were sent", n)
	}
}

// TestLasting checks that the effect begins before the call is sent and is repaired once, however the fault ends.
func TestLasting(t *testing.T) {
	for name, end := range map[string]func(*bench){
		"released": func(b *bench) { b.faults.Release("f") },
		"deleted":  func(b *bench) { b.faults.Disarm("f") },
		"closed":   func(b *bench) { b.faults.Close() },
		"all":      func(b *bench) { b.faults.ReleaseAll() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := lost(nil)
			s.Match = &match{Verbs: []string{"create"}}
			b.arm("f", s)
			before := ""
			b.next = roundTrip(func(req *http.Request) (*http.Response, error) {
				before = b.effects.breaks()
				return b.server.RoundTrip(req)
			})
			b.live()
			b.must("POST "+songs, song("one", ""))
			if before != "break" {
				t.Errorf("when the call was sent there had been %q", before)
			}
			got := b.wantStatus("f", v1alpha1.FaultInjected, 1, 1, false)
			if want := "took the power of node-1, node-2 away, just before create Song default/one"; got.Message != want {
				t.Errorf("message %q, want %q", got.Message, want)
			}
			end(b)
			if got := b.effects.breaks(); got != "break repair" {
				t.Errorf("when it was over there had been %q", got)
			}
			b.faults.Close()
			if got := b.effects.breaks(); got != "break repair" {
				t.Errorf("at last there had been %q", got)
			}
		})
	}
}

// TestLastingForAWhile checks that the effect ends after its time without changing the phase, and that a fault with
// several times happens again only after that.
func TestLastingForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.arm("once", lost(&metav1.Duration{Duration: time.Second}))
		again := spec{
			Image: &v1alpha1.ImageFault{Name: "nginx", For: &metav1.Duration{Duration: 3 * time.Second}},
			Match: &match{Times: new(int32(0))},
		}
		b.arm("again", again)
		b.must("POST "+songs, song("one", ""))
		b.must("POST "+songs, song("two", ""))
		s := b.wantStatus("again", v1alpha1.FaultInjected, 2, 1, false)
		if want := "pulls of nginx fail, just before create Song default/one"; s.Message != want {
			t.Errorf("message %q, want %q", s.Message, want)
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		b.wantStatus("once", v1alpha1.FaultInjected, 1, 1, true)
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		b.must("POST "+songs, song("three", ""))
		b.wantStatus("again", v1alpha1.FaultInjected, 3, 2, false)
		if got := b.effects.breaks(); got != "break break repair repair break" {
			t.Errorf("there had been %q", got)
		}
	})
}

// TestNotBroken checks the messages of faults that cannot happen or cannot be repaired.
func TestNotBroken(t *testing.T) {
	b := newBench(t)
	b.arm("kept", lost(nil))
	b.effects.fail(errors.New("the node does not answer"))
	b.arm("never", lost(nil))
	if s := b.wantStatus("never", v1alpha1.FaultArmed, 0, 0, false); s.Message != "the node does not answer" {
		t.Errorf("message %q", s.Message)
	}
	b.faults.Release("kept")
	s := b.wantStatus("kept", v1alpha1.FaultReleased, 1, 1, true)
	if want := "set right what it kept wrong: the node does not answer"; s.Message != want {
		t.Errorf("message %q, want %q", s.Message, want)
	}
	if events := b.injected(); len(events) != 2 || events[1].Error == "" {
		t.Errorf("the journal has %v", events)
	}
	var _ fault.Effects = b.effects
}

// TestDeeds checks the message of each kind of fault.
func TestDeeds(t *testing.T) {
	b := newBench(t)
	second := metav1.Duration{Duration: time.Second}
	for want, s := range map[string]spec{
		"readiness probes of pods default/web-*/page (a=b,c=d) fail": {Pod: &pod{
			Action: v1alpha1.PodUnready, Namespace: "default", Name: "web-*", Container: "page", Selector: map[string]string{"c": "d", "a": "b"},
		}},
		"containers of pods * end when they start":       {Pod: &pod{Action: v1alpha1.PodCrash}},
		"containers of pods * are slow":                  {Pod: &pod{Action: v1alpha1.PodSlow}},
		"containers of pods web start late":              {Pod: &pod{Action: v1alpha1.PodStartLate, Name: "web", After: &second}},
		"took the power of node-1, node-2 away":          {Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeLost}},
		"restarted node-1":                               {Node: &v1alpha1.NodeFault{Action: v1alpha1.NodeRestart}},
		"pulls of nginx:1.* (in default) take 1s longer": {Image: &v1alpha1.ImageFault{Name: "nginx:1.*", Namespace: "default", Delay: second}},
		"pulls of nginx fail":                            {Image: &v1alpha1.ImageFault{Name: "nginx", Delay: second, Error: "unauthorized"}},
	} {
		b.arm(want, s)
		if got := b.status(want).Message; got != want+" when the fault was made" {
			t.Errorf("message %q, want %q", got, want)
		}
	}
}
