package fault_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/fault"
)

func crash(when v1alpha1.When, match *v1alpha1.FaultMatch) v1alpha1.FaultSpec {
	return v1alpha1.FaultSpec{
		Match: match,
		Crash: &v1alpha1.CrashFault{When: when, RestartAfter: metav1.Duration{Duration: time.Second}},
	}
}

// TestCrashInReconcile checks that the goroutine ends, that its deferred writes meet a dead injector and end it again, and
// that nothing unexpected reached the API server.
func TestCrashInReconcile(t *testing.T) {
	for _, c := range []struct {
		when v1alpha1.When
		sent int
	}{{v1alpha1.Before, 1}, {v1alpha1.After, 2}, {"", 2}} {
		b := newBench(t)
		b.arm("f", crash(c.when, &v1alpha1.FaultMatch{Nth: 2}))
		ctx := reconciling(t)
		var past, deferred bool
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() {
				defer func() { deferred = true }()
				_, _, _ = b.sendAs(ctx, "PUT "+songs+"/one/status", song("one", ""))
				past = true
			}()
			_, _, _ = b.sendAs(ctx, "POST "+songs, song("one", ""))
			_, _, _ = b.sendAs(ctx, "POST "+songs, `{"kind":"Song","metadata":{"generateName":"demo-","namespace":"default"}}`)
			past = true
		})
		wg.Wait()
		if past || !deferred {
			t.Errorf("%s: the reconcile went on: %t; what was deferred ran: %t", c.when, past, deferred)
		}
		if n := b.server.count(); n != c.sent {
			t.Errorf("%s: %d calls were sent: %v", c.when, n, b.server.seen)
		}
		if diff := cmp.Diff([]string{"zundoko 1s"}, b.effects.crashes); diff != "" {
			t.Error(diff)
		}
		s := b.wantStatus("f", v1alpha1.FaultInjected, 2, 1, true)
		want := "create Song default/demo-* in reconcile #4"
		if c.sent == 2 {
			want = "create Song default/demo-00002 in reconcile #4" // the API server generated the name
		}
		if s.Message != want {
			t.Errorf("%s: message %q, want %q", c.when, s.Message, want)
		}
		events := b.injected()
		if len(events) != 1 {
			t.Fatal(events)
		}
		e := *events[0]
		if e.Actor != "lab" || e.Operator != "zundoko" || e.Reason != "f" || e.Reconcile != 4 || e.Verb != "create" ||
			e.Object.Kind != "Song" || e.Message != want || e.Controller != "hikawa" {
			t.Errorf("%+v", e)
		}
		if c.sent == 2 && (e.ResourceVersion != "2" || e.Object.UID != "u1") {
			t.Errorf("%+v", e)
		}
		var lost []string
		if c.sent == 2 {
			lost = []string{"create Song demo-00002, rv 2, in #4"}
		}
		if diff := cmp.Diff(lost, b.lost()); diff != "" {
			t.Error(diff)
		}
	}
}

// TestCrashOutsideOfReconcile checks that the call fails, and that nothing passes any more, including leases and
// discovery, until the next run.
func TestCrashOutsideOfReconcile(t *testing.T) {
	b := newBench(t)
	b.arm("f", crash(v1alpha1.Before, &v1alpha1.FaultMatch{}))
	for _, what := range []string{"POST " + songs, "GET /api", "GET " + songs + "?watch=1", "PUT /apis/coordination.k8s.io/v1/namespaces/x/leases/y"} {
		if _, _, err := b.send(what, "{}"); err == nil {
			t.Errorf("%s passed", what)
		}
	}
	if n := b.server.count(); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
	b.live()
	b.must("POST "+songs, "{}")
	b.wantStatus("f", v1alpha1.FaultInjected, 1, 1, true)
}

// TestReplyUnderWay checks that an answer which comes after the operator's death is dropped.
func TestReplyUnderWay(t *testing.T) {
	b := newBench(t)
	b.next = roundTrip(func(req *http.Request) (*http.Response, error) {
		resp, err := b.server.RoundTrip(req)
		b.injector.Die()
		return resp, err
	})
	b.live()
	if _, _, err := b.send("POST "+songs, song("one", "")); err == nil {
		t.Error("the answer came")
	}
	if n := b.server.count(); n != 1 {
		t.Errorf("%d calls were sent", n)
	}
	if diff := cmp.Diff([]string{"create Song one, rv 1, in #0"}, b.lost()); diff != "" {
		t.Error(diff)
	}
}

