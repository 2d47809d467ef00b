package labapi

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
)

const operatorsRoot = "/operators"

// operators implements the kind Operator.
type operators struct {
	strategy
	backend Backend
}

var _ origin = operators{}

func (o operators) changed() <-chan struct{} { return o.backend.Changed() }

func (o operators) seen([]string) map[string]object {
	all := o.backend.Operators()
	seen := make(map[string]object, len(all))
	for i := range all {
		all[i].ManagedFields = unowned()
		seen[operatorsRoot+"/"+all[i].Name] = &all[i]
	}
	return seen
}

// unowned returns managed fields by which nobody owns the spec of an operator that the lab loaded. Without them the
// first server-side apply would conflict with the unknown earlier owner.
func unowned() []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{
		Manager: "operator-lab", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: v1alpha1.GroupVersion.String(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`),
	}}
}

func (o operators) overlay(stored, seen object) object {
	was, now := stored.(*v1alpha1.Operator), seen.(*v1alpha1.Operator)
	sameSpec := equality.Semantic.DeepEqual(was.Spec, now.Spec)
	generation := now.Generation
	if generation == 0 {
		generation = was.Generation
		if !sameSpec {
			generation++
		}
	}
	if sameSpec && generation == was.Generation && equality.Semantic.DeepEqual(was.Status, now.Status) {
		return stored
	}
	is := was.DeepCopy()
	is.Generation, is.Spec, is.Status = generation, now.Spec, now.Status
	return is
}

func (o operators) write(was, is object) error {
	if is == nil {
		return o.backend.DeleteOperator(was.GetName())
	}
	spec := is.(*v1alpha1.Operator).Spec
	if was != nil && equality.Semantic.DeepEqual(was.(*v1alpha1.Operator).Spec, spec) {
		return nil // only metadata changed
	}
	return o.backend.ApplyOperator(is.GetName(), *spec.DeepCopy())
}

// PrepareForCreate implements [rest.RESTCreateStrategy].
func (o operators) PrepareForCreate(_ context.Context, obj runtime.Object) {
	is := obj.(*v1alpha1.Operator)
	is.Status, is.Generation = v1alpha1.OperatorStatus{}, 1
}

// PrepareForUpdate implements [rest.RESTUpdateStrategy].
func (o operators) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	is, was := obj.(*v1alpha1.Operator), old.(*v1alpha1.Operator)
	is.Status, is.Generation = was.Status, was.Generation
	if !equality.Semantic.DeepEqual(is.Spec, was.Spec) {
		is.Generation++
	}
}

// Validate implements [rest.RESTCreateStrategy].
func (o operators) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	is := obj.(*v1alpha1.Operator)
	return append(validateMeta(is), o.backend.ValidateOperator(is.Name, is.Spec)...)
}

// ValidateUpdate implements [rest.RESTUpdateStrategy].
func (o operators) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	is, was := obj.(*v1alpha1.Operator), old.(*v1alpha1.Operator)
	problems := validateMetaUpdate(is, was)
	if !equality.Semantic.DeepEqual(is.Spec, was.Spec) {
		problems = append(problems, o.backend.ValidateOperator(is.Name, is.Spec)...)
	}
	return problems
}
