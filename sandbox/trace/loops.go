package trace

import (
	"maps"
	"slices"
)

// rememberedDrops bounds how many drop events a state lists; all are counted.
const rememberedDrops = 32

// loops are the work queues and the reconciles of all operators.
type loops struct {
	queue    map[QueueKey]*Item
	running  map[int64]*Reconcile
	finished []*Reconcile
	drops    []*Event
}

func newLoops() loops { return loops{queue: map[QueueKey]*Item{}, running: map[int64]*Reconcile{}} }

func (l *loops) clone() loops {
	c := newLoops()
	c.finished, c.drops = slices.Clip(l.finished), slices.Clip(l.drops)
	for k, item := range l.queue {
		c.queue[k] = item.clone()
	}
	for k, reconcile := range l.running {
		c.running[k] = reconcile.clone()
	}
	return c
}

// apply folds an event in.
func (l *loops) apply(e *Event) {
	switch e.Kind {
	case KindDrop:
		l.drops = append(l.drops, e)
		l.drops = l.drops[max(0, len(l.drops)-rememberedDrops):]
	case KindEnqueue, KindMerge, KindRequeue, KindReady:
		l.enqueue(e)
	case KindDequeue:
		l.begin(e)
	case KindCall, KindHold, KindLog, KindHook:
		l.step(e)
	case KindEnd:
		if reconcile := l.running[e.Reconcile]; reconcile != nil {
			l.finish(reconcile, e, e)
		} else {
			l.late(e)
		}
	case KindOperator:
		if e.Verb == VerbStop {
			l.stopped(e)
		}
	}
}

// stopped folds in the end of an operator: its queue ends with its process.
func (l *loops) stopped(e *Event) {
	maps.DeleteFunc(l.queue, func(k QueueKey, _ *Item) bool { return k.Operator == e.Operator })
	for _, reconcile := range l.Running() {
		if reconcile.Operator == e.Operator {
			l.finish(reconcile, nil, e)
		}
	}
}

// Drops returns the newest drop events, oldest first, at most 32 of them.
func (l *loops) Drops() []*Event { return l.drops }
