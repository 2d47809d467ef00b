//go:build go1.23

package taps

import (
	"context"
	"slices"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// controller-runtime looks every 100 ms whether an informer has its first list, and then whether a handler has heard of it, which
// takes some milliseconds each: a controller would start 200 ms late. So the taps look more often in its stead.
const (
	syncedEvery = 2 * time.Millisecond
	// syncedPause is how long a handler's registration may take to answer; it is less than controller-runtime's pause.
	syncedPause = 90 * time.Millisecond
)

// awaitSynced returns true when the condition holds, or false when ctx ends.
func awaitSynced(ctx context.Context, synced func() bool) bool {
	for !synced() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(syncedEvery):
		}
	}
	return true
}

// awaitInformer waits for the first list of an informer if [cache.Cache.GetInformer] is going to: the cache was started, and the
// caller wants to wait. An informer that is there before the start is remembered for WaitForCacheSync.
func (c *tappedCache) awaitInformer(ctx context.Context, opts []cache.InformerGetOption, get func(...cache.InformerGetOption) (cache.Informer, error)) {
	var o cache.InformerGetOptions
	for _, opt := range opts {
		opt(&o)
	}
	started := c.started.Load()
	if started && o.BlockUntilSynced != nil && !*o.BlockUntilSynced {
		return
	}
	i, err := get(append(slices.Clip(opts), cache.BlockUntilSynced(false))...)
	switch {
	case err != nil: // the caller asks once more, and gets it
	case started:
		awaitSynced(ctx, i.HasSynced)
	default:
		c.mu.Lock()
		c.early = append(c.early, i)
		c.mu.Unlock()
	}
}

// IndexField adds an index, and remembers the informer that it made.
func (c *tappedCache) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	err := c.Cache.IndexField(ctx, obj, field, extract)
	if err == nil {
		c.awaitInformer(ctx, []cache.InformerGetOption{cache.BlockUntilSynced(false)}, func(opts ...cache.InformerGetOption) (cache.Informer, error) {
			return c.Cache.GetInformer(ctx, obj, opts...)
		})
	}
	return err
}

// awaitEarly waits for the first lists of the informers that were there before the cache was started.
func (c *tappedCache) awaitEarly(ctx context.Context) {
	c.mu.Lock()
	early := c.early
	c.mu.Unlock()
	for _, i := range early {
		awaitSynced(ctx, i.HasSynced)
	}
}

// sourceRegistration is the registration of the handler of a controller's source, which asks it again and again whether the handler
// has heard of the first list.
type sourceRegistration struct {
	toolscache.ResourceEventHandlerRegistration
}

// HasSynced reports whether the handler has heard of the first list, or soon has.
func (r sourceRegistration) HasSynced() bool {
	ctx, cancel := context.WithTimeout(context.Background(), syncedPause)
	defer cancel()
	return awaitSynced(ctx, r.ResourceEventHandlerRegistration.HasSynced)
}

// registered returns the registration of a handler as its caller is to have it.
func (i *tappedInformer) registered(h toolscache.ResourceEventHandler, r toolscache.ResourceEventHandlerRegistration, err error) (toolscache.ResourceEventHandlerRegistration, error) {
	if err == nil && isControllerHandler(h) {
		r = sourceRegistration{r}
	}
	return r, err
}

// RemoveEventHandler removes a handler.
func (i *tappedInformer) RemoveEventHandler(r toolscache.ResourceEventHandlerRegistration) error {
	if source, is := r.(sourceRegistration); is {
		r = source.ResourceEventHandlerRegistration
	}
	return i.Informer.RemoveEventHandler(r)
}