// TestSlowKill checks that the operator's requests go on while it is being killed, and that nobody takes it for dead before.
func TestSlowKill(t *testing.T) {
	b := newBench(t)
	killing, killed := make(chan struct{}), make(chan struct{})
	var over atomic.Bool
	b.injector.OnDie(func() {
		close(killing)
		<-killed
		over.Store(true)
	})
	var dying sync.WaitGroup
	dying.Go(b.injector.Die)
	<-killing
	b.must("GET "+songs+"?watch=1", "")
	dying.Go(func() {
		b.injector.Die()
		if !over.Load() {
			t.Error("another death is over before it was killed")
		}
	})
	dying.Go(func() {
		if !b.injector.IsDead() || !over.Load() {
			t.Error("it is not known that it is being killed")
		}
	})
	close(killed)
	dying.Wait()
	if _, _, err := b.send("GET "+songs, ""); err == nil {
		t.Error("it lives")
	}
}

func TestCrashAtOnce(t *testing.T) {
	b := newBench(t)
	other := b.faults.Injector("other")
	defer other.Die()
	b.arm("mine", v1alpha1.FaultSpec{Operator: "zundoko", Crash: &v1alpha1.CrashFault{}})
	b.wantStatus("mine", v1alpha1.FaultInjected, 1, 1, true)
	if diff := cmp.Diff([]string{"zundoko 0s"}, b.effects.crashes); diff != "" {
		t.Error(diff)
	}
	// Without an operator the fault waits.
	b.arm("next", v1alpha1.FaultSpec{Operator: "zundoko", Crash: &v1alpha1.CrashFault{}})
	b.wantStatus("next", v1alpha1.FaultArmed, 0, 0, false)
	b.live()
	if _, _, err := b.send("GET /api", ""); err == nil {
		t.Error("it lives")
	}
	b.wantStatus("next", v1alpha1.FaultInjected, 1, 1, true)
	b.live()
	b.must("GET /api", "")
	// All operators crash, but that counts as one time.
	b.arm("all", v1alpha1.FaultSpec{Crash: &v1alpha1.CrashFault{}})
	b.wantStatus("all", v1alpha1.FaultInjected, 1, 1, true)
	if n := len(b.effects.crashes); n != 4 {
		t.Error(b.effects.crashes)
	}
}

func TestHold(t *testing.T) {
	hold := func(when v1alpha1.When, d time.Duration) v1alpha1.FaultSpec {
		s := v1alpha1.FaultSpec{Match: &v1alpha1.FaultMatch{}, Hold: &v1alpha1.HoldFault{When: when}}
		if d > 0 {
			s.Hold.For = &metav1.Duration{Duration: d}
		}
		return s
	}
	for _, c := range []struct {
		name  string
		spec  v1alpha1.FaultSpec
		sent  int // number of calls sent while it is held
		free  func(*bench)
		phase v1alpha1.FaultPhase
	}{
		{"released", hold("", 0), 0, func(b *bench) { b.faults.Release("f") }, v1alpha1.FaultReleased},
		{"disarmed", hold(v1alpha1.Before, 0), 0, func(b *bench) { b.faults.Disarm("f") }, ""},
		{"after", hold(v1alpha1.After, 0), 1, func(b *bench) { b.faults.Release("f") }, v1alpha1.FaultReleased},
		{"for a time", hold("", time.Hour), 0, func(*bench) { time.Sleep(time.Hour) }, v1alpha1.FaultInjected}, //nolint:forbidigo // in a bubble
		{"expired", func() v1alpha1.FaultSpec {
			s := hold("", 0)
			s.ExpireAfter = &metav1.Duration{Duration: time.Minute}
			return s
		}(), 0, func(*bench) { time.Sleep(time.Minute) }, v1alpha1.FaultExpired}, //nolint:forbidigo // in a bubble
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.arm("f", c.spec)
				done := make(chan error, 1)
				go func() {
					_, _, err := b.send("POST "+songs, song("one", ""))
					done <- err
				}()
				synctest.Wait()
				select {
				case err := <-done:
					t.Fatal("it is not held", err)
				default:
				}
				b.wantStatus("f", v1alpha1.FaultInjected, 1, 1, false)
				if n := b.server.count(); n != c.sent {
					t.Errorf("%d calls were sent", n)
				}
				c.free(b)
				synctest.Wait()
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
				default:
					t.Fatal("it is still held")
				}
				if c.phase != "" {
					b.wantStatus("f", c.phase, 1, 1, true)
				}
				b.must("POST "+songs, song("one", ""))
			})
		})
	}
}

