package maintpage

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/kit"
)

// keep ensures that an object has the fields that are wanted, and leaves all its other fields to others. current is what
// was found, without a UID if nothing was, and becomes what there is afterwards. An object of somebody else is left
// alone, and noted in the pass.
func (r *hardened) keep(ctx context.Context, p *pass, current client.Object, want *unstructured.Unstructured) error {
	change, err := r.writer.Ensure(ctx, current, want, p.mine)
	switch change {
	case kit.Created:
		r.note(p, want, corev1.EventTypeNormal, "Created", "Create", "Created %s %s", want.GetKind(), want.GetName())
	case kit.Applied:
		r.noteChange(p, want)
	case kit.Taken:
		p.taken = append(p.taken, want.GetKind()+" "+want.GetName())
	}
	return err
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

// mine tells whether this MaintPage, and not an earlier one of its name, controls an object.
func (p *pass) mine(obj client.Object) bool {
	return obj.GetUID() != "" && metav1.IsControlledBy(obj, p.page)
}
