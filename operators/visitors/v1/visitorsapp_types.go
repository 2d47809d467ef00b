package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of a VisitorsApp.
const (
	// ConditionReady is True while MySQL, the backend and the frontend are all rolled out as the spec says.
	ConditionReady = "Ready"
	// ConditionProgressing is True while something is on its way that needs nobody's help.
	ConditionProgressing = "Progressing"
)

// Reasons of those conditions.
const (
	// ReasonSiteServed: all of the site is there.
	ReasonSiteServed = "SiteServed"
	// ReasonWaitingForMySQL: MySQL is not rolled out. A backend that does not exist yet is not made before it is.
	ReasonWaitingForMySQL = "WaitingForMySQL"
	// ReasonWaitingForBackend: MySQL is there, and the backend is not rolled out.
	ReasonWaitingForBackend = "WaitingForBackend"
	// ReasonWaitingForFrontend: only the frontend is not rolled out.
	ReasonWaitingForFrontend = "WaitingForFrontend"
	// ReasonConflict: an object of somebody else has the name of one the operator should make.
	ReasonConflict = "Conflict"
	// ReasonRejected: the API server refuses an object that the spec leads to, or the Secret has a password that cannot be
	// used.
	ReasonRejected = "Rejected"
)

// VisitorsAppSpec is how a site should be.
type VisitorsAppSpec struct {
	// size is how many pods the backend has.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	Size int32 `json:"size"`

	// title is what the page has as its title.
	// +kubebuilder:default="Visitors Dashboard"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Title string `json:"title,omitempty"`
}

// VisitorsAppStatus is how a site is.
type VisitorsAppStatus struct {
	// backendImage is the image of the backend's pods, since they were last all of one. Classic writes a constant.
	// +optional
	BackendImage string `json:"backendImage,omitempty"`

	// frontendImage is the image of the frontend's pods, likewise.
	// +optional
	FrontendImage string `json:"frontendImage,omitempty"`

	// observedGeneration is the metadata.generation this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready and Progressing.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VisitorsApp is a site that counts its visitors: a frontend, a backend, and a MySQL that keeps the visits.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=visitorsapps,singular=visitorsapp,scope=Namespaced
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Title",type=string,priority=1,JSONPath=`.spec.title`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 46 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name must be at most 46 characters long, of a-z, 0-9 and -, and begin with a letter: its Services are named after it"
type VisitorsApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is how the site should be.
	// +required
	Spec VisitorsAppSpec `json:"spec,omitempty"`
	// status is how the site is.
	// +optional
	Status VisitorsAppStatus `json:"status,omitempty"`
}

// VisitorsAppList is a list of VisitorsApp.
//
// +kubebuilder:object:root=true
type VisitorsAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VisitorsApp `json:"items"`
}
