package taps

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func newLimiter() workqueue.TypedRateLimiter[request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[request](time.Millisecond, time.Second)
}

func key(name string) request {
	return request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

// taken is a key that a worker took.
type taken struct {
	key      request
	priority int
}

// play uses a queue randomly: it adds keys with and without priority while workers have keys, and takes keys. It
// returns the taken ones.
func play(q priorityqueue.PriorityQueue[request], seed uint64) []taken {
	r := rand.New(rand.NewPCG(seed, 1))
	var out []request
	var got []taken
	take := func() {
		k, p, _ := q.GetWithPriority()
		got = append(got, taken{k, p})
		out = append(out, k)
	}
	takeable := func() bool { return q.Len() > len(out) } // more keys than workers have: one can be taken
	for range 300 {
		switch n := r.IntN(10); {
		case n < 6:
			p := r.IntN(3) - 1
			q.AddWithOpts(priorityqueue.AddOpts{Priority: &p}, key(strconv.Itoa(r.IntN(12))))
		case n < 8 && takeable():
			take()
		case len(out) > 0:
			i := r.IntN(len(out))
			q.Forget(out[i])
			q.Done(out[i])
			out = slices.Delete(out, i, i+1)
		}
	}
	for _, k := range out {
		q.Done(k)
	}
	out = nil
	for q.Len() > 0 {
		take()
		q.Done(out[0])
		out = nil
	}
	return got
}

// TestQueueIsLikeControllerRuntimes compares the queue with controller-runtime's under the same operations.
func TestQueueIsLikeControllerRuntimes(t *testing.T) {
	for seed := range uint64(200) {
		theirs := priorityqueue.New("theirs", func(o *priorityqueue.Opts[request]) { o.RateLimiter = newLimiter() })
		want := play(theirs, seed)
		theirs.ShutDown()
		ours := newQueue(New(trace.New(trace.Options{}), Options{}), "ours", newLimiter())
		got := play(ours, seed)
		ours.ShutDown()
		if !slices.Equal(want, got) {
			t.Fatalf("seed %d: took\n%v, controller-runtime's queue\n%v", seed, got, want)
		}
	}
}

// TestQueueTimers checks the order and merging of delays, which a comparison with the other queue could only do in real
// time.
func TestQueueTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := trace.New(trace.Options{})
		q := newQueue(New(j, Options{}), "q", newLimiter())
		defer q.ShutDown()
		q.AddAfter(key("late"), time.Hour)
		q.AddAfter(key("b"), 20*time.Millisecond)
		q.AddAfter(key("a"), 10*time.Millisecond)
		q.AddAfter(key("a"), time.Hour)          // later than the current timer: no effect
		q.AddAfter(key("b"), 5*time.Millisecond) // earlier: counts
		q.AddAfter(key("now"), time.Hour)
		q.Add(key("now"))
		for _, want := range []string{"now", "b", "a"} {
			if k, _ := q.Get(); k.Name != want {
				t.Errorf("took %s, want %s", k.Name, want)
			}
		}
		if q.Len() != 0 {
			t.Errorf("%d keys are ready", q.Len())
		}
		tl := trace.NewTimeline(j)
		tl.Update()
		if rest := tl.Tip().Queue(); len(rest) != 1 || rest[0].Key.Name != "late" || rest[0].Ready {
			t.Errorf("the journal's queue: %+v", rest)
		}
	})
}

// TestQueueIsSafe runs workers and producers on one queue, with pauses. It is for the race detector, and checks that
// every key is reconciled and that the journal's queue ends empty.
func TestQueueIsSafe(t *testing.T) {
	j := trace.New(trace.Options{})
	taps := New(j, Options{})
	q := newQueue(taps, "q", newLimiter())
	var workers, producers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for n := 0; ; n++ {
				k, shutdown := q.Get()
				if shutdown {
					return
				}
				switch n % 3 {
				case 0:
					q.AddRateLimited(k)
				case 1:
					q.Forget(k)
					q.AddAfter(k, time.Microsecond)
				case 2:
					q.Forget(k)
				}
				q.Done(k)
			}
		})
	}
	for p := range 3 {
		producers.Go(func() {
			for i := range 200 {
				q.Add(key(strconv.Itoa((i * (p + 1)) % 7)))
				if i%20 == 0 {
					taps.Pause()
					taps.Step()
					taps.Resume()
				}
			}
		})
	}
	producers.Wait()
	tl := trace.NewTimeline(j)
	changed, cancel := j.Subscribe()
	defer cancel()
	for tl.Update(); len(tl.Tip().Queue()) > 0 || len(tl.Tip().Running()) > 0; tl.Update() {
		<-changed
	}
	q.ShutDown()
	workers.Wait()
	for _, reconcile := range tl.Tip().Reconciles() {
		if len(reconcile.Woken) == 0 {
			t.Fatalf("reconcile #%d has no cause", reconcile.ID)
		}
	}
}

// TestEndsAfterTheQueue checks what is said of reconciles that ask to run again when their queue has ended: that they do not.
func TestEndsAfterTheQueue(t *testing.T) {
	taps := New(trace.New(trace.Options{}), Options{})
	q := newQueue(taps, "q", newLimiter())
	asks := map[string]func(request){
		"after":   func(k request) { q.Forget(k); q.AddWithOpts(addOpts{After: time.Minute}, k) },
		"requeue": q.AddRateLimited,
		"error":   func(k request) { q.running(k).fail(errors.New("no luck")); q.AddRateLimited(k) },
		"panic":   func(k request) { q.running(k).panic(); q.AddRateLimited(k) },
		"done":    q.Forget,
	}
	for name := range asks {
		q.Add(key(name))
		_, _ = q.Get()
	}
	q.ShutDown()
	for name, ask := range asks {
		ask(key(name))
		q.Done(key(name))
	}
	timeline := trace.NewTimeline(taps.Journal())
	timeline.Update()
	state := timeline.Tip()
	said := map[string]string{}
	for _, r := range state.Reconciles() {
		said[r.Key.Name] = trace.ResultText(r, trace.English) + " | " + state.WhyReconcile(r, trace.English) + " | " + trace.ResultText(r, trace.Japanese)
	}
	for name, want := range map[string]string{
		"after": "operator ended | It asked to run again.", "requeue": "operator ended | It asked to run again.",
		"error": "error, operator ended | It failed: no luck. It does not run again in this life", "panic": "PANIC, operator ended | It panicked",
		"done": "done | It waits for a change.",
	} {
		for part := range strings.SplitSeq(want, " | ") {
			if !strings.Contains(said[name], part) {
				t.Errorf("%s: %q is not in %q", name, part, said[name])
			}
		}
	}
	if len(state.Queue()) > 0 {
		t.Errorf("keys wait in a queue that has ended: %v", state.Queue())
	}
}

// running returns the reconcile of a key.
func (q *queue) running(key request) *runningReconcile { return q.locked[key] }

func TestShutDownWhilePaused(t *testing.T) {
	taps := New(trace.New(trace.Options{}), Options{})
	q := newQueue(taps, "q", newLimiter())
	taps.Pause()
	q.Add(key("a"))
	got := make(chan bool)
	go func() {
		_, shutdown := q.Get()
		got <- shutdown
	}()
	q.ShutDown()
	if !<-got {
		t.Error("a key was handed out although paused")
	}
	q.Add(key("b"))
	if q.Len() != 1 || !q.ShuttingDown() {
		t.Error("a queue that was shut down takes keys")
	}
}
