package metacontroller

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
)

// applied remembers for the children of each parent what was applied last, and what they were after that. While neither
// the wish nor the child has changed, nothing is written. It is only a saving: after a restart each child is applied once
// more, which changes nothing. The zero value is ready.
type applied struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]map[types.UID]version
}

// version says what was applied to a child and what it was then.
type version struct {
	wish [sha256.Size]byte
	// generation is that of the child, resourceVersion is for kinds without one.
	generation      int64
	resourceVersion string
}

func versionOf(wish [sha256.Size]byte, child *unstructured.Unstructured) version {
	v := version{wish: wish, generation: child.GetGeneration()}
	if v.generation == 0 {
		v.resourceVersion = child.GetResourceVersion()
	}
	return v
}

// is reports whether a wish was applied to a child, and the child has not changed since then.
func (a *applied) is(parent types.NamespacedName, child types.UID, v version) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, known := a.byKey[parent][child]
	return known && was == v
}

func (a *applied) remember(parent types.NamespacedName, child types.UID, v version) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey == nil {
		a.byKey = map[types.NamespacedName]map[types.UID]version{}
	}
	if a.byKey[parent] == nil {
		a.byKey[parent] = map[types.UID]version{}
	}
	a.byKey[parent][child] = v
}

// forget drops a parent that is gone.
func (a *applied) forget(parent types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byKey, parent)
}

// drop drops a child that was deleted.
func (a *applied) drop(parent types.NamespacedName, child types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byKey[parent], child)
}

// manage deletes the observed children that are not wanted, creates the wanted ones that are not there, and updates the
// others as their kinds say. An error about one does not keep it from the others.
func (m *meta) manage(ctx context.Context, a *applied, kinds kinds, parent *unstructured.Unstructured, observed, wanted objects) error {
	key := client.ObjectKeyFromObject(parent)
	var errs []error
	for _, child := range observed.list() {
		if child.GetDeletionTimestamp() == nil && wanted[child.GroupVersionKind()][fullName(child)] == nil {
			errs = append(errs, m.remove(ctx, child))
			a.drop(key, child.GetUID())
		}
	}
	for _, wish := range wanted.list() {
		k := kinds.find(wish.GroupVersionKind())
		there := observed[wish.GroupVersionKind()][fullName(wish)]
		own(wish, parent)
		switch {
		case there == nil:
			errs = append(errs, m.create(ctx, a, k, parent, wish))
		case there.GetDeletionTimestamp() != nil || k.strategy.Method == v1alpha1.OnDelete:
		default:
			errs = append(errs, m.update(ctx, a, k, key, there, wish))
		}
	}
	return errors.Join(errs...)
}

// own makes a wanted child one of its parent, and takes out what only an API server writes.
func own(wish, parent *unstructured.Unstructured) {
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "managedFields", "selfLink",
	} {
		unstructured.RemoveNestedField(wish.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(wish.Object, "status") // that of a child is not the parent's to write
	var refs []metav1.OwnerReference
	for _, ref := range wish.GetOwnerReferences() {
		if ref.UID != parent.GetUID() {
			refs = append(refs, ref)
		}
	}
	wish.SetOwnerReferences(append(refs, ownerReference(parent)))
}

// remove deletes a child, and what it owns in the background.
func (m *meta) remove(ctx context.Context, child *unstructured.Unstructured) error {
	log.FromContext(ctx).Info("Deleting a child", "child", child.GetKind()+" "+child.GetName())
	uid := child.GetUID()
	err := m.client.Delete(ctx, child, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s %s: %w", child.GetKind(), child.GetName(), err)
	}
	m.seen(ctx, child, func(there *unstructured.Unstructured) bool {
		return there == nil || there.GetUID() != uid || there.GetDeletionTimestamp() != nil
	})
	return nil
}

// create creates a child that was not observed. One that may be updated later is applied from the beginning, so that a
// field which the hook leaves out one day is taken away; since that would take over an object of somebody else, the API
// server is asked first whether there is one. Another is created.
func (m *meta) create(ctx context.Context, a *applied, k *childKind, parent, wish *unstructured.Unstructured) error {
	log.FromContext(ctx).Info("Creating a child", "child", wish.GetKind()+" "+wish.GetName())
	if k.strategy.Method == v1alpha1.OnDelete {
		err := m.client.Create(ctx, wish, FieldOwner)
		if apierrors.IsAlreadyExists(err) {
			_, err = m.taken(ctx, k, parent, wish)
		}
		if err != nil {
			return fmt.Errorf("create %s %s: %w", wish.GetKind(), wish.GetName(), err)
		}
		m.seen(ctx, wish, isThere)
		return nil
	}
	taken, err := m.taken(ctx, k, parent, wish)
	if err != nil || taken {
		return err
	}
	return m.apply(ctx, a, client.ObjectKeyFromObject(parent), wish)
}

// taken reports whether an object of the parent has the name of a wanted one already, which the cache does not have yet,
// and returns an error if it is not the parent's.
func (m *meta) taken(ctx context.Context, k *childKind, parent, wish *unstructured.Unstructured) (bool, error) {
	there := k.object()
	switch err := m.live.Get(ctx, client.ObjectKeyFromObject(wish), there); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("get %s %s: %w", wish.GetKind(), wish.GetName(), err)
	case !metav1.IsControlledBy(there, parent):
		return false, fmt.Errorf("%s %s belongs to somebody else, and %s %s does not take it over",
			wish.GetKind(), wish.GetName(), parent.GetKind(), parent.GetName())
	}
	return true, nil
}

