// Package v1 holds the API type of the visitors operator: VisitorsApp, a site that counts its visitors. It holds types
// and nothing else: the operator is in the package above.
//
// Both variants of the operator share these Go types, so they have the fields of both. Which of them an API server keeps
// is decided by the CRDs: config/crds/hardened is generated from this package, config/crds/classic is written by hand
// after the published one.
//
// +kubebuilder:object:generate=true
// +groupName=example.com
package v1
