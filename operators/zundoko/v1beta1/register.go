package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names that the CRDs of both variants share.
const (
	Group       = "zundokokiyoshi.kaitoy.github.com"
	HikawaKind  = "Hikawa"
	ZundokoKind = "Zundoko"
	KiyoshiKind = "Kiyoshi"
	Version     = "v1beta1"
)

// GroupVersion is the group and version of every type of this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Hikawa{}, &HikawaList{},
		&Zundoko{}, &ZundokoList{},
		&Kiyoshi{}, &KiyoshiList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
