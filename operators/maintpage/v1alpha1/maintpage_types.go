package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PublishStatus tells in two words whether the maintenance page is up.
//
// +kubebuilder:validation:Enum=Published;Not Published
type PublishStatus string

// The two publish statuses.
const (
	// Published: the Service sends requests to the maintenance page, and the page answers. Classic
	// writes it without looking at the page.
	Published PublishStatus = "Published"
	// NotPublished: anything else.
	NotPublished PublishStatus = "Not Published"
)

// Condition types of a MaintPage.
const (
	// ConditionReady is True while the page that the spec asks for, in the image that the spec says, answers
	// at the Service.
	ConditionReady = "Ready"
	// ConditionProgressing is True while something is on its way that needs nobody's help.
	ConditionProgressing = "Progressing"
)

// Reasons of those conditions.
const (
	// ReasonProductionServed: requests go to the application, as asked for.
	ReasonProductionServed = "ProductionServed"
	// ReasonMaintenanceServed: requests go to the maintenance page, as asked for.
	ReasonMaintenanceServed = "MaintenanceServed"
	// ReasonWaitingForPage: requests go to the other page until the one asked for is Ready.
	ReasonWaitingForPage = "WaitingForPage"
	// ReasonPageNotReady: requests go to the page that is asked for, which is not Ready, or still another
	// image than the spec says.
	ReasonPageNotReady = "PageNotReady"
	// ReasonConflict: an object of somebody else has the name of one the operator should make.
	ReasonConflict = "Conflict"
	// ReasonRejected: the API server refuses an object that the spec leads to, as not valid or not allowed.
	ReasonRejected = "Rejected"
)

// MaintPageConfig is the maintenance page.
type MaintPageConfig struct {
	// maintpagetoggle asks for the maintenance page in place of the application. The default is false.
	// +kubebuilder:default=false
	// +optional
	MaintPageToggle bool `json:"maintpagetoggle"`

	// maintpageimage is the image of the maintenance page, which answers requests at port 8080. There is
	// no default.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^\S+$`
	MaintPageImage string `json:"maintpageimage"`
}

// AppConfig is the application.
type AppConfig struct {
	// appname names the Deployment and the Service of the application, so it has to be a name a Service
	// may have. After a change the old two are deleted as soon as the new Deployment is Ready. There is no
	// default.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	AppName string `json:"appname"`

	// appimage is the image of the application, which answers requests at port 8080. There is no default.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^\S+$`
	AppImage string `json:"appimage"`
}

// MaintPageSpec is an application, its maintenance page, and which of the two is shown.
type MaintPageSpec struct {
	// maintpageconfig is the maintenance page.
	MaintPageConfig MaintPageConfig `json:"maintpageconfig"`
	// appconfig is the application.
	AppConfig AppConfig `json:"appconfig"`
}

// MaintPageStatus is which page is shown.
type MaintPageStatus struct {
	// maintpublishstatus tells whether requests get the maintenance page: Published or Not Published.
	// +optional
	MaintPublishStatus PublishStatus `json:"maintpublishstatus,omitempty"`

	// observedGeneration is the metadata.generation this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready and Progressing.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MaintPage runs an application behind a Service, and a maintenance page beside it that the Service is
// turned to on request.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=maintpages,singular=maintpage,scope=Namespaced
// +kubebuilder:printcolumn:name="Toggle",type=boolean,JSONPath=`.spec.maintpageconfig.maintpagetoggle`,description="whether the maintenance page is asked for"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.maintpublishstatus`,description="whether requests get the maintenance page"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="App",type=string,priority=1,JSONPath=`.spec.appconfig.appname`,description="the Service and the Deployment of the application"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name must be at most 63 characters long: it is a label of the maintenance page's pod"
type MaintPage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is an application, its maintenance page, and which of the two is shown.
	// +required
	Spec MaintPageSpec `json:"spec,omitempty"`
	// status is which page is shown.
	// +optional
	Status MaintPageStatus `json:"status,omitempty"`
}

// MaintPageList is a list of MaintPage.
//
// +kubebuilder:object:root=true
type MaintPageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MaintPage `json:"items"`
}
