//go:build go1.23

package taps

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// request is controller-runtime's type for a key.
type request = reconcile.Request

// queue is a work queue with the semantics of controller-runtime's priority queue: one entry per key with the highest
// of its priorities and the earliest of its times, first in first out within a priority, and a key that a worker has is
// not handed out again.
//
// It does not wrap that queue, because only the queue itself knows without a race whether an added key was merged, when
// a timer became ready, and which adds a taken key stands for; and because a pause must hold workers before they take a
// key. It implements priorityqueue.PriorityQueue, because otherwise controller-runtime would use an adapter that loses
// priorities.
type queue struct {
	taps    *Taps
	name    string
	limiter workqueue.TypedRateLimiter[request]

	mu      sync.Mutex
	cond    *sync.Cond // signalled when a worker may have something to take
	items   map[request]*item
	ready   readyHeap   // items that may be taken: ready, and no worker has the key
	waiting waitingHeap // items whose timer is running
	locked  map[request]*runningReconcile
	added   uint64       // number of items added, for their order
	taken   atomic.Int64 // number of keys taken
	timer   *time.Timer
	serving bool // a worker has asked for a key
	shut    bool
}

// item is a key in the queue.
type item struct {
	key      request
	priority int
	order    uint64    // for first in, first out
	readyAt  time.Time // zero when ready
	index    int       // index in ready or waiting, -1 if in neither
	wokenBy  int64     // Seq of the event that made it ready
	requeue  int64     // Seq of the event that set its timer
	merged   int
}

func newQueue(t *Taps, name string, limiter workqueue.TypedRateLimiter[request]) *queue {
	q := &queue{
		taps: t, name: name, limiter: limiter,
		items: map[request]*item{}, locked: map[request]*runningReconcile{},
	}
	q.cond = sync.NewCond(&q.mu)
	q.timer = time.AfterFunc(time.Hour, q.timersDue)
	q.timer.Stop()
	t.add(q)
	return q
}

// append adds an event of this queue to the journal.
func (q *queue) append(key request, e trace.Event) int64 {
	e.Controller, e.Key = q.name, traceKey(key)
	return q.taps.append(e)
}

func traceKey(r request) trace.Key { return trace.Key{Namespace: r.Namespace, Name: r.Name} }

// Add puts a key into the queue.
func (q *queue) Add(key request) { q.AddWithOpts(addOpts{}, key) }

// AddAfter puts a key into the queue after a delay.
func (q *queue) AddAfter(key request, after time.Duration) {
	q.AddWithOpts(addOpts{After: after}, key)
}

// AddRateLimited puts a key into the queue when the rate limiter allows it.
func (q *queue) AddRateLimited(key request) {
	q.AddWithOpts(addOpts{RateLimited: true}, key)
}

// AddWithOpts puts keys into the queue.
func (q *queue) AddWithOpts(o addOpts, keys ...request) {
	q.addFrom(q.taps.currentBracket(), o, keys)
}

// addFrom puts keys into the queue; b is the bracket of the watch event that made them, or nil. A worker's request to
// requeue its own key is kept until Done, when the end of the reconcile is known: nobody could take the key earlier.
func (q *queue) addFrom(b *bracket, o addOpts, keys []request) {
	var cause int64
	if b != nil {
		b.made(q.name, len(keys))
		cause = b.watch
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		a := q.admission(o, key)
		a.cause = cause
		r := q.locked[key]
		switch {
		case r != nil && b == nil && a.reason != "":
			r.again(a)
		case !q.shut:
			q.insert(key, a)
		}
	}
}

// admission is a request to add a key.
type admission struct {
	after     time.Duration
	priority  int
	cause     int64
	try       int
	reason    string // reason of a requeue; empty for a plain add
	reconcile int64  // the reconcile that makes the request, if any
	actor     string // the actor, if it is not the operator
}

// admission computes when a key may be taken. It asks the rate limiter here, not in a goroutine of the queue, so that
// try and delay are known at once.
func (q *queue) admission(o addOpts, key request) admission {
	a := admission{after: o.After}
	if o.After > 0 {
		a.reason = trace.ReasonDelayed
	}
	if o.RateLimited {
		if d := q.limiter.When(key); a.after == 0 || d < a.after {
			a.after = d
		}
		a.try, a.reason = q.limiter.NumRequeues(key), trace.ReasonBackoff
	}
	a.priority = priorityOf(o)
	return a
}

// insert adds a key or merges it into its entry. The caller holds the lock.
func (q *queue) insert(key request, a admission) {
	it := q.items[key]
	if it == nil {
		it = &item{key: key, priority: a.priority, order: q.added, index: -1}
		q.added++
		q.items[key] = it
		if a.after > 0 {
			q.wait(it, a)
			return
		}
		it.wokenBy = q.enqueued(it, a)
		q.makeReady(it)
		return
	}
	raised := a.priority > it.priority
	if raised {
		it.priority, it.order = a.priority, q.added
		q.added++
	}
	switch {
	case it.readyAt.IsZero():
		it.merged++
		q.append(key, trace.Event{
			Kind: trace.KindMerge, Cause: a.cause, Reconcile: a.reconcile, Delay: a.after, Try: a.try, Reason: a.reason,
			Priority: a.priority, Running: q.locked[key] != nil,
		})
		if raised && it.index >= 0 {
			heap.Fix(&q.ready, it.index)
		}
	case a.after <= 0:
		heap.Remove(&q.waiting, it.index)
		it.readyAt = time.Time{}
		it.wokenBy = q.enqueued(it, a)
		q.makeReady(it)
	case time.Now().Add(a.after).Before(it.readyAt):
		heap.Remove(&q.waiting, it.index)
		q.wait(it, a)
	}
	// A later timer than the running one has no effect.
}

