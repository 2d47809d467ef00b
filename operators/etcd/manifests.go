package etcd

import (
	"embed"
	"fmt"
	"io/fs"
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
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
//	samples/         an EtcdCluster, an EtcdBackup and an EtcdRestore
//	kustomization.yaml  the hardened operator without the samples, for kubectl apply -k
func Manifests() fs.FS {
	sub, err := fs.Sub(config, "config")
	if err != nil {
		panic(err) // the path is a constant, and a valid one
	}
	return sub
}

// CRDs returns the custom resource definitions of a variant; of Hardened if it is empty.
func CRDs(v Variant) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if v == "" {
		v = Hardened
	}
	dir := path.Join("crds", string(v))
	files, err := fs.ReadDir(Manifests(), dir)
	if err != nil {
		return nil, fmt.Errorf("find the CRDs of variant %q: %w", v, err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := decode(path.Join(dir, file.Name()), crd); err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// Sample returns the EtcdCluster of samples/: named example-etcd-cluster, of no namespace, with three members.
func Sample() (*v1beta2.EtcdCluster, error) {
	cluster := &v1beta2.EtcdCluster{}
	if err := decode("samples/etcdcluster.yaml", cluster); err != nil {
		return nil, err
	}
	return cluster, nil
}

func decode(name string, into any) error {
	data, err := fs.ReadFile(Manifests(), name)
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		return fmt.Errorf("decode manifest %s: %w", name, err)
	}
	return nil
}
