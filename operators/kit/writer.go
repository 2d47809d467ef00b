package kit

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Writer writes the objects of an operator.
type Writer struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads past the cache. Ensure asks it what has a name that should have been free.
	Live client.Reader
	// Owner owns the fields that are written.
	Owner client.FieldOwner
}

// Change says what Ensure did.
type Change int

const (
	// None means that nothing was written. The object is as wanted, or is being deleted, or an earlier call has created it
	// and the cache does not have it yet.
	None Change = iota
	// Created means that the object was created.
	Created
	// Applied means that the wanted fields were written over others.
	Applied
	// Taken means that the name belongs to an object of somebody else, which was left alone.
	Taken
)

// Ensure makes an object have the wanted fields of metadata, spec and data, and leaves its other fields to others. current is
// the object from the cache, without a UID if it has none, and becomes the API server's answer. mine tells whether an
// object is the caller's. Errors of the API server can be told apart by package apierrors.
func (w Writer) Ensure(ctx context.Context, current client.Object, want *unstructured.Unstructured, mine func(client.Object) bool) (Change, error) {
	switch {
	case current.GetUID() == "":
		return w.create(ctx, current, want, mine)
	case !mine(current):
		return Taken, nil
	case current.GetDeletionTimestamp() != nil:
		return None, nil // the event of its end brings the next reconcile
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(current)
	if err != nil {
		return None, fmt.Errorf("convert %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	if !slices.ContainsFunc([]string{"metadata", "spec", "data"}, func(part string) bool { return !Contains(fields[part], want.Object[part]) }) {
		return None, nil
	}
	log.FromContext(ctx).Info("Applying", "object", want.GetKind()+" "+want.GetName())
	want.SetUID(current.GetUID()) // so that it reaches no other object of the same name
	if err := w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), w.Owner, client.ForceOwnership); err != nil {
		return None, fmt.Errorf("apply %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	return Applied, readInto(want, current)
}

// create creates an object that the cache does not have. It does not apply, because that would take over what somebody
// else created since the cache was read.
func (w Writer) create(ctx context.Context, current client.Object, want *unstructured.Unstructured, mine func(client.Object) bool) (Change, error) {
	log.FromContext(ctx).Info("Creating", "object", want.GetKind()+" "+want.GetName())
	err := w.Client.Create(ctx, want, w.Owner)
	switch {
	case err == nil:
		return Created, readInto(want, current)
	case !apierrors.IsAlreadyExists(err):
		return None, fmt.Errorf("create %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(want), current); err != nil {
		return None, fmt.Errorf("get %s %s, which exists: %w", want.GetKind(), want.GetName(), err)
	}
	if !mine(current) {
		return Taken, nil
	}
	return None, nil
}

// Delete deletes the object that was read, and no later one of the same name. It is no error if it is gone. A conflict
// means that another object has its name by now.
func (w Writer) Delete(ctx context.Context, obj client.Object) error {
	log.FromContext(ctx).Info("Deleting", "object", Kind(obj)+" "+obj.GetName())
	uid := obj.GetUID()
	if err := w.Client.Delete(ctx, obj, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s %s: %w", Kind(obj), obj.GetName(), err)
	}
	return nil
}

// Kind names the kind of a typed object. One from the cache does not say it itself.
func Kind(obj client.Object) string { return reflect.TypeOf(obj).Elem().Name() }

// readInto makes into what the API server answered, without the fields that it had before.
func readInto(answer *unstructured.Unstructured, into client.Object) error {
	reflect.ValueOf(into).Elem().SetZero()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, into); err != nil {
		return fmt.Errorf("read %s %s back: %w", answer.GetKind(), answer.GetName(), err)
	}
	return nil
}

// Contains tells whether the fields of an object hold everything that is wanted: of a map the wanted keys, of a list the
// wanted elements, in any order. Only selectors have to be equal, since one label more selects fewer pods.
func Contains(fields, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		fields, _ := fields.(map[string]any)
		for key, value := range want {
			if key == "selector" && !reflect.DeepEqual(fields[key], value) || !Contains(fields[key], value) {
				return false
			}
		}
		return true
	case []any:
		fields, _ := fields.([]any)
		for _, value := range want {
			if !slices.ContainsFunc(fields, func(field any) bool { return Contains(field, value) }) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(fields, want)
	}
}
