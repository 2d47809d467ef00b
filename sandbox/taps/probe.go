//go:build go1.23

package taps

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// lab is the actor of what the lab does to the loop to test it.
const lab = "lab"

// Probe puts a key into a controller's work queue, to see what one more reconcile does. It reports whether the
// controller has a queue now. A key that waits for a timer is not touched, because it will come by itself.
func (t *Taps) Probe(controller string, key trace.Key) bool {
	for _, q := range t.allQueues() {
		if q.name == controller {
			return q.probe(request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: key.Name}})
		}
	}
	return false
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

// AwaitServing returns when the workers of each of the operator's controllers, at least one, take keys. Then its caches
// are filled.
func (t *Taps) AwaitServing(ctx context.Context) error {
	for {
		t.mu.Lock()
		changed := t.served
		t.mu.Unlock()
		if queues := t.allQueues(); len(queues) > 0 && !slices.ContainsFunc(queues, func(q *queue) bool { return !q.isServing() }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// ReconcileOf returns the reconcile that a call belongs to, found by the context of its request; zero if it belongs to
// none.
func (t *Taps) ReconcileOf(ctx context.Context) trace.ReconcileRef {
	if r := t.reconcileOf(ctx); r != nil {
		return trace.ReconcileRef{ID: r.id, Controller: r.controller, Key: r.key}
	}
	return trace.ReconcileRef{}
}

// Controllers returns the sorted names of the controllers whose work queues exist now.
func (t *Taps) Controllers() []string {
	names := map[string]bool{}
	for _, q := range t.allQueues() {
		names[q.name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (t *Taps) allQueues() []*queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.queues))
}

func (q *queue) isServing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.serving
}

// nowServing wakes those who wait in AwaitServing.
func (t *Taps) nowServing() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.served)
	t.served = make(chan struct{})
}
