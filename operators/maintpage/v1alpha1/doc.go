// Package v1alpha1 holds the API type of the maintpage operator: MaintPage, an application and the page
// to show while it is under maintenance. It holds types and nothing else: the operator is in the
// package above.
//
// Both variants of the operator share these Go types, so they have the fields of both. Which of them an
// API server keeps is decided by the CRDs: config/crds/hardened is generated from this package,
// config/crds/classic is written by hand after the published one.
//
// +kubebuilder:object:generate=true
// +groupName=maintpage.example.com
package v1alpha1
