package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version are those of every type of this package.
const (
	Group   = "metering.openshift.io"
	Version = "v1"
)

// GroupVersion is the group and version of every type of this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ReportDataSource{}, &ReportDataSourceList{}, &ReportQuery{}, &ReportQueryList{}, &Report{}, &ReportList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
