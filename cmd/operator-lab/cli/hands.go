package cli

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// hands do what the person at the screen asks for.
type hands struct{ client client.Client }

var _ tui.Cluster = hands{}

// Get returns an object as YAML for an editor: without the managed fields nobody edits.
func (h hands) Get(ctx context.Context, ref trace.Ref) ([]byte, error) {
	o := objectOf(ref)
	if err := h.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return nil, err
	}
	o.SetManagedFields(nil)
	return yaml.Marshal(o.Object)
}

// Update writes what the editor left; the resourceVersion in it makes the API server refuse it when somebody else was
// faster.
func (h hands) Update(ctx context.Context, edited []byte) error {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(edited, &o.Object); err != nil {
		return fmt.Errorf("the text is no YAML: %w", err)
	}
	return h.client.Update(ctx, o)
}

// Patch merges a JSON merge patch into an object.
func (h hands) Patch(ctx context.Context, ref trace.Ref, merge []byte) error {
	return h.client.Patch(ctx, objectOf(ref), client.RawPatch(types.MergePatchType, merge))
}

// Delete deletes an object, and lets the garbage collector take its children.
func (h hands) Delete(ctx context.Context, ref trace.Ref) error {
	return h.client.Delete(ctx, objectOf(ref))
}

func objectOf(ref trace.Ref) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(ref.APIVersion)
	o.SetKind(ref.Kind)
	o.SetNamespace(ref.Namespace)
	o.SetName(ref.Name)
	return o
}
