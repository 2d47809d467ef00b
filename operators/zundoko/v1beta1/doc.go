// Package v1beta1 holds the API types of the zundoko operator: Hikawa, who sings; Zundoko, a word he
// said; and Kiyoshi, the cry that ends the song. It holds types and nothing else: the operator is in
// the package above.
//
// Both variants of the operator share these Go types, so each type has the fields of both. Which of
// them an API server keeps is decided by the CRDs: config/crds/hardened is generated from this
// package, config/crds/classic is written by hand after the published ones.
//
// +kubebuilder:object:generate=true
// +groupName=zundokokiyoshi.kaitoy.github.com
package v1beta1