// TestHoldGivesWay checks that a held call returns when its context ends or its operator dies.
func TestHoldGivesWay(t *testing.T) {
	for _, when := range []v1alpha1.When{v1alpha1.Before, v1alpha1.After} {
		for _, how := range []string{"context", "death"} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.arm("f", v1alpha1.FaultSpec{Match: &v1alpha1.FaultMatch{Times: new(int32(0))}, Hold: &v1alpha1.HoldFault{When: when}})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() {
					_, _, err := b.sendAs(ctx, "POST "+songs, "{}")
					done <- err
				}()
				synctest.Wait()
				if how == "context" {
					cancel()
				} else {
					b.injector.Die()
				}
				if err := <-done; err == nil || how == "context" && !errors.Is(err, context.Canceled) {
					t.Error(when, how, err)
				}
				b.wantStatus("f", v1alpha1.FaultInjected, 1, 1, false)
			})
		}
	}
}

func TestReplies(t *testing.T) {
	for _, c := range []struct {
		reply  v1alpha1.APIReply
		code   int
		reason metav1.StatusReason
		sent   int
	}{
		{"", 500, metav1.StatusReasonInternalError, 0},
		{v1alpha1.ReplyConflict, 409, metav1.StatusReasonConflict, 0},
		{v1alpha1.ReplyForbidden, 403, metav1.StatusReasonForbidden, 0},
		{v1alpha1.ReplyServiceUnavailable, 503, metav1.StatusReasonServiceUnavailable, 0},
		{v1alpha1.ReplyTooManyRequests, 429, metav1.StatusReasonTooManyRequests, 0},
	} {
		b := newBench(t)
		b.arm("f", v1alpha1.FaultSpec{Match: &v1alpha1.FaultMatch{}, API: &v1alpha1.APIFault{Reply: c.reply}})
		resp, err := b.way.RoundTrip(b.request(t.Context(), "PUT "+songs+"/one", song("one", "")))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != c.code || !strings.Contains(string(raw), `"reason":"`+string(c.reason)+`"`) || resp.Header.Get("Retry-After") != "" ||
			strings.Contains(string(raw), "retryAfterSeconds") || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s %v %s", c.reply, resp.Status, resp.Header, raw)
		}
		if n := b.server.count(); n != c.sent {
			t.Errorf("%s: %d calls were sent", c.reply, n)
		}
		if s := b.wantStatus("f", v1alpha1.FaultInjected, 1, 1, true); s.Message != "update Song default/one" {
			t.Error(s.Message)
		}
		b.must("PUT "+songs+"/one", song("one", ""))
	}
}

func TestNoAnswer(t *testing.T) {
	b := newBench(t)
	b.arm("timeout", v1alpha1.FaultSpec{Match: &v1alpha1.FaultMatch{Nth: 1}, API: &v1alpha1.APIFault{Reply: v1alpha1.ReplyTimeout}})
	b.arm("lost", v1alpha1.FaultSpec{Match: &v1alpha1.FaultMatch{Nth: 2}, API: &v1alpha1.APIFault{Reply: v1alpha1.ReplyLost}})
	_, _, err := b.send("POST "+songs, song("one", ""))
	var n net.Error
	if !errors.As(err, &n) || !n.Timeout() || !errors.Is(err, context.DeadlineExceeded) || b.server.count() != 0 {
		t.Errorf("%v, %d calls were sent", err, b.server.count())
	}
	_, _, err = b.send("POST "+songs, song("one", ""))
	if !errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &n) && n.Timeout() || b.server.count() != 1 {
		t.Errorf("%v, %d calls were sent", err, b.server.count())
	}
	if e := b.injected()[1]; e.Status != 200 || e.ResourceVersion != "1" {
		t.Errorf("%+v", e)
	}
	if diff := cmp.Diff([]string{"create Song one, rv 1, in #0"}, b.lost()); diff != "" {
		t.Error(diff)
	}
}

