package metacontroller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// claim returns the children of a parent, of all declared kinds: those that it controls and its selector matches. It lets
// go of those that it controls and its selector does not match, and adopts those that match and nobody controls.
func (c *composite) claim(ctx context.Context, parent *unstructured.Unstructured) (objects, error) {
	selector, err := c.selectorOf(parent)
	if err != nil {
		return nil, err
	}
	out := objects{}
	mayAdopt := c.mayAdopt(parent)
	for _, child := range c.children {
		out.add(child.GroupVersionKind)
		list := child.list()
		if err := c.client.List(ctx, list, client.InNamespace(parent.GetNamespace())); err != nil {
			return nil, fmt.Errorf("list %s: %w", child.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			is, err := c.claimOne(ctx, parent, object, selector, mayAdopt)
			if err != nil {
				return nil, err
			}
			if is {
				out.add(child.GroupVersionKind, object)
			}
		}
	}
	return out, nil
}

// claimOne reports whether an object is a child of a parent, after it was adopted or let go of.
func (c *composite) claimOne(ctx context.Context, parent, object *unstructured.Unstructured, selector labels.Selector, mayAdopt func(context.Context) error) (bool, error) {
	matches := selector.Matches(labels.Set(object.GetLabels()))
	switch owner := metav1.GetControllerOf(object); {
	case owner != nil && owner.UID != parent.GetUID():
		return false, nil
	case owner != nil && matches:
		return true, nil
	case owner != nil:
		if parent.GetDeletionTimestamp() != nil {
			return false, nil // the garbage collector may be at it
		}
		return false, c.letGo(ctx, parent, object)
	case !matches || object.GetDeletionTimestamp() != nil || parent.GetDeletionTimestamp() != nil:
		return false, nil
	}
	if err := mayAdopt(ctx); err != nil {
		return false, fmt.Errorf("adopt %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	object.SetOwnerReferences(append(object.GetOwnerReferences(), ownerReference(parent)))
	err := c.client.Update(ctx, object, FieldOwner)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("adopt %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return !apierrors.IsNotFound(err), nil
}

// letGo makes an object an orphan.
func (c *composite) letGo(ctx context.Context, parent, object *unstructured.Unstructured) error {
	object.SetOwnerReferences(slices.DeleteFunc(object.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == parent.GetUID()
	}))
	if err := c.client.Update(ctx, object, FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("let go of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// mayAdopt returns a function that asks the API server, once, whether a parent is there and is not being deleted: the
// cache may not know yet.
func (c *composite) mayAdopt(parent *unstructured.Unstructured) func(context.Context) error {
	var asked bool
	var err error
	return func(ctx context.Context) error {
		if asked {
			return err
		}
		asked = true
		fresh := c.parent.object()
		switch err = c.live.Get(ctx, client.ObjectKeyFromObject(parent), fresh); {
		case err != nil:
		case fresh.GetUID() != parent.GetUID():
			err = errors.New("its parent is gone, and there is another one of that name")
		case fresh.GetDeletionTimestamp() != nil:
			err = errors.New("its parent is being deleted")
		}
		return err
	}
}

// ownerReference returns the reference of a child to its parent, which controls it.
func ownerReference(parent *unstructured.Unstructured) metav1.OwnerReference {
	return *metav1.NewControllerRef(parent, parent.GroupVersionKind())
}
