package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names of the API.
const (
	Group                   = "metacontroller.k8s.io"
	Version                 = "v1alpha1"
	CompositeControllerKind = "CompositeController"
	DecoratorControllerKind = "DecoratorController"
	ControllerRevisionKind  = "ControllerRevision"
)

// GroupVersion is the group and version of every type of this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&CompositeController{}, &CompositeControllerList{},
		&DecoratorController{}, &DecoratorControllerList{},
		&ControllerRevision{}, &ControllerRevisionList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
