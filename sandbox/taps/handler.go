//go:build go1.23

package taps

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// bracket surrounds the call of a handler with a watch event: keys added in its goroutine meanwhile come from that
// event.
type bracket struct {
	watch      int64  // Seq of the watch event
	keys       int    // keys added so far; only its own goroutine writes it
	controller string // the controller that the keys were added to
}

func (b *bracket) made(controller string, keys int) {
	b.controller = controller
	b.keys += keys
}

// brackets are those that goroutines are in now.
type brackets struct {
	open atomic.Int64 // their number, so that the queue can skip the lookup when there are none
	of   sync.Map     // goroutine id -> *bracket
}

// currentBracket returns the bracket of the calling goroutine, or nil.
func (b *brackets) currentBracket() *bracket {
	if b.open.Load() == 0 {
		return nil
	}
	in, ok := b.of.Load(goroutineID())
	if !ok {
		return nil
	}
	return in.(*bracket)
}

// within puts the calling goroutine into a bracket; leave ends it.
func (b *brackets) within(in *bracket) (leave func()) {
	id := goroutineID()
	b.of.Store(id, in)
	b.open.Add(1)
	return func() {
		b.open.Add(-1)
		b.of.Delete(id)
	}
}

// tappedHandler brackets each call of a handler.
type tappedHandler struct {
	toolscache.ResourceEventHandler
	feed *feed
	// makesKeys is true for the handler of a controller's source, which is expected to make keys; others (an operator's
	// own) never record a drop.
	makesKeys bool
	// joined is true if the handler has a queue of its own, which then takes the bracket from current; else the
	// goroutine determines it.
	joined  bool
	current atomic.Pointer[bracket]
	// turn admits one event at a time. An informer does so anyway, but an informer of several namespaces consists of
	// one for each.
	turn sync.Mutex
	// controller is the handler's controller; known from the first key it makes.
	controller atomic.Pointer[string]
}

func (f *feed) handler(inner toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	h := &tappedHandler{ResourceEventHandler: inner, feed: f, makesKeys: isControllerHandler(inner)}
	if h.makesKeys {
		f.mu.Lock()
		f.controllers++
		f.mu.Unlock()
	}
	h.giveQueue(inner)
	return h
}

// isControllerHandler recognizes the handler that controller-runtime's source.Kind registers, whose type is internal.
func isControllerHandler(h toolscache.ResourceEventHandler) bool {
	return strings.HasPrefix(fmt.Sprintf("%T", h), "*internal.EventHandler[")
}

// OnAdd is part of cache.ResourceEventHandler.
func (h *tappedHandler) OnAdd(obj any, isInInitialList bool) {
	h.bracket(trace.Added, nil, obj, isInInitialList, func() {
		h.ResourceEventHandler.OnAdd(obj, isInInitialList)
	})
}

// OnUpdate is part of cache.ResourceEventHandler.
func (h *tappedHandler) OnUpdate(oldObj, newObj any) {
	h.bracket(trace.Modified, oldObj, newObj, false, func() {
		h.ResourceEventHandler.OnUpdate(oldObj, newObj)
	})
}

// OnDelete is part of cache.ResourceEventHandler.
func (h *tappedHandler) OnDelete(obj any) {
	last := obj
	if t, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		last = t.Obj
	}
	h.bracket(trace.Deleted, nil, last, false, func() {
		h.ResourceEventHandler.OnDelete(obj)
	})
}

// bracket records a watch event, calls the handler, and records a drop if it made no key.
func (h *tappedHandler) bracket(verb string, oldObj, newObj any, initial bool, call func()) {
	obj, ok := newObj.(client.Object)
	if !ok {
		call()
		return
	}
	t := h.feed.taps
	b := &bracket{watch: h.feed.record(verb, obj, initial)}
	if h.joined {
		h.turn.Lock()
		defer h.turn.Unlock()
		h.current.Store(b)
		defer h.current.Store(nil)
	} else {
		defer t.within(b)()
	}
	if h.makesKeys {
		defer h.feed.handled(b.watch)
	}
	call()
	switch {
	case b.keys > 0:
		if h.controller.Load() == nil {
			h.controller.Store(&b.controller)
		}
	case h.makesKeys:
		t.append(trace.Event{
			Kind: trace.KindDrop, Cause: b.watch, Controller: h.controllerName(), Verb: verb,
			Object: reference(obj, h.feed.kind), ResourceVersion: obj.GetResourceVersion(),
			Generation: obj.GetGeneration(), Reason: dropReason(oldObj, obj),
		})
	}
}

// controllerName returns the handler's controller; empty if it is not known yet.
func (h *tappedHandler) controllerName() string {
	if name := h.controller.Load(); name != nil {
		return *name
	}
	if queues := h.feed.taps.allQueues(); len(queues) == 1 {
		return queues[0].name
	}
	return ""
}

// dropReason is the reason of a drop event, as far as it can be known from outside. Which predicate dropped it cannot.
func dropReason(oldObj any, obj client.Object) string {
	before, ok := oldObj.(client.Object)
	switch {
	case !ok:
		return ""
	case before.GetResourceVersion() == obj.GetResourceVersion():
		return trace.ReasonResync
	case obj.GetGeneration() > 0 && before.GetGeneration() == obj.GetGeneration():
		return trace.ReasonStatusOnly
	}
	return ""
}
