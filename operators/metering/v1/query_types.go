package v1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InputType is the type of an input of a ReportQuery.
// +kubebuilder:validation:Enum=ReportDataSource;ReportQuery;Report;string;number
type InputType string

// The types of inputs. Those that are kinds take a name of an object.
const (
	InputDataSource InputType = "ReportDataSource"
	InputQuery      InputType = "ReportQuery"
	InputReport     InputType = "Report"
	InputString     InputType = "string"
	InputNumber     InputType = "number"
)

// ReportQuerySpec is a SELECT of SQL.
type ReportQuerySpec struct {
	// columns are those that the SELECT returns.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Columns []ReportQueryColumn `json:"columns"`

	// query is a SELECT of SQLite, as a Go template with {| and |}.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	Query string `json:"query"`

	// inputs are what a Report may choose.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Inputs []ReportQueryInput `json:"inputs,omitempty"`
}

// ReportQueryColumn is one of the columns.
type ReportQueryColumn struct {
	// name as the SELECT says it.
	// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_]*$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// type of the values. A timestamp is counted in seconds by SQL, and shown as RFC 3339.
	// +kubebuilder:validation:Enum=varchar;double;bigint;timestamp
	Type string `json:"type"`

	// unit of the values, for people.
	// +optional
	Unit string `json:"unit,omitempty"`
}

// ReportQueryInput is something that a Report may choose.
type ReportQueryInput struct {
	// name in .Report.Inputs.
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// type of the value.
	// +kubebuilder:default=string
	// +optional
	Type InputType `json:"type,omitempty"`

	// required inputs have to be chosen, if there is no default.
	// +optional
	Required bool `json:"required,omitempty"`

	// default is the value that is not chosen.
	// +optional
	Default *apiextensionsv1.JSON `json:"default,omitempty"`
}

// ReportQuery is SQL that reports are made of.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=reportqueries,singular=reportquery,scope=Namespaced,shortName=rq
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ReportQuery struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the SQL.
	// +required
	Spec ReportQuerySpec `json:"spec,omitempty"`
}

// ReportQueryList is a list of ReportQuery.
//
// +kubebuilder:object:root=true
type ReportQueryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ReportQuery `json:"items"`
}
