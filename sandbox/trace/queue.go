package trace

import (
	"slices"
	"sort"
	"time"
)

// ControllerKey identifies a controller of an operator.
type ControllerKey struct {
	// Operator is the operator's name.
	Operator string
	// Controller is the controller's name.
	Controller string
}

// QueueKey identifies a key in a controller's work queue.
type QueueKey struct {
	// Operator is the operator's name.
	Operator string
	// Controller is the controller's name.
	Controller string
	// Key is the key in its queue.
	Key Key
}

func queueKeyOf(e *Event) QueueKey { return QueueKey{e.Operator, e.Controller, e.Key} }

func (s *Reconcile) queueKey() QueueKey { return QueueKey{s.Operator, s.Controller, s.Key} }

// Item is a key in a work queue.
type Item struct {
	QueueKey
	// Ready reports whether a worker may take it; else it waits for its timer.
	Ready bool
	// Since is when it was put into the queue, Due when its timer runs out; both since the journal's start.
	Since, Due time.Duration
	// Events are the enqueue, merge and ready events that it stands for: the first made it ready, the others merged
	// into it. Empty while only a timer is set.
	Events []*Event
	// Requeue is the event that set its timer, or nil.
	Requeue *Event
	// Priority is the highest priority that it was added with.
	Priority int
}

// Merged returns how many further events the key stands for.
func (i *Item) Merged() int { return max(0, len(i.Events)-1) }

func (i *Item) clone() *Item {
	c := *i
	c.Events = slices.Clip(i.Events)
	return &c
}

// Queue returns the keys that are ready or wait for a timer: first the ready ones, in the order workers take them, then
// the others by time.
func (l *loops) Queue() []*Item {
	out := make([]*Item, 0, len(l.queue))
	for _, i := range l.queue {
		out = append(out, i)
	}
	sort.Slice(out, func(i, k int) bool { return lessItem(out[i], out[k]) })
	return out
}

// NextTimer returns the time until the first timer of a key runs out, and false if there is none.
func (l *loops) NextTimer(now time.Duration) (time.Duration, bool) {
	for _, item := range l.Queue() { // those that wait are sorted by time
		if !item.Ready {
			return max(0, item.Due-now), true
		}
	}
	return 0, false
}

func lessItem(a, b *Item) bool {
	switch {
	case a.Ready != b.Ready:
		return a.Ready
	case a.Ready && a.Priority != b.Priority:
		return a.Priority > b.Priority
	case !a.Ready && a.Due != b.Due:
		return a.Due < b.Due
	case a.order() != b.order():
		return a.order() < b.order()
	}
	return a.Key.String() < b.Key.String()
}

// order returns the Seq of the event that determines its position.
func (i *Item) order() int64 {
	if len(i.Events) > 0 {
		return i.Events[0].Seq
	}
	if i.Requeue != nil {
		return i.Requeue.Seq
	}
	return 0
}

// Dirty reports whether a key that is being reconciled is in the queue again, and so will run once more right after.
func (l *loops) Dirty(reconcile *Reconcile) bool {
	item := l.queue[reconcile.queueKey()]
	return reconcile.Running() && item != nil && item.Ready
}

// enqueue folds in an event that changes a key in a queue.
func (l *loops) enqueue(e *Event) {
	qk := queueKeyOf(e)
	item := l.queue[qk]
	if item == nil {
		item = &Item{QueueKey: qk, Since: e.At, Priority: e.Priority}
		l.queue[qk] = item
	}
	item.Priority = max(item.Priority, e.Priority)
	if e.Kind == KindRequeue {
		if !item.Ready {
			item.Due, item.Requeue = e.At+e.Delay, e
		}
		return
	}
	if !item.Ready {
		item.Ready, item.Since = true, e.At
	}
	item.Events = append(item.Events, e)
}
