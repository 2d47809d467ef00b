package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// screenObjects reads and writes objects for the person at the screen.
type screenObjects struct{ client client.Client }

var _ tui.Cluster = screenObjects{}

// Get returns an object as YAML for an editor: without the managed fields nobody edits.
func (s screenObjects) Get(ctx context.Context, ref trace.Ref) ([]byte, error) {
	o := objectOf(ref)
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return nil, err
	}
	o.SetManagedFields(nil)
	return yaml.Marshal(o.Object)
}

// Update writes what the editor left; the resourceVersion in it makes the API server refuse it when somebody else was
// faster.
func (s screenObjects) Update(ctx context.Context, edited []byte) error {
	o, err := objectIn(edited)
	if err != nil {
		return err
	}
	return s.client.Update(ctx, o)
}

// Create creates the object that the editor left.
func (s screenObjects) Create(ctx context.Context, edited []byte) error {
	o, err := objectIn(edited)
	if err != nil {
		return err
	}
	return s.client.Create(ctx, o)
}

// Fields returns the fields of the spec of a version of a CustomResourceDefinition.
func (s screenObjects) Fields(ctx context.Context, name, version string) ([]tui.Field, error) {
	o := objectOf(trace.Ref{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition", Name: name})
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, crd); err != nil {
		return nil, err
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == version && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			spec := v.Schema.OpenAPIV3Schema.Properties["spec"]
			return fieldsOf(&spec, "", true), nil
		}
	}
	return nil, nil
}

// fieldsOf returns the fields below a schema, in the order of their names. Required says that no object is accepted without what the
// schema is of.
func fieldsOf(schema *apiextensionsv1.JSONSchemaProps, above string, required bool) (all []tui.Field) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		below := schema.Properties[name]
		f := tui.Field{Path: above + name, Type: below.Type, Required: required && slices.Contains(schema.Required, name), About: below.Description}
		for _, value := range below.Enum {
			var text string
			if json.Unmarshal(value.Raw, &text) != nil {
				text = string(value.Raw)
			}
			f.Options = append(f.Options, text)
		}
		if below.Default != nil {
			f.Default = string(below.Default.Raw)
		}
		all = append(append(all, f), fieldsOf(&below, f.Path+".", f.Required)...)
	}
	return all
}

// Patch merges a JSON merge patch into an object.
func (s screenObjects) Patch(ctx context.Context, ref trace.Ref, merge []byte) error {
	return s.client.Patch(ctx, objectOf(ref), client.RawPatch(types.MergePatchType, merge))
}

// Delete deletes an object, and lets the garbage collector take its children.
func (s screenObjects) Delete(ctx context.Context, ref trace.Ref) error {
	return s.client.Delete(ctx, objectOf(ref))
}

// objectIn reads the object that the editor left.
func objectIn(edited []byte) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(edited, &o.Object); err != nil {
		return nil, fmt.Errorf("the text is no YAML: %w", err)
	}
	return o, nil
}

func objectOf(ref trace.Ref) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(ref.APIVersion)
	o.SetKind(ref.Kind)
	o.SetNamespace(ref.Namespace)
	o.SetName(ref.Name)
	o.SetUID(types.UID(ref.UID)) // for the journal: the answer to a deletion need not have it
	return o
}
