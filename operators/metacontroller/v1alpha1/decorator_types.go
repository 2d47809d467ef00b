package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DecoratorControllerSpec says which objects are decorated, with what, and what to ask about them.
type DecoratorControllerSpec struct {
	// resources are the objects that are decorated.
	Resources []DecoratedResourceRule `json:"resources"`
	// attachments are the kinds of objects that the hook may answer.
	// +optional
	Attachments []AttachmentRule `json:"attachments,omitempty"`
	// hooks are asked what should be there.
	// +optional
	Hooks *DecoratorHooks `json:"hooks,omitempty"`
	// endpointConfigs are settings for the hosts of hooks. They are not supported.
	// +optional
	EndpointConfigs []EndpointConfig `json:"endpointConfigs,omitempty"`
	// resyncPeriodSeconds is how often each object is synced without a change, in seconds. The default is never.
	// +optional
	ResyncPeriodSeconds *int32 `json:"resyncPeriodSeconds,omitempty"`
}

// DecoratedResourceRule names objects that are decorated.
type DecoratedResourceRule struct {
	ResourceRule `json:",inline"`
	// labelSelector selects some of them. The default is all.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// annotationSelector selects some of them. The default is all.
	// +optional
	AnnotationSelector *AnnotationSelector `json:"annotationSelector,omitempty"`
	// ignoreStatusChanges does not sync an object when only its status has changed. The default is false.
	// +optional
	IgnoreStatusChanges *bool `json:"ignoreStatusChanges,omitempty"`
}

// AnnotationSelector selects objects by annotations, as a label selector does by labels.
type AnnotationSelector struct {
	// matchAnnotations are annotations that must be there with these values.
	// +optional
	MatchAnnotations map[string]string `json:"matchAnnotations,omitempty"`
	// matchExpressions must all be true.
	// +optional
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// AttachmentRule names a kind of attachments.
type AttachmentRule struct {
	ResourceRule `json:",inline"`
	// updateStrategy says how they are updated. The default is OnDelete.
	// +optional
	UpdateStrategy *AttachmentUpdateStrategy `json:"updateStrategy,omitempty"`
}

// AttachmentUpdateStrategy says how attachments of a kind are updated.
type AttachmentUpdateStrategy struct {
	// method is one of OnDelete, Recreate and InPlace. The default is OnDelete.
	// +optional
	Method UpdateMethod `json:"method,omitempty"`
}

// DecoratorHooks are asked about an object.
type DecoratorHooks struct {
	// customize answers which other objects the other hooks are to be given.
	// +optional
	Customize *Hook `json:"customize,omitempty"`
	// sync answers the labels, annotations, status and attachments of an object.
	// +optional
	Sync *Hook `json:"sync,omitempty"`
	// finalize is asked in its place about an object that is being deleted or is not selected any more.
	// +optional
	Finalize *Hook `json:"finalize,omitempty"`
}

// DecoratorControllerStatus says whether the controller runs.
type DecoratorControllerStatus struct {
	// observedGeneration is the metadata.generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions has Ready, whose message says what is wrong.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DecoratorController adds to objects of others: labels, annotations, a status and more objects, as a webhook answers.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, request not yet submitted"
// +kubebuilder:resource:path=decoratorcontrollers,singular=decoratorcontroller,scope=Cluster,shortName=dec;decorators
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DecoratorController struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the controller.
	// +required
	Spec DecoratorControllerSpec `json:"spec"`
	// status says whether it runs.
	// +optional
	Status DecoratorControllerStatus `json:"status,omitempty"`
}

// DecoratorControllerList is a list of DecoratorController.
//
// +kubebuilder:object:root=true
type DecoratorControllerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DecoratorController `json:"items"`
}
