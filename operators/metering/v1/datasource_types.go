package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionImporting of a ReportDataSource is True while samples are taken.
const ConditionImporting = "Importing"

// Reasons of the condition Importing.
const (
	// ReasonImporting: the last look brought what there was.
	ReasonImporting = "Importing"
	// ReasonImportFailed: the last look failed. What is missed until the next one is not observed.
	ReasonImportFailed = "ImportFailed"
)

// ClusterMetric names what the operator can ask the cluster itself for.
// +kubebuilder:validation:Enum=PodRequest;PodUsage;OperatorReconciles
type ClusterMetric string

// The metrics of the cluster.
const (
	// PodRequest is what a pod on a node requests, in cores or bytes.
	PodRequest ClusterMetric = "PodRequest"
	// PodUsage is what the resource metrics API says that a pod uses, in cores or bytes.
	PodUsage ClusterMetric = "PodUsage"
	// OperatorReconciles is the number of reconciles for each second, by operator and object, where the cluster counts them.
	OperatorReconciles ClusterMetric = "OperatorReconciles"
)

// ReportDataSourceSpec says where samples come from.
//
// +kubebuilder:validation:XValidation:rule="has(self.prometheusMetricsImporter) != has(self.clusterMetricsImporter)",message="one of prometheusMetricsImporter and clusterMetricsImporter is needed"
type ReportDataSourceSpec struct {
	// prometheusMetricsImporter takes samples of one metric of an endpoint in Prometheus' text format.
	// +optional
	PrometheusMetricsImporter *PrometheusMetricsImporter `json:"prometheusMetricsImporter,omitempty"`

	// clusterMetricsImporter takes samples of what the cluster itself tells.
	// +optional
	ClusterMetricsImporter *ClusterMetricsImporter `json:"clusterMetricsImporter,omitempty"`
}

// PrometheusMetricsImporter takes samples of one metric.
type PrometheusMetricsImporter struct {
	// query is the metric's name, with or without labels, such as http_requests_total{code="200"}. It is no PromQL. Of a
	// counter the increase for each second is kept, of everything else the value.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Query string `json:"query"`

	// prometheusConfig says where.
	PrometheusConfig PrometheusConfig `json:"prometheusConfig"`
}

// PrometheusConfig says where metrics are.
type PrometheusConfig struct {
	// url of the endpoint, such as http://app.default.svc:8080/metrics.
	// +kubebuilder:validation:Pattern=`^https?://[^/?#@]+(/.*)?$`
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
}

// ClusterMetricsImporter takes samples of what the cluster itself tells.
//
// +kubebuilder:validation:XValidation:rule="(self.metric == 'OperatorReconciles') != has(self.resource)",message="resource is needed for PodRequest and PodUsage, and for nothing else"
type ClusterMetricsImporter struct {
	// metric that is sampled.
	Metric ClusterMetric `json:"metric"`

	// resource of pods.
	// +kubebuilder:validation:Enum=cpu;memory
	// +optional
	Resource string `json:"resource,omitempty"`
}

// ReportDataSourceStatus is how far samples have been taken.
type ReportDataSourceStatus struct {
	// tableRef names the table of the samples.
	// +optional
	TableRef *TableRef `json:"tableRef,omitempty"`

	// prometheusMetricsImportStatus says which time the samples are of, of Prometheus or of the cluster.
	// +optional
	PrometheusMetricsImportStatus *ImportStatus `json:"prometheusMetricsImportStatus,omitempty"`

	// observedGeneration is the metadata.generation this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Importing.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TableRef names a table of the operator's database.
type TableRef struct {
	// name of the table.
	Name string `json:"name"`
}

// ImportStatus says which time samples are of.
type ImportStatus struct {
	// importDataStartTime is when the first sample begins.
	// +optional
	ImportDataStartTime *metav1.Time `json:"importDataStartTime,omitempty"`

	// importDataEndTime is when the last sample ends: what is before is imported, or will never be.
	// +optional
	ImportDataEndTime *metav1.Time `json:"importDataEndTime,omitempty"`

	// lastImportTime is when the last look was taken.
	// +optional
	LastImportTime *metav1.Time `json:"lastImportTime,omitempty"`
}

// ReportDataSource is a table of samples.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=reportdatasources,singular=reportdatasource,scope=Namespaced,shortName=datasource;datasources
// +kubebuilder:printcolumn:name="From",type=string,JSONPath=`.status.prometheusMetricsImportStatus.importDataStartTime`
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.status.prometheusMetricsImportStatus.importDataEndTime`
// +kubebuilder:printcolumn:name="Importing",type=string,JSONPath=`.status.conditions[?(@.type=="Importing")].status`
type ReportDataSource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says where samples come from.
	// +required
	Spec ReportDataSourceSpec `json:"spec,omitempty"`
	// status is how far samples have been taken.
	// +optional
	Status ReportDataSourceStatus `json:"status,omitempty"`
}

// ReportDataSourceList is a list of ReportDataSource.
//
// +kubebuilder:object:root=true
type ReportDataSourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ReportDataSource `json:"items"`
}
