// Package v1alpha1 has the types of the API group example.com.
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GizmoSpec says what is wanted. config/crd/bases has the same fields with their defaults and limits.
type GizmoSpec struct {
	// Image is what the pods run. Default: nginx.
	Image string `json:"image,omitempty"`
	// Replicas is the number of pods. Default: 1.
	Replicas int32 `json:"replicas"`
}

// GizmoStatus says what there is. Only the controller writes it.
type GizmoStatus struct {
	// ObservedGeneration is the metadata.generation that the controller has acted on.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ReadyReplicas is the number of pods that are ready.
	ReadyReplicas int32 `json:"readyReplicas"`
	// Conditions has one condition of the type Ready, which is true while all replicas that are asked for are ready.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Gizmo keeps pods of an image running, through a Deployment of the same name.
type Gizmo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   GizmoSpec   `json:"spec,omitzero"`
	Status GizmoStatus `json:"status,omitzero"`
}

// GizmoList is a list of the kind Gizmo.
type GizmoList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Gizmo `json:"items"`
}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "example.com", Version: "v1alpha1"}
	s.AddKnownTypes(version, &Gizmo{}, &GizmoList{})
	metav1.AddToGroupVersion(s, version)
	return nil
}