func TestDelay(t *testing.T) {
	for _, reply := range []v1alpha1.APIReply{"", v1alpha1.ReplyTrue, v1alpha1.ReplyLost, v1alpha1.ReplyTimeout, v1alpha1.ReplyConflict} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.arm("f", v1alpha1.FaultSpec{API: &v1alpha1.APIFault{Reply: reply, Delay: metav1.Duration{Duration: time.Minute}}})
			begun := time.Now()
			code, _, err := b.send("POST "+songs, song("one", ""))
			if took := time.Since(begun); took != time.Minute {
				t.Errorf("%s: it took %s", reply, took)
			}
			good := err == nil && code == 200
			if truth := reply == "" || reply == v1alpha1.ReplyTrue; truth != good {
				t.Errorf("%s: %d %v", reply, code, err)
			}
		})
	}
}

func TestConflict(t *testing.T) {
	b := newBench(t)
	b.arm("f", v1alpha1.FaultSpec{Match: &v1alpha1.FaultMatch{Nth: 2, Times: new(int32(2))}, Conflict: &v1alpha1.ConflictFault{}})
	b.arm("patched", v1alpha1.FaultSpec{
		Match:    &v1alpha1.FaultMatch{Subresource: "status"},
		Conflict: &v1alpha1.ConflictFault{Patch: &runtime.RawExtension{Raw: []byte(`{"spec":{"loud":true}}`)}},
	})
	b.must("POST "+songs, song("one", "")) // no second writer can interfere with a create
	b.must("DELETE "+songs+"/one", "")
	b.must("PUT "+songs+"/one", song("one", ""))
	b.must("PATCH "+songs+"/one "+merge, "{}")
	b.must("PUT "+songs+"/one/status", song("one", ""))
	want := []string{
		`songs default/one {"metadata":{"annotations":{"operator-lab.dev/touched":"2"}}}`,
		`songs default/one {"metadata":{"annotations":{"operator-lab.dev/touched":"3"}}}`,
		`songs default/one {"spec":{"loud":true}}`,
	}
	if diff := cmp.Diff(want, b.effects.patches); diff != "" {
		t.Error(diff)
	}
	b.wantStatus("f", v1alpha1.FaultInjected, 3, 2, true)
	// If the second writer fails, the call goes on, and the fault has not happened.
	b.arm("fails", v1alpha1.FaultSpec{Conflict: &v1alpha1.ConflictFault{}})
	b.effects.err = errors.New("it is locked")
	b.must("PUT "+songs+"/one", song("one", ""))
	if s := b.wantStatus("fails", v1alpha1.FaultArmed, 1, 0, false); !strings.Contains(s.Message, "it is locked") {
		t.Error(s.Message)
	}
	b.effects.err = nil
	b.must("PUT "+songs+"/one", song("one", ""))
	b.wantStatus("fails", v1alpha1.FaultInjected, 2, 1, true)
}

func TestControlPlane(t *testing.T) {
	b := newBench(t)
	b.arm("now", v1alpha1.FaultSpec{ControlPlane: &v1alpha1.ControlPlaneFault{Program: "etcd"}})
	b.arm("then", v1alpha1.FaultSpec{
		ControlPlane: &v1alpha1.ControlPlaneFault{Program: "kube-apiserver"},
		Match:        &v1alpha1.FaultMatch{Verbs: []string{"delete"}},
	})
	b.must("POST "+songs, song("one", ""))
	b.wantStatus("then", v1alpha1.FaultArmed, 0, 0, false)
	b.must("DELETE "+songs+"/one", "")
	b.wantStatus("then", v1alpha1.FaultInjected, 1, 1, true)
	b.faults.Close()
	if s := b.wantStatus("now", v1alpha1.FaultReleased, 1, 1, true); s.Message != "killed etcd when the fault was made" {
		t.Error(s.Message)
	}
	if len(b.effects.kills) != 2 {
		t.Error(b.effects.kills)
	}
}

