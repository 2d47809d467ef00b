package taps

import (
	"context"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// caught is an informer that stores the handler that is added to it.
type caught struct {
	*controllertest.FakeInformer
	handler toolscache.ResourceEventHandler
}

func (c *caught) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	c.handler = h
	return c.FakeInformer, nil
}

// TestSourceHandlerHasAQueue pins what giveQueue relies on. If it fails after
// an update of controller-runtime, causes are still exact, but cost more.
func TestSourceHandlerHasAQueue(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	cache := &informertest.FakeInformers{Scheme: clientgoscheme.Scheme}
	fake, err := cache.FakeInformerForKind(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	informer := &caught{FakeInformer: fake}
	cache.InformersByGVK[kind] = informer
	j := trace.New(trace.Options{})
	taps := New(j, Options{})
	q := newQueue(taps, "pinned", newLimiter())
	defer q.ShutDown()
	src := source.Kind(cache, client.Object(&corev1.ConfigMap{}), &handler.EnqueueRequestForObject{})
	if err := src.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if err := src.WaitForSync(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	feed := &feed{taps: taps, kind: kind, recent: map[delivery]int64{}}
	h, ok := feed.handler(informer.handler).(*tappedHandler)
	if !ok || !h.makesKeys || !h.joined || h.controllerName() != "pinned" {
		t.Fatalf("the handler of source.Kind (%s) was not recognized: %+v", reflect.TypeOf(informer.handler), h)
	}
	cm := &corev1.ConfigMap{}
	cm.Name, cm.UID, cm.ResourceVersion = "a", "u", "1"
	h.OnAdd(cm, false)
	enqueued := j.Get(j.Stats().Last)
	if enqueued.Kind != trace.KindEnqueue || enqueued.Cause == 0 || j.Get(enqueued.Cause).Kind != trace.KindWatch {
		t.Errorf("the key is not joined: %+v", enqueued)
	}
}
