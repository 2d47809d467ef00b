package remote_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/link"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// life writes the events of one life of a process: a reconcile that creates an object, whose watch event is dropped.
func life(t *testing.T, conn net.Conn, others func()) {
	t.Helper()
	j := trace.New(trace.Options{})
	w, err := link.NewWriter(conn, j)
	if err != nil {
		t.Fatal(err)
	}
	key := trace.Key{Namespace: "ns", Name: "one"}
	object := trace.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "made", UID: "u"}
	of := func(e trace.Event) trace.Event {
		e.Operator, e.Actor, e.Controller, e.Key = "toy", "toy", "copier", key
		return e
	}
	j.Append(trace.Event{Kind: trace.KindOperator, Operator: "toy", Actor: "toy", Verb: trace.VerbStart})
	enqueue := j.Append(of(trace.Event{Kind: trace.KindEnqueue}))
	n := j.NewReconcile()
	dequeue := j.Append(of(trace.Event{Kind: trace.KindDequeue, Reconcile: n, Cause: enqueue}))
	start := j.Append(of(trace.Event{Kind: trace.KindStart, Reconcile: n, Cause: dequeue}))
	if err := w.Update(); err != nil {
		t.Fatal(err)
	}
	others()
	after := []byte(`{"a":1}`)
	j.Append(of(trace.Event{
		Kind: trace.KindCall, Verb: trace.VerbUpdate, Reconcile: n, Cause: start, Object: object, ResourceVersion: "7", After: after,
	}))
	j.Append(trace.Event{
		Kind: trace.KindWatch, Operator: "toy", Actor: "toy", Verb: trace.Modified, Object: object, ResourceVersion: "7", After: after,
	})
	j.Append(trace.Event{
		Kind: trace.KindWatch, Operator: "toy", Actor: "toy", Verb: trace.Modified, Object: object, ResourceVersion: "8",
		Before: after, After: []byte(`{"a":2}`),
	})
	j.Append(of(trace.Event{Kind: trace.KindEnd, Reconcile: n, Cause: start, Outcome: trace.OutcomeDone}))
	j.Append(trace.Event{Kind: trace.KindOperator, Operator: "toy", Actor: "toy", Verb: trace.VerbStop})
	if err := w.Update(); err != nil {
		t.Fatal(err)
	}
}

func TestTwoLivesInTheLabsNumbers(t *testing.T) {
	l := newLab(t)
	others := func() { l.journal.Append(trace.Event{Kind: trace.KindNote, Actor: "you", Message: "in between"}) }
	l.journal.NewReconcile() // of another operator
	for range 2 {
		others()
		conn, served := l.serve()
		readSettings(t, conn)
		life(t, conn, others)
		l.must(conn.Close())
		l.must(<-served)
	}
	events := l.journal.Since(0)
	var reconciles []int64
	for _, e := range events {
		switch e.Kind {
		case trace.KindCall:
			var chain []trace.Kind
			for at := e; at != nil; at = l.journal.Get(at.Cause) {
				chain = append(chain, at.Kind)
				if at.Reconcile != e.Reconcile && at.Kind != trace.KindEnqueue {
					t.Errorf("event %d belongs to reconcile %d, its effect to %d", at.Seq, at.Reconcile, e.Reconcile)
				}
			}
			if want := []trace.Kind{trace.KindCall, trace.KindStart, trace.KindDequeue, trace.KindEnqueue}; !slices.Equal(chain, want) {
				t.Errorf("the call is caused by %v", chain)
			}
			reconciles = append(reconciles, e.Reconcile)
		case trace.KindWatch:
			if e.ResourceVersion == "7" && l.journal.Get(e.Cause).Kind != trace.KindCall {
				t.Errorf("the watch event %d is caused by %d", e.Seq, e.Cause)
			}
			if e.ResourceVersion == "8" && unsafe.SliceData(e.Before) != unsafe.SliceData(l.journal.Get(e.Seq-1).After) {
				t.Error("the object before does not share the bytes of the event that made it")
			}
		}
	}
	if !slices.Equal(reconciles, []int64{2, 3}) {
		t.Errorf("the reconciles have the numbers %v", reconciles)
	}
	if !slices.IsSortedFunc(events, func(a, b *trace.Event) int { return int(a.At - b.At) }) {
		t.Error("the time runs backwards")
	}
	if n := len(events); n != 2*(9+2) {
		t.Errorf("%d events", n)
	}
}

