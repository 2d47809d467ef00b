//go:build go1.23

package taps

import (
	"reflect"
	"time"
	"unsafe"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// sourceQueue is a controller's queue for one of its sources: keys added through it come from the watch event that the
// source's handler is handling.
type sourceQueue struct {
	*queue
	handler *tappedHandler
}

// Add puts a key into the queue.
func (q sourceQueue) Add(key request) { q.AddWithOpts(addOpts{}, key) }

// AddAfter puts a key into the queue after a delay.
func (q sourceQueue) AddAfter(key request, after time.Duration) {
	q.AddWithOpts(addOpts{After: after}, key)
}

// AddRateLimited puts a key into the queue when the rate limiter allows it.
func (q sourceQueue) AddRateLimited(key request) {
	q.AddWithOpts(addOpts{RateLimited: true}, key)
}

// AddWithOpts puts keys into the queue.
func (q sourceQueue) AddWithOpts(o addOpts, keys ...request) {
	q.addFrom(q.handler.current.Load(), o, keys)
}

// giveQueue gives the handler of a controller's source a queue of its own, so that the keys it makes are connected to
// their watch events at no cost. The handler's type and its field are internal to controller-runtime; a test pins them.
// If they are not as expected it changes nothing, and the goroutine's number connects the two (see goroutineID).
func (h *tappedHandler) giveQueue(inner toolscache.ResourceEventHandler) {
	v := reflect.ValueOf(inner)
	if !h.makesKeys || v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return
	}
	f := v.Elem().FieldByName("queue")
	if !f.IsValid() || f.Type() != reflect.TypeFor[workqueue.TypedRateLimitingInterface[request]]() {
		return
	}
	field := (*workqueue.TypedRateLimitingInterface[request])(unsafe.Pointer(f.UnsafeAddr()))
	q, ours := (*field).(*queue)
	if !ours {
		return
	}
	*field = sourceQueue{queue: q, handler: h}
	h.controller.Store(&q.name)
	h.joined = true
}
