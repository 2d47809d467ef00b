//go:build go1.23

package taps

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// controllers are those of an operator that run now, with their work queues and reconciles. Of a program behind
// [Taps.Recorder] they only know whether it has asked for something.
type controllers struct {
	mu      sync.Mutex
	running map[types.UID]*runningReconcile // the running reconciles, by controller-runtime's id
	queues  map[*queue]struct{}
	changed chan struct{} // closed and replaced when a queue is made, served or shut down, or a program without taps asks
	asked   bool          // a program without taps has asked in its current run
}

// lab is the actor of what the lab does to the loop to test it.
const lab = "lab"

// Probe puts a key into a controller's work queue, to see what one more reconcile does. It reports whether the
// controller has a queue now. A key that waits for a timer is not touched, because it will come by itself.
func (c *controllers) Probe(controller string, key trace.Key) bool {
	for _, q := range c.allQueues() {
		if q.name == controller {
			return q.probe(request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: key.Name}})
		}
	}
	return false
}

// AwaitServing returns when the workers of each of the operator's controllers, at least one, take keys. Then its caches
// are filled. Of a program behind [Taps.Recorder] no more is known than that it has asked for something.
func (c *controllers) AwaitServing(ctx context.Context) error {
	for {
		serving, changed := c.Serving()
		if serving {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// Serving reports whether AwaitServing would return now, and returns a channel that is closed at the next change of that
// or of Controllers.
func (c *controllers) Serving() (serving bool, changed <-chan struct{}) {
	c.mu.Lock()
	changed = c.changed
	asked := c.asked
	c.mu.Unlock()
	queues := c.allQueues()
	return asked || len(queues) > 0 && !slices.ContainsFunc(queues, func(q *queue) bool { return !q.isServing() }), changed
}

// ReconcileOf returns the reconcile that a call belongs to, found by the context of its request; zero if it belongs to
// none.
func (c *controllers) ReconcileOf(ctx context.Context) trace.ReconcileRef {
	r := c.reconcileOf(ctx)
	if r == nil {
		return trace.ReconcileRef{}
	}
	return trace.ReconcileRef{ID: r.id, Controller: r.controller, Key: r.key}
}

// Controllers returns the sorted names of the controllers whose work queues exist now.
func (c *controllers) Controllers() []string {
	names := map[string]bool{}
	for _, q := range c.allQueues() {
		names[q.name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (c *controllers) allQueues() []*queue {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.queues))
}

// queuesChanged wakes those who wait for a change of the queues. The caller holds the lock.
func (c *controllers) queuesChanged() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// nowServing records that workers of a queue take keys.
func (c *controllers) nowServing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queuesChanged()
}

// nowAsked wakes those who wait in AwaitServing.
func (c *controllers) nowAsked() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = true
	c.queuesChanged()
}

// bind connects a reconcile to controller-runtime's reconcileID.
func (c *controllers) bind(controller string, key trace.Key, uid types.UID) *runningReconcile {
	for _, q := range c.allQueues() {
		if controller != "" && q.name != controller {
			continue
		}
		q.mu.Lock()
		r := q.locked[request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: key.Name}}]
		q.mu.Unlock()
		if r != nil && r.setUID(uid) {
			c.mu.Lock()
			c.running[uid] = r
			c.mu.Unlock()
			return r
		}
	}
	return nil
}

// reconcileKey is the key of the reconcile in the context of a request that does not come with the reconcile's own context,
// and belongs to it for sure.
type reconcileKey struct{}

// InReconcile returns a context whose calls belong to the reconcile of a controller's key that runs now; ctx itself if none
// does.
func (c *controllers) InReconcile(ctx context.Context, controller string, key trace.Key) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.running {
		if r.controller == controller && r.key == key {
			return context.WithValue(ctx, reconcileKey{}, r)
		}
	}
	return ctx
}

// reconcileOf returns the reconcile of a context, or nil.
func (c *controllers) reconcileOf(ctx context.Context) *runningReconcile {
	id := controller.ReconcileIDFromContext(ctx)
	if id == "" {
		r, _ := ctx.Value(reconcileKey{}).(*runningReconcile)
		return r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[id]
}

// forgetAsked is called when a program without taps begins its next run.
func (c *controllers) forgetAsked() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = false
}

// ended forgets a reconcile.
func (c *controllers) ended(id types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, id)
}

// add adds a queue, and remove takes it out when it is shut down.
func (c *controllers) add(q *queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queues[q] = struct{}{}
	c.queuesChanged()
}

// EndQueues shuts down the queues of a run that has ended. controller-runtime does so in goroutines that nobody waits for, and until
// then the next run would seem to serve before it does.
func (c *controllers) EndQueues() {
	for _, q := range c.allQueues() {
		q.ShutDown()
	}
}

func (c *controllers) remove(q *queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.queues, q)
	c.queuesChanged()
}
