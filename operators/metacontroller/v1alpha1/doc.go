// Package v1alpha1 holds the API types of Metacontroller: a CompositeController, a DecoratorController and the
// ControllerRevision of a rolling update. Names and fields are those that the published CRDs have, so that files written
// for the real Metacontroller are taken here; conditions in the status are an addition. It holds types and nothing else:
// the operator is in the package above.
//
// +kubebuilder:object:generate=true
// +groupName=metacontroller.k8s.io
package v1alpha1
