package maintpage

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// keep ensures that an object has the fields that are wanted, and leaves all its other fields to others.
// there is what was found, without a UID if nothing was, and becomes what there is afterwards. An object
// of somebody else is left alone, and noted in the pass. Errors of the API server can be told apart by
// apierrors.
func (r *hardened) keep(ctx context.Context, p *pass, there client.Object, want *unstructured.Unstructured) error {
	switch {
	case there.GetUID() == "":
		return r.create(ctx, p, there, want)
	case !p.mine(there):
		p.taken = append(p.taken, want.GetKind()+" "+want.GetName())
		return nil
	case there.GetDeletionTimestamp() != nil:
		return nil // the event of its end wakes us
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(there)
	if err != nil {
		return fmt.Errorf("convert %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	if holds(fields["metadata"], want.Object["metadata"]) && holds(fields["spec"], want.Object["spec"]) {
		return nil
	}
	return r.apply(ctx, p, there, want)
}

// create makes an object that the cache does not have. It creates rather than applies, because applying
// would take over what somebody else made since the cache looked.
func (r *hardened) create(ctx context.Context, p *pass, there client.Object, want *unstructured.Unstructured) error {
	log.FromContext(ctx).Info("Creating", "object", want.GetKind()+" "+want.GetName())
	err := r.client.Create(ctx, want, fieldOwner)
	if apierrors.IsAlreadyExists(err) {
		return r.exists(ctx, p, there, want)
	}
	if err != nil {
		return fmt.Errorf("create %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	r.note(p, want, corev1.EventTypeNormal, "Created", "Create", "Created %s %s", want.GetKind(), want.GetName())
	return readBack(want, there)
}

// exists looks at what has the name of an object that should be made. If it is ours, an earlier pass made
// it, and its event is on the way.
func (r *hardened) exists(ctx context.Context, p *pass, there client.Object, want *unstructured.Unstructured) error {
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(want), there); err != nil {
		return fmt.Errorf("get %s %s, which exists: %w", want.GetKind(), want.GetName(), err)
	}
	if !p.mine(there) {
		p.taken = append(p.taken, want.GetKind()+" "+want.GetName())
	}
	return nil
}

// apply writes the wanted fields over whatever has been written there. The UID keeps it from reaching
// any object but the one that was looked at.
func (r *hardened) apply(ctx context.Context, p *pass, there client.Object, want *unstructured.Unstructured) error {
	log.FromContext(ctx).Info("Applying", "object", want.GetKind()+" "+want.GetName())
	want.SetUID(there.GetUID())
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), fieldOwner, client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	r.noteChange(p, want)
	return readBack(want, there)
}

// replacePorts writes the ports of the Service as a whole, with its selector.
func (r *hardened) replacePorts(ctx context.Context, p *pass, want *unstructured.Unstructured) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.service.UID},
		"spec":     want.Object["spec"],
	})
	if err != nil {
		return fmt.Errorf("encode the ports: %w", err)
	}
	err = r.client.Patch(ctx, &p.service, client.RawPatch(types.MergePatchType, patch), fieldOwner)
	if err != nil {
		return fmt.Errorf("replace the ports of Service %s: %w", p.service.Name, err)
	}
	r.noteChange(p, want)
	return nil
}

// noteChange tells a wish that was followed from a change by somebody else that was undone. The Service
// on its way from one page to the other is neither.
func (r *hardened) noteChange(p *pass, want *unstructured.Unstructured) {
	if p.moving {
		return
	}
	reason, action := "Repaired", "Repair"
	if p.known.ObservedGeneration != p.page.Generation || p.known.ObservedGeneration == 0 {
		reason, action = "Updated", "Update"
	}
	r.note(p, want, corev1.EventTypeNormal, reason, action, "%s %s %s", reason, want.GetKind(), want.GetName())
}

func (r *hardened) note(p *pass, about runtime.Object, kind, reason, action, text string, args ...any) {
	r.events.Eventf(p.page, about, kind, reason, action, text, args...)
}

// readBack makes into what the API server answered.
func readBack(answer *unstructured.Unstructured, into client.Object) error {
	fresh := reflect.New(reflect.TypeOf(into).Elem()) // fields that are gone must not stay
	reflect.ValueOf(into).Elem().Set(fresh.Elem())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, into); err != nil {
		return fmt.Errorf("read %s %s back: %w", answer.GetKind(), answer.GetName(), err)
	}
	return nil
}

// kindOf names the kind of an object that came from the cache, which does not say.
func kindOf(obj client.Object) string {
	return reflect.TypeOf(obj).Elem().Name()
}

// mine tells whether this MaintPage, and not an earlier one of its name, controls an object.
func (p *pass) mine(obj client.Object) bool {
	return obj.GetUID() != "" && metav1.IsControlledBy(obj, p.page)
}

// holds tells whether everything that is wanted is there, and does not mind what is there besides: of a
// map the wanted keys, of a list the wanted elements, in any order. Selectors have to be the same, as one
// label more selects fewer pods.
func holds(there, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		there, _ := there.(map[string]any)
		for key, value := range want {
			if key == "selector" && !reflect.DeepEqual(there[key], value) {
				return false
			}
			if !holds(there[key], value) {
				return false
			}
		}
		return true
	case []any:
		there, _ := there.([]any)
		for _, value := range want {
			if !anyHolds(there, value) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(there, want)
	}
}

func anyHolds(list []any, want any) bool {
	for _, element := range list {
		if holds(element, want) {
			return true
		}
	}
	return false
}
