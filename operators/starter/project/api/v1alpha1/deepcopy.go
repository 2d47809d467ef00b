package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyObject returns a copy that shares no memory. Every API type has such a method; for larger ones controller-gen
// writes it.
func (in *Gizmo) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopy returns a copy that shares no memory.
func (in *Gizmo) DeepCopy() *Gizmo {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = append([]metav1.Condition(nil), in.Status.Conditions...)
	return &out
}

// DeepCopyObject returns a copy that shares no memory.
func (in *GizmoList) DeepCopyObject() runtime.Object {
	out := *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = nil
	for i := range in.Items {
		out.Items = append(out.Items, *in.Items[i].DeepCopy())
	}
	return &out
}
