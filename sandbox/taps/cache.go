//go:build go1.23

package taps

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// tappedCache is a manager's cache whose informers are observed, and which marks the reads that it answers.
type tappedCache struct {
	cache.Cache
	taps   *Taps
	scheme *runtime.Scheme
	beside bool // it is that of a cluster beside the manager: it starts and stops no operator

	mu    sync.Mutex
	feeds map[feedKey]*feed // of this run of the operator: the next run lists everything anew
	early []cache.Informer  // those that were there before the start

	started atomic.Bool

	// due is how many calls of controllers' handlers with watch events are still to come.
	due atomic.Int64
}

// Start runs the cache and records the start and the stop of the operator.
func (c *tappedCache) Start(ctx context.Context) error {
	c.started.Store(true)
	if c.beside {
		return c.Cache.Start(ctx)
	}
	c.taps.append(trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStart})
	defer c.taps.append(trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStop})
	return c.Cache.Start(ctx)
}

// runKey is the key of the context of a run.
type runKey struct{}

// BaseContext returns what the runnables of a manager get their contexts from, if that of its run is ctx: controller-runtime cancels
// them only when all have started.
func BaseContext(ctx context.Context) func() context.Context {
	return func() context.Context { return context.WithValue(context.Background(), runKey{}, ctx) }
}

// WaitForCacheSync waits until the cache is filled. The end of ctx also counts as synced: otherwise a manager that is
// stopped while it starts would wait forever, because controller-runtime's runnable groups check only this result.
func (c *tappedCache) WaitForCacheSync(ctx context.Context) bool {
	if run, known := ctx.Value(runKey{}).(context.Context); known {
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(run, cancel)()
		ctx = waiting
	}
	c.awaitEarly(ctx)
	return c.Cache.WaitForCacheSync(ctx) || ctx.Err() != nil
}

// Get reads an object from the cache. What a reconcile reads past the client is recorded as if the client had been asked.
func (c *tappedCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	call := callOf(ctx)
	switch {
	case call != nil:
		call.answeredBy(trace.Cache)
	case c.taps.reconcileOf(ctx) != nil:
		return tappedClient{c.taps}.getBy(ctx, c, key, obj, opts...)
	}
	return c.Cache.Get(ctx, key, obj, opts...)
}

// List reads objects from the cache, as Get does.
func (c *tappedCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	call := callOf(ctx)
	switch {
	case call != nil:
		call.answeredBy(trace.Cache)
	case c.taps.reconcileOf(ctx) != nil:
		return tappedClient{c.taps}.listBy(ctx, c, list, opts...)
	}
	return c.Cache.List(ctx, list, opts...)
}

// GroupVersionKindFor returns the kind of an object.
func (c *tappedCache) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, c.scheme)
}

// GetInformer returns the observed informer of an object's kind.
func (c *tappedCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	get := func(opts ...cache.InformerGetOption) (cache.Informer, error) {
		return c.Cache.GetInformer(ctx, obj, opts...)
	}
	c.awaitInformer(ctx, opts, get)
	i, err := get(opts...)
	if err != nil {
		return nil, err
	}
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return nil, err
	}
	return &tappedInformer{Informer: i, feed: c.feed(gvk)}, nil
}

// GetInformerForKind returns the observed informer of a kind.
func (c *tappedCache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	get := func(opts ...cache.InformerGetOption) (cache.Informer, error) {
		return c.Cache.GetInformerForKind(ctx, gvk, opts...)
	}
	c.awaitInformer(ctx, opts, get)
	i, err := get(opts...)
	if err != nil {
		return nil, err
	}
	return &tappedInformer{Informer: i, feed: c.feed(gvk)}, nil
}

// tappedInformer is an informer whose handlers are observed.
type tappedInformer struct {
	cache.Informer
	feed *feed
}

// AddEventHandler adds an observed handler.
func (i *tappedInformer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	r, err := i.Informer.AddEventHandler(i.feed.handler(h))
	return i.registered(h, r, err)
}

// AddEventHandlerWithResyncPeriod adds an observed handler.
func (i *tappedInformer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, resync time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	r, err := i.Informer.AddEventHandlerWithResyncPeriod(i.feed.handler(h), resync)
	return i.registered(h, r, err)
}

// feedKey identifies the kind of a feed's objects.
type feedKey = schema.GroupVersionKind

// seenSize bounds how many watch events a feed remembers: at least this many, at most twice as many.
const seenSize = 1024

// feed records the watch events of one kind. Several handlers get each event, in goroutines of their own, but only the
// first records it.
type feed struct {
	taps *Taps
	kind feedKey
	via  string        // of its events
	due  *atomic.Int64 // of the cache; nil if it has no handlers

	mu            sync.Mutex
	recent, older map[delivery]int64
	controllers   int64           // how many handlers of controllers there are
	open          map[int64]int64 // how many of them have not had a watch event, by its Seq
}

// delivery identifies one watch event.
type delivery struct{ uid, rv, verb string }

func newFeed(t *Taps, kind feedKey) *feed {
	return &feed{taps: t, kind: kind, recent: map[delivery]int64{}}
}

func (c *tappedCache) feed(kind feedKey) *feed {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.feeds[kind]
	if f == nil {
		f = newFeed(c.taps, kind)
		f.due, f.open = &c.due, map[int64]int64{}
		c.feeds[kind] = f
	}
	return f
}

// record appends a watch event, unless another handler has done so, and returns its Seq.
func (f *feed) record(verb string, obj client.Object, initial bool) int64 {
	d := delivery{string(obj.GetUID()), obj.GetResourceVersion(), verb}
	return f.append(d, initial, func() (version, json.RawMessage) { return f.versions(verb, obj) })
}

// append appends a watch event, unless that was done before, and returns its Seq.
func (f *feed) append(d delivery, initial bool, versions func() (v version, before json.RawMessage)) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seq := f.recent[d]; seq != 0 {
		return seq
	}
	if seq := f.older[d]; seq != 0 {
		return seq
	}
	v, before := versions()
	seq := f.taps.append(trace.Event{
		Kind: trace.KindWatch, Verb: d.verb, Object: v.ref, ResourceVersion: v.rv,
		Generation: v.generation, Before: before, After: v.raw, Initial: initial, Via: f.via,
	})
	if f.controllers > 1 {
		f.open[seq] = f.controllers
		f.due.Add(f.controllers)
	}
	if len(f.recent) >= seenSize {
		f.older, f.recent = f.recent, map[delivery]int64{}
	}
	f.recent[d] = seq
	return seq
}

// handled is called when a controller's handler has had a watch event.
func (f *feed) handled(watch int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[watch] == 0 {
		return // it is younger than the event
	}
	f.due.Add(-1)
	if f.open[watch]--; f.open[watch] == 0 {
		delete(f.open, watch)
	}
}

// versions returns an object as the journal stores it, and its version before. The watch event of the operator's own
// write shares the bytes of the write's answer and has no before, because the write has it.
func (f *feed) versions(verb string, obj client.Object) (v version, before json.RawMessage) {
	last := f.taps.lastKnown(f.kind, obj.GetNamespace(), obj.GetName())
	if verb != trace.Deleted && last.is(obj) {
		return last, last.before
	}
	v = encode(obj, f.kind)
	f.taps.learn(f.kind, v, verb == trace.Deleted)
	return v, last.raw
}