// update makes a child as it is wanted: in place, or by deleting it, and then the next sync creates it.
func (m *meta) update(ctx context.Context, a *applied, k *childKind, parent types.NamespacedName, there, wish *unstructured.Unstructured) error {
	sum, err := sumOf(wish)
	if err != nil {
		return err
	}
	if a.is(parent, there.GetUID(), versionOf(sum, there)) {
		return nil
	}
	wish.SetUID(there.GetUID()) // so that it reaches no other object of the same name
	switch k.strategy.Method {
	case v1alpha1.Recreate, v1alpha1.RollingRecreate:
		differs, err := m.wouldChange(ctx, there, wish)
		if err != nil {
			return err
		}
		if !differs {
			a.remember(parent, there.GetUID(), versionOf(sum, there))
			return nil
		}
		a.drop(parent, there.GetUID())
		return m.remove(ctx, there)
	default:
		return m.apply(ctx, a, parent, wish)
	}
}

// apply applies a child as a whole.
func (m *meta) apply(ctx context.Context, a *applied, parent types.NamespacedName, wish *unstructured.Unstructured) error {
	sum, err := sumOf(wish)
	if err != nil {
		return err
	}
	if err := m.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wish), FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply %s %s: %w", wish.GetKind(), wish.GetName(), err)
	}
	a.remember(parent, wish.GetUID(), versionOf(sum, wish)) // it has become the answer
	m.seen(ctx, wish, asNewAs(wish))
	return nil
}

// wouldChange reports whether applying a child would change it, by a dry run.
func (m *meta) wouldChange(ctx context.Context, there, wish *unstructured.Unstructured) (bool, error) {
	dry := wish.DeepCopy()
	err := m.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(dry), FieldOwner, client.ForceOwnership, client.DryRunAll)
	switch {
	case apierrors.IsInvalid(err): // perhaps a field that cannot be changed, as most of a Pod
		return m.couldBeNew(ctx, wish, err)
	case err != nil:
		return false, fmt.Errorf("try %s %s: %w", wish.GetKind(), wish.GetName(), err)
	}
	return !reflect.DeepEqual(content(dry), content(there)), nil
}

// couldBeNew reports whether a wanted child that its present object cannot become could be a new object. If it could not,
// deleting the present one would only lose it, so then the error is returned.
func (m *meta) couldBeNew(ctx context.Context, wish *unstructured.Unstructured, refused error) (bool, error) {
	dry := wish.DeepCopy()
	dry.SetUID("")
	dry.SetGenerateName(dry.GetName() + "-")
	dry.SetName("")
	if err := m.client.Create(ctx, dry, FieldOwner, client.DryRunAll); err != nil {
		return false, fmt.Errorf("try %s %s: %w", wish.GetKind(), wish.GetName(), refused)
	}
	return true, nil
}

// content returns what of an object is compared: not what an API server writes by itself.
func content(u *unstructured.Unstructured) any {
	u = u.DeepCopy()
	unstructured.RemoveNestedField(u.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	return normal(u.Object)
}

// sumOf returns the sum of a wanted child, whether it has a UID or not.
func sumOf(wish *unstructured.Unstructured) ([sha256.Size]byte, error) {
	u := wish.DeepCopy()
	unstructured.RemoveNestedField(u.Object, "metadata", "uid")
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("write %s %s: %w", wish.GetKind(), wish.GetName(), err)
	}
	return sha256.Sum256(raw), nil
}
