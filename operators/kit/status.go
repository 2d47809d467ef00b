package kit

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// ApplyStatus writes the status of an object, and returns the whole object as the API server answered; nil if it is gone.
// The UID keeps the write from reaching a later object of the same name: then the error is a conflict.
func ApplyStatus[T client.Object](ctx context.Context, c client.Client, owner client.FieldOwner, object T, status any) (written T, err error) {
	gvk, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return written, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return written, fmt.Errorf("convert the status: %w", err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(object.GetNamespace())
	u.SetName(object.GetName())
	u.SetUID(object.GetUID())
	err = c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), owner, client.ForceOwnership)
	if err != nil {
		if client.IgnoreNotFound(err) == nil {
			return written, nil
		}
		return written, fmt.Errorf("apply the status: %w", err)
	}
	written = reflect.New(reflect.TypeOf(object).Elem()).Interface().(T)
	return written, readInto(u, written)
}

// LastWritten remembers how the API server answered to the last status of each object, until the cache has it. Without
// it, a reconcile that comes before would take for news what was just written, and write it again: harmless, but then
// the number of writes and events would depend on the speed of the machine. The zero value is ready.
type LastWritten[T client.Object] struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]T
}

// Latest returns the newer one of the cached object and the one that was remembered. An object of an earlier UID does not
// count.
func (w *LastWritten[T]) Latest(cached T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := client.ObjectKeyFromObject(cached)
	written, ok := w.byKey[key]
	if !ok {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written.GetResourceVersion())
	if written.GetUID() != cached.GetUID() || err != nil || order >= 0 {
		delete(w.byKey, key)
		return cached
	}
	return written
}

// Remember keeps an object as the API server returned it.
func (w *LastWritten[T]) Remember(written T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey == nil {
		w.byKey = map[types.NamespacedName]T{}
	}
	w.byKey[client.ObjectKeyFromObject(written)] = written
}

// Forget drops what is remembered of an object that is gone.
func (w *LastWritten[T]) Forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byKey, key)
}