// TestFirstFaultWins checks that of two faults that end a call the second has not happened, and happens at its next
// match.
func TestFirstFaultWins(t *testing.T) {
	b := newBench(t)
	reply := func(r v1alpha1.APIReply) v1alpha1.FaultSpec {
		return v1alpha1.FaultSpec{Match: &v1alpha1.FaultMatch{}, API: &v1alpha1.APIFault{Reply: r}}
	}
	b.arm("z", reply(v1alpha1.ReplyConflict))
	b.arm("a", reply(v1alpha1.ReplyForbidden))
	for i, want := range []int{409, 403, 200} {
		code, _, err := b.send("PUT "+songs+"/one", song("one", ""))
		if err != nil || code != want {
			t.Errorf("call %d: %d %v, want %d", i, code, err, want)
		}
	}
	b.wantStatus("z", v1alpha1.FaultInjected, 1, 1, true)
	b.wantStatus("a", v1alpha1.FaultInjected, 2, 1, true)
}

func TestLifeOfAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var changed []string
		cancel := b.faults.Subscribe(func(name string) {
			s, ok := b.faults.Status(name) // may be called at any time
			changed = append(changed, name+" "+string(s.Phase))
			_ = ok
		})
		spec := fail(v1alpha1.FaultMatch{Nth: 3})
		spec.ExpireAfter = &metav1.Duration{Duration: time.Minute}
		b.arm("f", spec)
		if err := b.faults.Arm("f", spec); !errors.Is(err, fault.ErrExists) {
			t.Error(err)
		}
		if err := b.faults.Arm("g", v1alpha1.FaultSpec{}); err == nil {
			t.Error("nothing was armed")
		}
		b.happened(2)
		b.wantStatus("f", v1alpha1.FaultArmed, 2, 0, false)
		time.Sleep(2 * time.Minute) //nolint:forbidigo // in a bubble
		synctest.Wait()
		b.wantStatus("f", v1alpha1.FaultExpired, 2, 0, true)
		if b.happened(2) != nil {
			t.Error("it happened after it expired")
		}
		b.faults.Release("f")
		b.wantStatus("f", v1alpha1.FaultExpired, 2, 0, true)
		b.faults.Disarm("f")
		b.faults.Disarm("f")
		b.faults.Release("f")
		if _, ok := b.faults.Status("f"); ok {
			t.Error("it is still there")
		}
		// A fault that is done does not expire.
		spec.Match.Nth = 1
		b.arm("f", spec)
		b.happened(1)
		time.Sleep(2 * time.Minute) //nolint:forbidigo // in a bubble
		synctest.Wait()
		s := b.wantStatus("f", v1alpha1.FaultInjected, 1, 1, true)
		if s.At == nil || s.Conditions[1].Reason != "Spent" || s.Conditions[0].LastTransitionTime.IsZero() {
			t.Errorf("%+v", s)
		}
		spec.Released = true
		b.arm("born dead", spec)
		b.wantStatus("born dead", v1alpha1.FaultReleased, 0, 0, true)
		cancel()
		n := len(changed)
		b.faults.Release("f")
		if len(changed) != n || n < 6 || changed[0] != "f Armed" {
			t.Error(changed)
		}
		b.faults.Close()
		if err := b.faults.Arm("late", spec); !errors.Is(err, fault.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestConcurrency checks that the counts are exact with many goroutines and faults.
func TestConcurrency(t *testing.T) {
	b := newBench(t)
	b.arm("some", fail(v1alpha1.FaultMatch{Nth: 11, Times: new(int32(20))}))
	b.arm("none", fail(v1alpha1.FaultMatch{Kind: "Other"}))
	var wg sync.WaitGroup
	var mu sync.Mutex
	failed := 0
	for range 8 {
		wg.Go(func() {
			for range 50 {
				resp, err := b.way.RoundTrip(b.request(t.Context(), "POST "+songs, song("one", "")))
				if err == nil && resp.StatusCode == http.StatusInternalServerError {
					mu.Lock()
					failed++
					mu.Unlock()
				}
				b.faults.Status("some")
			}
		})
	}
	wg.Wait()
	if failed != 20 {
		t.Errorf("it happened %d times", failed)
	}
	b.wantStatus("some", v1alpha1.FaultInjected, 30, 20, true)
	if n := len(b.injected()); n != 20 {
		t.Errorf("%d events", n)
	}
}