func TestOrdersAreAcknowledgedAfterTheirEvents(t *testing.T) {
	l := newLab(t)
	p := l.start()
	add, stop := p.manage(unused, nothing)
	l.must(l.taps.AwaitServing(t.Context()))
	if c := l.taps.Controllers(); !slices.Equal(c, []string{"copier"}) {
		t.Errorf("controllers: %v", c)
	}
	add("first")
	l.await("the first", ended("first", 1))
	l.taps.Pause()
	if s := l.state(); !s.Mode().Paused || !l.taps.Paused() {
		t.Error("no pause in the journal")
	}
	add("a")
	add("b")
	l.taps.Flush()
	if s := l.state(); len(s.Queue()) != 2 || len(s.Running()) != 0 {
		t.Errorf("%d keys wait, %d are reconciled", len(s.Queue()), len(s.Running()))
	}
	l.taps.Step()
	l.await("one step", func(s *trace.State) bool { return ended("a", 1)(s) && len(s.Queue()) == 1 })
	l.taps.Resume()
	l.await("the other", ended("b", 1))
	if !l.taps.Probe("copier", trace.Key{Namespace: "ns", Name: "a"}) || l.taps.Probe("nobody", trace.Key{Name: "a"}) {
		t.Error("a probe of the controller found nothing, or one of no controller did")
	}
	l.await("the probe", ended("a", 2))
	stop()
	l.must(p.conn.Close()) // as when main returns
	l.must(<-p.served)
	if e := l.journal.Get(l.journal.Stats().Last); e.Kind != trace.KindLog || l.count(trace.VerbStop) != 1 {
		t.Errorf("the last event of a manager that has ended is %+v", e)
	}
}

// TestMetrics reads the metrics of a process, with the length of its queue.
func TestMetrics(t *testing.T) {
	l := newLab(t)
	if _, err := l.taps.Metrics(); err == nil {
		t.Error("there are metrics without a process")
	}
	p := l.start()
	add, _ := p.manage(unused, nothing)
	l.must(l.taps.AwaitServing(t.Context()))
	add("first")
	l.await("the first", ended("first", 1))
	l.taps.Pause()
	add("a")
	add("b")
	text, err := l.taps.Metrics()
	l.must(err)
	for _, want := range []string{
		`controller_runtime_reconcile_total{controller="copier",result="success"} `, "\nworkqueue_depth{controller=\"copier\",name=\"copier\"} 2\n",
		"\ngo_goroutines ",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not among the metrics:\n%s", want, text)
		}
	}
	l.must(p.conn.Close())
	l.must(<-p.served)
	if _, err := l.taps.Metrics(); err == nil {
		t.Error("there are metrics of a process that has ended")
	}
}

// TestOrderToAStoppedProcess gives orders to a process that takes them and does not answer.
func TestOrderToAStoppedProcess(t *testing.T) {
	l := newLab(t)
	l.taps.SetPatience(time.Millisecond)
	conn, served := l.serve()
	readSettings(t, conn)
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	l.taps.Pause()
	if e := l.find(func(e *trace.Event) bool { return strings.Contains(e.Message, "has not answered the order to pause") }); e == nil {
		t.Error("the journal does not say that the pause was not answered")
	}
	if s := l.state(); s.Mode().Paused || !l.taps.Paused() {
		t.Error("the journal says that the loop is paused, or no pause is ordered")
	}
	l.must(conn.Close())
	l.must(<-served)
	if !l.state().Mode().Paused {
		t.Error("the pause is forgotten")
	}
}

