package etcd

import (
	"cmp"
	"embed"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/operators/kit"
)

//go:embed config
var config embed.FS

// Manifests returns the YAML files of the operator:
//
//	crds/<variant>/  custom resource definitions; install those of the variant that runs
//	crds/published/  the definition of EtcdCluster as a book has it for apiextensions.k8s.io/v1, which drops the status
//	rbac/            service account and bindings
//	rbac/<variant>/  what the operator may do
//	manager/         namespace and Deployment of the operator
//	deploy/          the articles' ways to install it: in one namespace
//	prometheus/      rules for Prometheus: what to look at when metrics of members say so
//	samples/         an EtcdCluster, an EtcdBackup and an EtcdRestore
//	kustomization.yaml  the hardened operator without the samples, for kubectl apply -k
func Manifests() fs.FS { return kit.Sub(config, "config") }

// CRDs returns the custom resource definitions of a variant; of Hardened if it is empty.
func CRDs(v Variant) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return kit.CRDs(Manifests(), string(cmp.Or(v, Hardened)))
}

// Sample returns the EtcdCluster of samples/: named example-etcd-cluster, of no namespace, with three members.
func Sample() (*v1beta2.EtcdCluster, error) {
	return kit.Decode[v1beta2.EtcdCluster](Manifests(), "samples/etcdcluster.yaml")
}
