package network

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Watch follows Services and EndpointSlices until the context or the hub ends. It returns when all existing ones are
// known. A second watch replaces the first as soon as it is complete; until then the first one's view is used.
func (h *Hub) Watch(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.QPS = -1
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return h.follow(ctx, clients)
}

// follow is Watch with the given clients. Stopping it does not wait for the informers, because one that cannot reach
// the API server may sleep until its next attempt.
func (h *Hub) follow(ctx context.Context, clients kubernetes.Interface) error {
	ctx, stop := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithTransform(slim))
	next := newTable()
	synced, err := next.feed(factory)
	if err != nil {
		stop()
		return err
	}
	factory.StartWithContext(ctx)
	if !cache.WaitFor(ctx, "", synced...) {
		stop()
		return ctx.Err()
	}
	if !h.lot.enter() { // closed meanwhile
		stop()
		return context.Canceled
	}
	defer h.lot.leave()
	h.mu.Lock()
	before := h.watch
	h.watch = stop
	h.table.Store(next)
	h.mu.Unlock()
	if before != nil {
		before()
	}
	return nil
}

// feed fills the table: each event at once, in the goroutine that brings it.
func (t *table) feed(factory informers.SharedInformerFactory) ([]cache.DoneChecker, error) {
	services, err := factory.Core().V1().Services().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { t.setService(object.(*corev1.Service)) },
		UpdateFunc: func(_, object any) { t.setService(object.(*corev1.Service)) },
		DeleteFunc: func(object any) {
			if s, is := last(object).(*corev1.Service); is {
				t.deleteService(key{s.Namespace, s.Name})
			}
		},
	})
	if err != nil {
		return nil, err
	}
	slices, err := factory.Discovery().V1().EndpointSlices().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { t.setSlice(object.(*discoveryv1.EndpointSlice)) },
		UpdateFunc: func(before, object any) {
			was, is := before.(*discoveryv1.EndpointSlice), object.(*discoveryv1.EndpointSlice)
			if ofSlice(was) != ofSlice(is) {
				t.deleteSlice(was)
			}
			t.setSlice(is)
		},
		DeleteFunc: func(object any) {
			if s, is := last(object).(*discoveryv1.EndpointSlice); is {
				t.deleteSlice(s)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return []cache.DoneChecker{services.HasSyncedChecker(), slices.HasSyncedChecker()}, nil
}

// last returns the last known state of a deleted object.
func last(object any) any {
	if unknown, is := object.(cache.DeletedFinalStateUnknown); is {
		return unknown.Obj
	}
	return object
}

// slim drops the managed fields, which nobody here reads and which are often the larger part.
func slim(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
