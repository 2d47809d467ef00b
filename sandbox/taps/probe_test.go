package taps

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

var probed = trace.Key{Namespace: "ns", Name: "a"}

func TestProbe(t *testing.T) {
	j := trace.New(trace.Options{})
	taps := New(j, Options{})
	if taps.Probe("q", probed) {
		t.Error("a queue that is not there was probed")
	}
	q := newQueue(taps, "q", newLimiter())
	if !taps.Probe("q", probed) {
		t.Fatal("the queue was not probed")
	}
	if taps.Probe("q", probed) {
		t.Error("a key that is in the queue was added again")
	}
	if taps.Probe("other", probed) {
		t.Error("a queue of another name was probed")
	}
	k, _ := q.Get()
	if k.Name != "a" || k.Namespace != "ns" {
		t.Errorf("took %v", k)
	}
	q.Done(k)
	q.AddAfter(k, time.Hour)
	if taps.Probe("q", probed) || q.Len() != 0 {
		t.Error("a key that waits for its timer did not wait")
	}
	events := j.Since(0)
	i := slices.IndexFunc(events, func(e *trace.Event) bool { return e.Kind == trace.KindEnqueue })
	if i < 0 || events[i].Reason != trace.ReasonProbe || events[i].Actor != lab || events[i].Key != probed {
		t.Errorf("the journal does not say that the lab probed: %+v", events)
	}
	q.ShutDown()
	if taps.Probe("q", trace.Key{Name: "b"}) {
		t.Error("a queue that was shut down was probed")
	}
}

// TestProbeWhileRunning checks that the key runs once more afterwards.
func TestProbeWhileRunning(t *testing.T) {
	taps := New(trace.New(trace.Options{}), Options{})
	q := newQueue(taps, "q", newLimiter())
	defer q.ShutDown()
	q.Add(key("a"))
	k, _ := q.Get()
	if !taps.Probe("q", probed) {
		t.Error("a key that is being reconciled was not added")
	}
	if q.Len() != 1 {
		t.Errorf("%d keys are in the queue", q.Len())
	}
	q.Done(k)
	if again, _ := q.Get(); again != k {
		t.Errorf("took %v", again)
	}
	q.Done(k)
}

func TestAwaitServing(t *testing.T) {
	taps := New(trace.New(trace.Options{}), Options{})
	waiting := func() <-chan error {
		done := make(chan error, 1)
		go func() { done <- taps.AwaitServing(t.Context()) }()
		return done
	}
	none := waiting()
	a := newQueue(taps, "a", newLimiter())
	b := newQueue(taps, "b", newLimiter())
	if got := taps.Controllers(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the controllers are %v", got)
	}
	work := func(q *queue) {
		q.Add(key("x"))
		k, _ := q.Get()
		q.Done(k)
	}
	work(a)
	cause := errors.New("the cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := taps.AwaitServing(ctx); !errors.Is(err, cause) {
		t.Errorf("one controller does not serve, and the wait ended with %v", err)
	}
	work(b)
	if err := <-none; err != nil {
		t.Error(err)
	}
	if err := <-waiting(); err != nil {
		t.Error(err)
	}
	a.ShutDown()
	taps.EndQueues()
	if got := taps.Controllers(); len(got) > 0 {
		t.Errorf("after the end the controllers are %v", got)
	}
	if err := taps.AwaitServing(ctx); !errors.Is(err, cause) {
		t.Errorf("nothing serves, and the wait ended with %v", err)
	}
}

// TestMetrics checks that of the metrics of the process those of the operator are told, and the lengths of its queues.
func TestMetrics(t *testing.T) {
	mine, others := New(trace.New(trace.Options{}), Options{}), New(trace.New(trace.Options{}), Options{})
	if _, err := mine.Metrics(); err == nil {
		t.Error("there are metrics without a controller")
	}
	newQueue(others, "others", newLimiter()).Add(key("x"))
	q := newQueue(mine, "mine", newLimiter())
	q.Add(key("x"))
	q.Add(key("y"))
	q.AddAfter(key("z"), time.Hour)
	text, err := mine.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	want := "# HELP workqueue_depth Current depth of workqueue\n# TYPE workqueue_depth gauge\nworkqueue_depth{controller=\"mine\",name=\"mine\"} 2\n"
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}