func TestHeldWrites(t *testing.T) {
	l := newLab(t)
	p := l.start()
	add, _ := p.manage(apiServer(t, func(*http.Request) {}), create)
	l.taps.StepCall()
	add("one")
	held := func(s *trace.State) bool { return len(s.Running()) == 1 && s.Running()[0].Held != nil }
	l.await("a held write", held)
	if mode := l.state().Mode(); !mode.Paused || !mode.HoldWrites {
		t.Errorf("the mode is %+v", mode)
	}
	l.taps.Release()
	l.await("the reconcile to end", ended("one", 1))
	if call := l.find(func(e *trace.Event) bool { return e.Kind == trace.KindCall }); call.Error != "" || l.journal.Get(call.Cause).Kind != trace.KindHold {
		t.Errorf("the call: %+v", call)
	}
	l.taps.Resume()
	l.taps.StepBy(trace.Demo)
	if e := l.find(func(e *trace.Event) bool {
		return e.Kind == trace.KindControl && e.Actor == trace.Demo && e.Verb == trace.VerbStep
	}); e == nil {
		t.Error("the demo's step is not recorded as its own")
	}
	l.taps.HoldWrites()
	l.taps.Resume()
	l.taps.HoldWrites()
	add("two")
	l.await("another held write", held)
	l.must(p.conn.Close()) // the lab goes away
	l.must(<-p.served)
	s := l.state()
	if len(s.Running()) != 0 || !s.Mode().HoldWrites {
		t.Errorf("after the end %d reconciles run, the mode is %+v", len(s.Running()), s.Mode())
	}
}

func TestWithoutTheLabTheOperatorGoesOn(t *testing.T) {
	l := newLab(t)
	p := l.start()
	sent := make(chan string, 10)
	add, _ := p.manage(apiServer(t, func(r *http.Request) { sent <- r.Header.Get(link.Header) }), create)
	l.taps.StepCall()
	add("one")
	l.await("a held write", func(s *trace.State) bool { return len(s.Running()) == 1 && s.Running()[0].Held != nil })
	add("two")
	l.must(p.conn.Close())
	if first, second := <-sent, <-sent; first != "" || second != "" {
		t.Errorf("requests without the lab have the headers %q and %q", first, second)
	}
}

func TestOrdersWhileNoProcessIsConnected(t *testing.T) {
	l := newLab(t)
	l.taps.Pause()
	l.taps.HoldWrites()
	for range 2 {
		p := l.start()
		add, _ := p.manage(unused, nothing)
		l.must(l.taps.AwaitServing(t.Context()))
		add("one")
		l.taps.Flush()
		if s := l.state(); !s.Mode().Paused || !s.Mode().HoldWrites || len(s.Queue()) != 1 {
			t.Errorf("a new life begins with %+v and %d keys", s.Mode(), len(s.Queue()))
		}
		l.must(p.conn.Close())
		l.must(<-p.served)
	}
	l.taps.Step()
	if l.taps.Resume(); l.taps.Paused() || l.state().Mode().Paused || l.state().Mode().HoldWrites {
		t.Error("no resume in the journal")
	}
	if l.taps.Probe("copier", trace.Key{Name: "one"}) {
		t.Error("a probe without a process found something")
	}
	if n := l.count(trace.VerbPause); n != 1 {
		t.Errorf("the journal has %d pauses", n)
	}
	p := l.start()
	add, _ := p.manage(unused, nothing)
	add("two")
	l.await("a life that is not paused", ended("two", 1))
	l.taps.Close()
	l.taps.Pause()
	add("three")
	l.await("no pause after the close", ended("three", 1))
}

// count returns how many events have a verb.
func (l *lab) count(verb string) (n int) {
	l.find(func(e *trace.Event) bool {
		if e.Verb == verb {
			n++
		}
		return false
	})
	return n
}

func TestKilledProcess(t *testing.T) {
	l := newLab(t)
	p := l.start()
	begun := make(chan struct{})
	add, _ := p.manage(unused, func(ctx context.Context, _ client.Client, name string) error {
		close(begun)
		<-ctx.Done()
		return nil
	})
	l.must(l.taps.AwaitServing(t.Context()))
	add("one")
	add("two")
	<-begun
	l.taps.Flush()
	if s := l.state(); len(s.Running()) != 1 || len(s.Queue()) != 1 {
		t.Fatalf("%d reconciles run, %d keys wait", len(s.Running()), len(s.Queue()))
	}
	l.must(p.conn.Close())
	l.must(<-p.served)
	s := l.state()
	if len(s.Running()) != 0 || len(s.Queue()) != 0 || len(l.taps.Controllers()) != 0 {
		t.Errorf("%d reconciles run, %d keys wait, controllers: %v", len(s.Running()), len(s.Queue()), l.taps.Controllers())
	}
	if r := s.Reconciles()[0]; r.Outcome() != trace.OutcomeAborted || r.End.Cause == 0 || r.End.Kind != trace.KindEnd {
		t.Errorf("the reconcile ended with %+v", r.End)
	}
	if e := l.journal.Get(l.journal.Stats().Last); e.Kind != trace.KindOperator || e.Verb != trace.VerbStop {
		t.Errorf("the last event is %+v", e)
	}
}

