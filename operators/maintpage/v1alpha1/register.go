package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names that the CRDs of both variants share.
const (
	Group         = "maintpage.example.com"
	MaintPageKind = "MaintPage"
	Version       = "v1alpha1"
)

// GroupVersion is the group and version of every type of this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &MaintPage{}, &MaintPageList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
