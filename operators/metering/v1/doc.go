// Package v1 holds the API types of the metering operator: ReportDataSource, ReportQuery and Report, with the names of
// Operator Metering. It holds types and nothing else: the operator is in the package above.
//
// +kubebuilder:object:generate=true
// +groupName=metering.openshift.io
package v1
