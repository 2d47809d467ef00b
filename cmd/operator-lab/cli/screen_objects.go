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
