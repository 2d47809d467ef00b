package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ConditionReady is True while the controller that the object describes runs.
const ConditionReady = "Ready"

// Reasons of that condition.
const (
	// ReasonStarted: it runs.
	ReasonStarted = "Started"
	// ReasonNoStatusSubresource: the parents have no status of their own, which the hook could answer.
	ReasonNoStatusSubresource = "NoStatusSubresource"
	// ReasonNotSupported: a field asks for what this program does not do.
	ReasonNotSupported = "NotSupported"
	// ReasonNoSuchResource: a resource that it names is not served. It starts when it is.
	ReasonNoSuchResource = "NoSuchResource"
	// ReasonInvalid: a field has a value that it cannot have.
	ReasonInvalid = "Invalid"
)

// CompositeControllerSpec says which objects are parents, which are their children, and what to ask about them.
type CompositeControllerSpec struct {
	// parentResource are the objects that are synced.
	ParentResource ParentResourceRule `json:"parentResource"`
	// childResources are the kinds of children that the hook may answer. No others are created, and none are given to it.
	// +optional
	ChildResources []ChildResourceRule `json:"childResources,omitempty"`
	// hooks are asked what should be there.
	// +optional
	Hooks *Hooks `json:"hooks,omitempty"`
	// endpointConfigs are settings for the hosts of hooks. They are not supported.
	// +optional
	EndpointConfigs []EndpointConfig `json:"endpointConfigs,omitempty"`
	// resyncPeriodSeconds is how often each parent is synced without a change, in seconds. The default is never.
	// +optional
	ResyncPeriodSeconds *int32 `json:"resyncPeriodSeconds,omitempty"`
	// generateSelector gives the children of a parent a label with its UID and selects by that. The default is false: then
	// each parent has a spec.selector, and its children have labels that it matches.
	// +optional
	GenerateSelector *bool `json:"generateSelector,omitempty"`
}

// ResourceRule names a resource of the API.
type ResourceRule struct {
	// apiVersion is the group and version, such as apps/v1.
	APIVersion string `json:"apiVersion"`
	// resource is the plural in lower case, such as deployments.
	Resource string `json:"resource"`
}

// ParentResourceRule names the parents.
type ParentResourceRule struct {
	ResourceRule `json:",inline"`
	// labelSelector selects some of them. The default is all.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// revisionHistory says what makes a revision of a parent, for rolling updates.
	// +optional
	RevisionHistory *RevisionHistory `json:"revisionHistory,omitempty"`
	// ignoreStatusChanges does not sync a parent when only its status has changed. The default is false.
	// +optional
	IgnoreStatusChanges *bool `json:"ignoreStatusChanges,omitempty"`
}

// RevisionHistory says what makes a revision of a parent.
type RevisionHistory struct {
	// fieldPaths are the fields of the parent, as in spec.template. The default is spec.
	// +optional
	FieldPaths []string `json:"fieldPaths,omitempty"`
}

// UpdateMethod says what happens to a child that is not as the hook wants it.
type UpdateMethod string

// The update methods.
const (
	// OnDelete leaves it as it is until somebody deletes it.
	OnDelete UpdateMethod = "OnDelete"
	// Recreate deletes it and creates it anew.
	Recreate UpdateMethod = "Recreate"
	// InPlace applies what differs.
	InPlace UpdateMethod = "InPlace"
	// RollingRecreate is Recreate, one child after the other.
	RollingRecreate UpdateMethod = "RollingRecreate"
	// RollingInPlace is InPlace, one child after the other.
	RollingInPlace UpdateMethod = "RollingInPlace"
)

// ChildResourceRule names a kind of children.
type ChildResourceRule struct {
	ResourceRule `json:",inline"`
	// updateStrategy says how they are updated. The default is OnDelete.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`
}

// UpdateStrategy says how children of a kind are updated.
type UpdateStrategy struct {
	// method is one of OnDelete, Recreate, InPlace, RollingRecreate and RollingInPlace. The default is OnDelete.
	// +optional
	Method UpdateMethod `json:"method,omitempty"`
	// statusChecks must hold for the children that have been updated before a rolling update goes on.
	// +optional
	StatusChecks StatusChecks `json:"statusChecks,omitempty"`
}

// StatusChecks are checked on each updated child.
type StatusChecks struct {
	// conditions are those that its status must have.
	// +optional
	Conditions []ConditionCheck `json:"conditions,omitempty"`
}

// ConditionCheck is a condition that a child must have.
type ConditionCheck struct {
	// type is that of the condition.
	Type string `json:"type"`
	// status is the one that it must have. The default is any.
	// +optional
	Status *string `json:"status,omitempty"`
	// reason is the one that it must have. The default is any.
	// +optional
	Reason *string `json:"reason,omitempty"`
}

// Hooks are asked about a parent.
type Hooks struct {
	// customize answers which other objects the other hooks are to be given.
	// +optional
	Customize *Hook `json:"customize,omitempty"`
	// sync answers the children and the status of a parent.
	// +optional
	Sync *Hook `json:"sync,omitempty"`
	// finalize is asked in its place about a parent that is being deleted or is not selected any more. With it each parent
	// has a finalizer, until the hook answers finalized.
	// +optional
	Finalize *Hook `json:"finalize,omitempty"`
	// preUpdateChild is not supported, as it is not in the published program.
	// +optional
	PreUpdateChild *Hook `json:"preUpdateChild,omitempty"`
	// postUpdateChild is not supported, as it is not in the published program.
	// +optional
	PostUpdateChild *Hook `json:"postUpdateChild,omitempty"`
}

// CompositeControllerStatus says whether the controller runs.
type CompositeControllerStatus struct {
	// observedGeneration is the metadata.generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions has Ready, whose message says what is wrong.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CompositeController is a controller that is written as a webhook: about each parent it is asked which children it should
// have.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, request not yet submitted"
// +kubebuilder:resource:path=compositecontrollers,singular=compositecontroller,scope=Cluster,shortName=cc;cctl
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CompositeController struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the controller.
	// +required
	Spec CompositeControllerSpec `json:"spec"`
	// status says whether it runs.
	// +optional
	Status CompositeControllerStatus `json:"status,omitempty"`
}

// CompositeControllerList is a list of CompositeController.
//
// +kubebuilder:object:root=true
type CompositeControllerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CompositeController `json:"items"`
}

// ControllerRevision is what a parent was at one time, and the children that are still as they were then.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, request not yet submitted"
// +kubebuilder:resource:path=controllerrevisions,singular=controllerrevision,scope=Namespaced
type ControllerRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// parentPatch has the fields of the parent that make the revision.
	// +kubebuilder:pruning:PreserveUnknownFields
	ParentPatch runtime.RawExtension `json:"parentPatch"`
	// children are those of this revision.
	// +optional
	Children []RevisionChildren `json:"children,omitempty"`
}

// RevisionChildren are children of one kind.
type RevisionChildren struct {
	// apiGroup is the group of the kind.
	APIGroup string `json:"apiGroup"`
	// kind is their kind.
	Kind string `json:"kind"`
	// names are their names; of namespaced children of a cluster-scoped parent namespace/name.
	Names []string `json:"names"`
}

// ControllerRevisionList is a list of ControllerRevision.
//
// +kubebuilder:object:root=true
type ControllerRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ControllerRevision `json:"items"`
}
