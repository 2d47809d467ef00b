package labapi

import (
	"context"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
)

// strategy is the common part of the kinds' write strategies.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	namespaced bool
}

// NamespaceScoped implements [rest.Scoper].
func (s strategy) NamespaceScoped() bool { return s.namespaced }

// WarningsOnCreate implements [rest.RESTCreateStrategy].
func (s strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate implements [rest.RESTUpdateStrategy].
func (s strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// Canonicalize implements [rest.RESTCreateStrategy].
func (s strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate implements [rest.RESTUpdateStrategy].
func (s strategy) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate implements [rest.RESTUpdateStrategy].
func (s strategy) AllowUnconditionalUpdate() bool { return true }

// GetResetFields returns the fields that are ignored in a write: the status, which the lab sets.
func (s strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1alpha1.GroupVersion.String()): fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

func validateMeta(o object) field.ErrorList {
	return validation.ValidateObjectMetaAccessor(o, false, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

func validateMetaUpdate(is, was object) field.ErrorList {
	return validation.ValidateObjectMetaAccessorUpdate(is, was, field.NewPath("metadata"))
}

// resource describes how a kind is stored and shown.
type resource struct {
	plural, singular string
	origin           strategist
	fresh, list      func() runtime.Object
	attributes       storage.AttrFunc
	columns          columns
}

// strategist is a kind: the origin of its objects, and its rules for writing them.
type strategist interface {
	origin
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// store returns the registry of a kind, backed by a memory. The generic registry implements the rules of writing
// objects.
func (r resource) store(codec runtime.Codec) (*registry.Store, *memory, error) {
	m := newMemory(r.origin, r.fresh)
	group := v1alpha1.GroupVersion.WithResource
	s := &registry.Store{
		NewFunc:                   r.fresh,
		NewListFunc:               r.list,
		DefaultQualifiedResource:  group(r.plural).GroupResource(),
		SingularQualifiedResource: group(r.singular).GroupResource(),
		CreateStrategy:            r.origin,
		UpdateStrategy:            r.origin,
		DeleteStrategy:            r.origin,
		ResetFieldsStrategy:       r.origin,
		TableConvertor:            r.columns,
		Storage:                   registry.DryRunnableStorage{Storage: m, Codec: codec},
	}
	return s, m, s.CompleteWithOptions(&generic.StoreOptions{
		RESTOptions: generic.RESTOptions{ResourcePrefix: r.plural, DeleteCollectionWorkers: 1},
		AttrFunc:    r.attributes,
	})
}

// readWrite offers all verbs.
type readWrite struct {
	inLab
	*registry.Store
}

// inLab makes 'kubectl get lab' show all three kinds.
type inLab struct{}

// Categories implements [rest.CategoriesProvider].
func (inLab) Categories() []string { return []string{"lab"} }