// enqueued records that a key became ready at once.
func (q *queue) enqueued(it *item, a admission) int64 {
	return q.append(it.key, trace.Event{
		Kind: trace.KindEnqueue, Actor: a.actor, Cause: a.cause, Reconcile: a.reconcile, Try: a.try, Reason: a.reason,
		Priority: it.priority, Running: q.locked[it.key] != nil,
	})
}

// wait sets an item's timer. The caller holds the lock.
func (q *queue) wait(it *item, a admission) {
	it.readyAt = time.Now().Add(a.after)
	it.requeue = q.append(it.key, trace.Event{
		Kind: trace.KindRequeue, Cause: a.cause, Reconcile: a.reconcile, Delay: a.after, Try: a.try, Reason: a.reason,
		Priority: it.priority,
	})
	heap.Push(&q.waiting, it)
	if q.waiting[0] == it {
		q.timer.Reset(a.after)
	}
}

// makeReady lets workers take an item, unless a worker has its key. The caller holds the lock.
func (q *queue) makeReady(it *item) {
	if q.locked[it.key] != nil {
		it.index = -1 // Done will push it
		return
	}
	heap.Push(&q.ready, it)
	q.cond.Signal()
}

// timersDue makes the items ready whose timers ran out, also while paused.
func (q *queue) timersDue() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shut {
		return
	}
	now := time.Now()
	for len(q.waiting) > 0 && !q.waiting[0].readyAt.After(now) {
		it := heap.Pop(&q.waiting).(*item)
		it.readyAt = time.Time{}
		it.order = q.added
		q.added++
		it.wokenBy = q.append(it.key, trace.Event{
			Kind: trace.KindReady, Cause: it.requeue, Priority: it.priority, Running: q.locked[it.key] != nil,
		})
		q.makeReady(it)
	}
	if len(q.waiting) > 0 {
		q.timer.Reset(time.Until(q.waiting[0].readyAt))
	}
}

// Get waits for a key and takes it.
func (q *queue) Get() (request, bool) {
	key, _, shutdown := q.GetWithPriority()
	return key, shutdown
}

// earlyReconciles is how many of a queue are the first ones of a run, see [Options.Began]: a program that crashes again and again
// does so in one of them, and the others need not wait.
const earlyReconciles = 100

// GetWithPriority waits until a key may be taken and takes it.
func (q *queue) GetWithPriority() (key request, priority int, shutdown bool) {
	key, priority, shutdown = q.take()
	if began := q.taps.opts.Began; began != nil && !shutdown && q.taken.Load() <= earlyReconciles {
		began()
	}
	return key, priority, shutdown
}

func (q *queue) take() (key request, priority int, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.serving {
		q.serving = true
		q.taps.nowServing()
	}
	for !q.shut && (len(q.ready) == 0 || !q.taps.admit()) {
		q.cond.Wait()
	}
	if q.shut {
		return request{}, 0, true
	}
	it := heap.Pop(&q.ready).(*item)
	delete(q.items, it.key)
	r := &runningReconcile{taps: q.taps, controller: q.name, key: traceKey(it.key), id: q.taps.journal.NewReconcile()}
	r.begun = q.taps.journal.Elapsed()
	q.locked[it.key] = r
	seq := q.append(it.key, trace.Event{
		Kind: trace.KindDequeue, Reconcile: r.id, Cause: it.wokenBy, Count: it.merged, Priority: it.priority,
	})
	r.start = q.append(it.key, trace.Event{Kind: trace.KindStart, Reconcile: r.id, Cause: seq})
	q.taken.Add(1)
	return it.key, it.priority, false
}

// Done ends the reconcile of a key and requeues the key if requested.
func (q *queue) Done(key request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.locked[key]
	if r == nil {
		return
	}
	e, again := r.end()
	if q.shut {
		e.Delay, e.Try, again = 0, 0, nil
	}
	end := q.append(key, e)
	if again != nil {
		again.cause, again.reconcile = end, r.id
		q.insert(key, *again)
	}
	delete(q.locked, key)
	if it := q.items[key]; it != nil && it.readyAt.IsZero() {
		heap.Push(&q.ready, it)
		q.cond.Signal()
	}
}

// Forget resets the rate limiter's failures of a key. controller-runtime calls it after a successful reconcile.
func (q *queue) Forget(key request) {
	q.mu.Lock()
	if r := q.locked[key]; r != nil {
		r.succeeded()
	}
	q.mu.Unlock()
	q.limiter.Forget(key)
}

// NumRequeues returns how often a key was rate limited since it was forgotten.
func (q *queue) NumRequeues(key request) int { return q.limiter.NumRequeues(key) }

// Len returns the number of keys that are ready.
func (q *queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) - len(q.waiting)
}

// ShutDown releases all workers, also those held by a pause.
func (q *queue) ShutDown() {
	q.mu.Lock()
	q.shut = true
	q.timer.Stop()
	q.cond.Broadcast()
	q.mu.Unlock()
	q.taps.remove(q)
}

// ShutDownWithDrain does the same as ShutDown, as in controller-runtime's queue.
func (q *queue) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown reports whether ShutDown was called.
func (q *queue) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shut
}

// wake makes the workers check again whether they may take a key.
func (q *queue) wake() {
	q.mu.Lock()
	q.cond.Broadcast()
	q.mu.Unlock()
}

// probe adds a key if the queue does not hold it.
func (q *queue) probe(key request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shut || q.items[key] != nil {
		return false
	}
	q.insert(key, admission{reason: trace.ReasonProbe, actor: lab})
	return true
}

func (q *queue) isServing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.serving
}
