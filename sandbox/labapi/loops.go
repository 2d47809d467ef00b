package labapi

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
)

const loopsRoot = "/loops"

// loops implements the kind Loop, which is read-only.
type loops struct {
	strategy
	backend Backend
}

var _ origin = loops{}

func (l loops) changed() <-chan struct{} { return l.backend.Changed() }

func (l loops) seen([]string) map[string]object {
	all := l.backend.Loops()
	seen := make(map[string]object, len(all))
	for i := range all {
		if all[i].Namespace == "" {
			all[i].Namespace = metav1.NamespaceDefault
		}
		seen[loopsRoot+"/"+all[i].Namespace+"/"+all[i].Name] = &all[i]
	}
	return seen
}

func (l loops) overlay(stored, seen object) object {
	was, now := stored.(*v1alpha1.Loop), seen.(*v1alpha1.Loop)
	if equality.Semantic.DeepEqual(was.Status, now.Status) && equality.Semantic.DeepEqual(was.Spec, now.Spec) &&
		equality.Semantic.DeepEqual(was.Labels, now.Labels) {
		return stored
	}
	is := was.DeepCopy()
	is.Labels, is.Spec, is.Status = now.Labels, now.Spec, now.Status
	return is
}

func (l loops) write(_, _ object) error {
	return fmt.Errorf("loops can only be read") // no verb leads here
}

// PrepareForCreate implements [rest.RESTCreateStrategy].
func (l loops) PrepareForCreate(context.Context, runtime.Object) {}

// PrepareForUpdate implements [rest.RESTUpdateStrategy].
func (l loops) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

// Validate implements [rest.RESTCreateStrategy].
func (l loops) Validate(context.Context, runtime.Object) field.ErrorList { return nil }

// ValidateUpdate implements [rest.RESTUpdateStrategy].
func (l loops) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// loopOperator is the field by which loops can be selected, besides name and namespace.
const loopOperator = "spec.operator"

func loopAttributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	set, selectable, err := storage.DefaultNamespaceScopedAttr(obj)
	if err == nil {
		selectable[loopOperator] = obj.(*v1alpha1.Loop).Spec.Operator
	}
	return set, selectable, err
}

// loopField returns an error for fields that a field selector for loops must not use.
func loopField(label, value string) (string, string, error) {
	switch label {
	case "metadata.name", "metadata.namespace", loopOperator:
		return label, value, nil
	default:
		return "", "", fmt.Errorf("loops cannot be selected by the field %q, only by metadata.name, metadata.namespace and %s", label, loopOperator)
	}
}

// readOnly offers get, list and watch, and no other verb, so that the namespace controller and the garbage collector,
// which delete everything else, skip loops.
type readOnly struct {
	inLab
	rest.Storage
	rest.Getter
	rest.Lister
	rest.Watcher
	rest.Scoper
	rest.SingularNameProvider
}

func newReadOnly(s *registry.Store) rest.Storage {
	return readOnly{inLab{}, s, s, s, s, s, s}
}
