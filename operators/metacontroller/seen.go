package metacontroller

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How long a sync waits until the cache has what it wrote, and how often it looks at first. It takes milliseconds, unless
// the watch is broken; then the next sync is asked about an older state, which it has to bear.
const (
	seenPatience = time.Second
	seenPause    = time.Millisecond
	seenLastWait = 20 * time.Millisecond
)

// seen waits until the cache has what was written of an object, so that the next sync does not ask a hook about a state
// before that: the events of a parent and of its children come in any order. There is nil if it has no such object.
func (m *meta) seen(ctx context.Context, object *unstructured.Unstructured, is func(there *unstructured.Unstructured) bool) {
	ctx, cancel := context.WithTimeout(ctx, seenPatience)
	defer cancel()
	key := client.ObjectKeyFromObject(object)
	for pause := seenPause; ; pause = min(2*pause, seenLastWait) {
		there := &unstructured.Unstructured{}
		there.SetGroupVersionKind(object.GroupVersionKind())
		err := m.mgr.GetCache().Get(ctx, key, there)
		switch {
		case apierrors.IsNotFound(err):
			there = nil
		case err != nil:
			return
		}
		if is(there) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func isThere(there *unstructured.Unstructured) bool { return there != nil }

// asNewAs returns whether an object is as new as what the API server answered to a write, or another one by now.
func asNewAs(written *unstructured.Unstructured) func(*unstructured.Unstructured) bool {
	return func(there *unstructured.Unstructured) bool {
		if there == nil {
			return false
		}
		order, err := resourceversion.CompareResourceVersion(there.GetResourceVersion(), written.GetResourceVersion())
		return err != nil || order >= 0
	}
}

// goneOrAsNewAs is asNewAs of an object that may be gone by now, as one whose last finalizer was taken away.
func goneOrAsNewAs(written *unstructured.Unstructured) func(*unstructured.Unstructured) bool {
	return func(there *unstructured.Unstructured) bool { return there == nil || asNewAs(written)(there) }
}
