package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names that the CRDs of both variants share.
const (
	Group           = "etcd.database.coreos.com"
	Version         = "v1beta2"
	EtcdClusterKind = "EtcdCluster"
	EtcdBackupKind  = "EtcdBackup"
	EtcdRestoreKind = "EtcdRestore"
)

// GroupVersion is the group and version of every type of this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&EtcdCluster{}, &EtcdClusterList{}, &EtcdBackup{}, &EtcdBackupList{}, &EtcdRestore{}, &EtcdRestoreList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
