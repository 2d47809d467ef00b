// Package v1beta2 holds the API types of the etcd operator: EtcdCluster, a cluster of etcd members; EtcdBackup, a
// backup of one, once or again and again; and EtcdRestore, which puts a backup into a cluster. It holds types and
// nothing else: the operator is in the package above.
//
// Both variants of the operator share these Go types, so they have the fields of both. Which of them an API server
// keeps is decided by the CRDs: config/crds/hardened is generated from this package, config/crds/classic is written by
// hand after the published ones, which had no schema.
//
// +kubebuilder:object:generate=true
// +groupName=etcd.database.coreos.com
package v1beta2
