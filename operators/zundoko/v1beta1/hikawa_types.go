package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of a Hikawa.
const (
	// ConditionReady is True once the Kiyoshi has been said and every word of the song is in its place.
	ConditionReady = "Ready"
	// ConditionProgressing is True while there is something left to say and nothing in its way.
	ConditionProgressing = "Progressing"
)

// Reasons of those conditions.
const (
	// ReasonSinging: words are still being said.
	ReasonSinging = "Singing"
	// ReasonSung: the song is over.
	ReasonSung = "Sung"
	// ReasonNameTaken: an object of somebody else has the name of the next word or of the Kiyoshi.
	ReasonNameTaken = "NameTaken"
)

// HikawaSpec is the song somebody wants to hear.
type HikawaSpec struct {
	// intervalMillis is the pause in front of each word after the first, and in front of the Kiyoshi,
	// in milliseconds: from 1 to 3600000 (one hour). There is no default.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	IntervalMillis int64 `json:"intervalMillis"`

	// numZundokos is how many words to say at least before the Kiyoshi; the whole song is searched for
	// the four-Zun-then-Doko pattern, wherever it came. The default is 0: stop as soon as it comes.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	// +optional
	NumZundokos int `json:"numZundokos,omitempty"`

	// sayKiyoshi was used by the classic operator to take a note for itself. It has to be false or
	// absent: the Kiyoshi has to be earned. The default is false.
	// +kubebuilder:validation:XValidation:rule="!self",message="the Kiyoshi cannot be ordered: remove sayKiyoshi, and it is said after four Zun and a Doko (see status.kiyoshied)"
	// +optional
	SayKiyoshi bool `json:"sayKiyoshi,omitempty"`
}

// HikawaStatus is how far the song has come.
type HikawaStatus struct {
	// numZundokosSaid is the number of words that exist.
	NumZundokosSaid int `json:"numZundokosSaid"`

	// kiyoshied tells whether the Kiyoshi has been said.
	Kiyoshied bool `json:"kiyoshied"`

	// observedGeneration is the metadata.generation this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready and Progressing.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Hikawa sings: a Zundoko for each word, Zun or Doko, until four Zun and a Doko have come in a row,
// then one Kiyoshi.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=hikawas,singular=hikawa,scope=Namespaced
// +kubebuilder:printcolumn:name="Words",type=integer,JSONPath=`.status.numZundokosSaid`,description="words said so far"
// +kubebuilder:printcolumn:name="Kiyoshi",type=boolean,JSONPath=`.status.kiyoshied`,description="whether the Kiyoshi has been said"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Interval",type=integer,priority=1,JSONPath=`.spec.intervalMillis`,description="pause between words in milliseconds"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 230",message="the name must be at most 230 characters long: words are named <name>-zundoko-<number>"
type Hikawa struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the song somebody wants to hear.
	// +required
	Spec HikawaSpec `json:"spec,omitempty"`
	// status is how far the song has come.
	// +optional
	Status HikawaStatus `json:"status,omitempty"`
}

// HikawaList is a list of Hikawa.
//
// +kubebuilder:object:root=true
type HikawaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Hikawa `json:"items"`
}
