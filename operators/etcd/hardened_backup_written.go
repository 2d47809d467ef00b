package etcd

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// applyStatus writes the status of an object, and returns the object as it is then; nil if it was deleted meanwhile. The
// UID keeps it from reaching a later object of the same name.
func applyStatus[T client.Object](ctx context.Context, c client.Client, object T, kind string, status any) (written T, err error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return written, fmt.Errorf("convert the status: %w", err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(v1beta2.GroupVersion.WithKind(kind))
	u.SetNamespace(object.GetNamespace())
	u.SetName(object.GetName())
	u.SetUID(object.GetUID())
	err = c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner, client.ForceOwnership)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return written, nil // deleted meanwhile, and perhaps made anew
	}
	if err != nil {
		return written, fmt.Errorf("apply the status: %w", err)
	}
	written = reflect.New(reflect.TypeOf(object).Elem()).Interface().(T) // the answer is the whole object
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, written); err != nil {
		return written, fmt.Errorf("read %s %s back: %w", kind, object.GetName(), err)
	}
	return written, nil
}

// lastWritten remembers how the API server last answered to a status, until the cache has it. The event of a pod can
// bring the next pass before that, which would take for news what was just said. The zero value is ready.
type lastWritten[T client.Object] struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]T
}

// latest returns the object as it is, as far as we know: the cached one, or as it was when we wrote to it since.
func (w *lastWritten[T]) latest(cached T) T {
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

func (w *lastWritten[T]) remember(written T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey == nil {
		w.byKey = map[types.NamespacedName]T{}
	}
	w.byKey[client.ObjectKeyFromObject(written)] = written
}

// forget drops what is known about an object that is gone.
func (w *lastWritten[T]) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byKey, key)
}