// TestExitInAReconcile checks that the reconcile is known in which a program ends itself before it has called anything.
func TestExitInAReconcile(t *testing.T) {
	l := newLab(t)
	p := l.start()
	add, _ := p.manage(unused, func(context.Context, client.Client, string) error { return p.conn.Close() })
	l.must(l.taps.AwaitServing(t.Context()))
	add("one")
	l.must(<-p.served)
	all := l.state().Reconciles()
	if len(all) != 1 || all[0].Key.Name != "one" || all[0].Outcome() != trace.OutcomeAborted {
		t.Errorf("the reconciles are %+v", all)
	}
}

func TestRequestsSayWhereTheyComeFrom(t *testing.T) {
	l := newLab(t)
	p := l.start()
	var mu sync.Mutex
	var resolved []trace.ReconcileRef
	config := apiServer(t, func(r *http.Request) {
		ref := l.taps.Resolve(r.Context(), r.Header.Get(link.Header))
		mu.Lock()
		defer mu.Unlock()
		resolved = append(resolved, ref)
	})
	l.journal.NewReconcile() // of another operator
	add, _ := p.manage(config, create)
	add("one")
	l.await("the reconcile", ended("one", 1))
	mu.Lock()
	defer mu.Unlock()
	want := trace.ReconcileRef{ID: 2, Controller: "copier", Key: trace.Key{Namespace: "ns", Name: "one"}}
	if len(resolved) != 1 || resolved[0] != want {
		t.Errorf("the requests come from %+v", resolved)
	}
	for header, id := range map[string]int64{`{"seq":1}`: 0, `x`: 0, ``: 0, `{"reconcile":-1}`: 0, `{"reconcile":1}`: 2, `{"reconcile":9}`: 0} {
		if ref := l.taps.Resolve(t.Context(), header); ref.ID != id {
			t.Errorf("%s is reconcile %d", header, ref.ID)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if ref := l.taps.Resolve(gone, `{"seq":1000000,"reconcile":1,"controller":"copier"}`); ref.Controller != "copier" {
		t.Errorf("without waiting: %+v", ref)
	}
}

func TestControllersGo(t *testing.T) {
	l := newLab(t)
	p := l.start()
	_, stop := p.manage(unused, nothing)
	l.must(l.taps.AwaitServing(t.Context()))
	stop()
	sandboxtest.Eventually(t, "no controllers", func() bool { return len(l.taps.Controllers()) == 0 })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.taps.AwaitServing(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody serves: %v", err)
	}
}

func TestManagersOfOneProcess(t *testing.T) {
	l := newLab(t)
	p := l.start()
	addFirst, stopFirst := p.manage(unused, nothing)
	addSecond, _ := p.manage(unused, nothing)
	l.must(l.taps.AwaitServing(t.Context()))
	l.taps.Pause()
	addFirst("one")
	addSecond("two")
	l.taps.Flush()
	if s := l.state(); !s.ModeOf("toy").Paused || !s.ModeOf("toy-2").Paused || len(s.Queue()) != 2 {
		t.Errorf("%+v %+v, %d keys wait", s.ModeOf("toy"), s.ModeOf("toy-2"), len(s.Queue()))
	}
	l.taps.Resume()
	l.await("both", func(s *trace.State) bool { return ended("one", 1)(s) && ended("two", 1)(s) })
	stopFirst()
	addSecond("three")
	l.await("the second manager after the end of the first", ended("three", 1))
	addThird, _ := p.manage(unused, nothing)
	addThird("four")
	l.await("a manager in the place of the first", func(s *trace.State) bool {
		return slices.ContainsFunc(s.Reconciles(), func(r *trace.Reconcile) bool { return r.Key.Name == "four" && r.Operator == "toy" })
	})
	l.must(p.conn.Close())
	l.must(<-p.served)
	stopped := map[string]int{}
	l.find(func(e *trace.Event) bool {
		if e.Kind == trace.KindOperator && e.Verb == trace.VerbStop {
			stopped[e.Operator]++
		}
		return false
	})
	if stopped["toy"] != 2 || stopped["toy-2"] != 1 {
		t.Errorf("stops: %v", stopped)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	l := newLab(t)
	l.start()
	_, served := l.serve()
	if err := <-served; err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second process: %v", err)
	}
}
