package metacontroller

import (
	"context"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// running are the controllers that the objects of one manager describe. It is a Runnable of that manager, and they end
// with it.
type running struct {
	mu   sync.Mutex
	ctx  context.Context // of the manager; nil before it runs
	ends map[string]*life
	all  sync.WaitGroup
}

// life is one run of a controller.
type life struct {
	cancel   context.CancelFunc
	done     chan struct{}
	handlers *handlers
}

// Start is part of manager.Runnable. It returns when the manager has ended and all controllers with it.
func (r *running) Start(ctx context.Context) error {
	r.mu.Lock()
	r.ctx = ctx
	r.mu.Unlock()
	<-ctx.Done()
	r.all.Wait()
	return nil
}

// start runs a controller under a name until stop or the end of the manager. The handlers are those of its watches.
func (r *running) start(id string, c controller.Controller, h *handlers, failed func(error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil || r.ctx.Err() != nil {
		return // the manager ends
	}
	ctx, cancel := context.WithCancel(r.ctx)
	l := &life{cancel: cancel, done: make(chan struct{}), handlers: h}
	r.ends[id] = l
	r.all.Go(func() {
		defer close(l.done)
		defer h.remove()
		if err := c.Start(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
	})
}

// stop ends a controller, if it runs, and returns when it has ended.
func (r *running) stop(id string) {
	r.mu.Lock()
	l := r.ends[id]
	delete(r.ends, id)
	r.mu.Unlock()
	if l != nil {
		l.cancel()
		<-l.done
	}
}

// handlers is a cache that knows the handlers that were added to its informers, so that they can be removed: a controller
// that has ended would otherwise go on being told.
type handlers struct {
	cache.Cache

	mu      sync.Mutex
	removed bool
	undo    []func()
}

// GetInformer returns an informer whose handlers are known.
func (h *handlers) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	i, err := h.Cache.GetInformer(ctx, obj, opts...)
	if err != nil {
		return nil, err
	}
	return &knownInformer{Informer: i, handlers: h}, nil
}

// remove removes all handlers, also those that are added later.
func (h *handlers) remove() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removed = true
	for _, undo := range h.undo {
		undo()
	}
	h.undo = nil
}

type knownInformer struct {
	cache.Informer

	handlers *handlers
}

// AddEventHandlerWithOptions is what controller-runtime's sources call.
func (i *knownInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	registration, err := i.Informer.AddEventHandlerWithOptions(h, o)
	if err != nil {
		return nil, err
	}
	undo := func() { _ = i.RemoveEventHandler(registration) } // it fails if the informer has ended, and then there is nothing to remove
	i.handlers.mu.Lock()
	defer i.handlers.mu.Unlock()
	if i.handlers.removed {
		undo()
		return registration, nil
	}
	i.handlers.undo = append(i.handlers.undo, undo)
	return registration, nil
}
