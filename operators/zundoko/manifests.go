package zundoko

import (
	"cmp"
	"embed"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operator-lab/operator-lab/operators/kit"
	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
)

//go:embed config
var config embed.FS

// Manifests returns the YAML files of the operator:
//
//	crds/<variant>/  custom resource definitions; install those of the variant that runs
//	rbac/            service account and bindings
//	rbac/<variant>/  what the operator may do
//	manager/         namespace, StatefulSet and Service of the operator
//	samples/         a Hikawa
//	kustomization.yaml  the hardened operator without the sample, for kubectl apply -k
func Manifests() fs.FS { return kit.Sub(config, "config") }

// CRDs returns the custom resource definitions of a variant; of Hardened if it is empty.
func CRDs(v Variant) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return kit.CRDs(Manifests(), string(cmp.Or(v, Hardened)))
}

// Sample returns the Hikawa of samples/: named hikawa-sample, of no namespace, with a pause of 500 ms.
func Sample() (*v1beta1.Hikawa, error) {
	return kit.Decode[v1beta1.Hikawa](Manifests(), "samples/hikawa.yaml")
}
