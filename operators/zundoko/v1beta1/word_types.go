package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Word is the word that a Zundoko sings, Zun or Doko.
//
// +kubebuilder:validation:Enum=Zun;Doko
type Word string

// The two words of the song, and the cry that ends it.
const (
	Zun  Word = "Zun"
	Doko Word = "Doko"

	KiyoshiCry = "Kiyoshi!"
)

// ZundokoSpec is a word. A word that was said stays said: the spec cannot be changed.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a word that was said cannot be changed"
type ZundokoSpec struct {
	// say is the word: Zun or Doko.
	Say Word `json:"say"`

	// saidAt is when the word was said, to the microsecond. It exists because
	// metadata.creationTimestamp counts whole seconds, too coarse to keep a rhythm. The default is
	// absent: metadata.creationTimestamp is used.
	// +optional
	SaidAt *metav1.MicroTime `json:"saidAt,omitempty"`
}

// ZundokoStatus is empty: nothing happens to a word after it was said.
type ZundokoStatus struct{}

// Zundoko is one word of a song. Its place in the song is the number at the end of its name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=zundokos,singular=zundoko,scope=Namespaced
// +kubebuilder:printcolumn:name="Say",type=string,JSONPath=`.spec.say`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Zundoko struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the word.
	// +required
	Spec ZundokoSpec `json:"spec,omitempty"`
	// status is empty.
	// +optional
	Status ZundokoStatus `json:"status,omitempty"`
}

// ZundokoList is a list of Zundoko.
//
// +kubebuilder:object:root=true
type ZundokoList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Zundoko `json:"items"`
}

// KiyoshiSpec is the cry. Like a word, it cannot be changed.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Kiyoshi that was said cannot be changed"
type KiyoshiSpec struct {
	// say is the cry: Kiyoshi!
	// +kubebuilder:validation:Enum="Kiyoshi!"
	Say string `json:"say"`
}

// KiyoshiStatus is empty: nothing happens to a Kiyoshi after it was said.
type KiyoshiStatus struct{}

// Kiyoshi is the cry that ends a song.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kiyoshis,singular=kiyoshi,scope=Namespaced
// +kubebuilder:printcolumn:name="Say",type=string,JSONPath=`.spec.say`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Kiyoshi struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the cry.
	// +required
	Spec KiyoshiSpec `json:"spec,omitempty"`
	// status is empty.
	// +optional
	Status KiyoshiStatus `json:"status,omitempty"`
}

// KiyoshiList is a list of Kiyoshi.
//
// +kubebuilder:object:root=true
type KiyoshiList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Kiyoshi `json:"items"`
}
