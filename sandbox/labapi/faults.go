package labapi

import (
	"context"
	"path"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
)

// faults implements the kind Fault. Clients create the objects; the backend has their status.
type faults struct {
	strategy
	backend Backend
}

var _ origin = faults{}

func (f faults) changed() <-chan struct{} { return f.backend.Changed() }

func (f faults) seen(keys []string) map[string]object {
	seen := make(map[string]object, len(keys))
	for _, key := range keys {
		if status, known := f.backend.FaultStatus(path.Base(key)); known {
			seen[key] = &v1alpha1.Fault{Status: status}
		}
	}
	return seen
}

func (f faults) overlay(stored, seen object) object {
	was, now := stored.(*v1alpha1.Fault), seen.(*v1alpha1.Fault)
	if equality.Semantic.DeepEqual(was.Status, now.Status) {
		return stored
	}
	is := was.DeepCopy()
	is.Status = now.Status
	return is
}

func (f faults) write(was, is object) error {
	switch {
	case is == nil:
		return f.backend.DisarmFault(was.GetName())
	case was == nil:
		return f.backend.ArmFault(is.GetName(), *is.(*v1alpha1.Fault).Spec.DeepCopy())
	case is.(*v1alpha1.Fault).Spec.Released && !was.(*v1alpha1.Fault).Spec.Released:
		return f.backend.ReleaseFault(is.GetName())
	default:
		return nil // only metadata changed
	}
}

// PrepareForCreate implements [rest.RESTCreateStrategy].
func (f faults) PrepareForCreate(_ context.Context, obj runtime.Object) {
	is := obj.(*v1alpha1.Fault)
	is.Status, is.Generation = v1alpha1.FaultStatus{}, 1
}

// PrepareForUpdate implements [rest.RESTUpdateStrategy].
func (f faults) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	is, was := obj.(*v1alpha1.Fault), old.(*v1alpha1.Fault)
	is.Status, is.Generation = was.Status, was.Generation
	if !equality.Semantic.DeepEqual(is.Spec, was.Spec) {
		is.Generation++
	}
}

// Validate implements [rest.RESTCreateStrategy].
func (f faults) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	is := obj.(*v1alpha1.Fault)
	problems := validateMeta(is)
	return append(problems, f.backend.ValidateFault(is.Spec)...)
}

// ValidateUpdate implements [rest.RESTUpdateStrategy].
func (f faults) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	is, was := obj.(*v1alpha1.Fault), old.(*v1alpha1.Fault)
	problems := validateMetaUpdate(is, was)
	wanted := is.Spec.DeepCopy()
	wanted.Released = was.Spec.Released
	spec := field.NewPath("spec")
	if !equality.Semantic.DeepEqual(*wanted, was.Spec) {
		problems = append(problems, field.Forbidden(spec, "cannot be changed but for released: delete the fault, and create another"))
	}
	if was.Spec.Released && !is.Spec.Released {
		problems = append(problems, field.Forbidden(spec.Child("released"), "cannot be taken back: delete the fault, and create another"))
	}
	return problems
}
