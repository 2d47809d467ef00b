package visitors

import (
	"cmp"
	"embed"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operator-lab/operator-lab/operators/kit"
)

//go:embed all:config
var config embed.FS

// Manifests returns the YAML files of the operator:
//
//	crds/<variant>/     custom resource definitions; install those of the variant that runs
//	rbac/               service account and bindings
//	rbac/<variant>/     what the operator may do
//	manager/            namespace and Deployment of the operator
//	samples/            a VisitorsApp
//	helm/               the same site as a Helm chart with its watches.yaml, an operator without code
//	ansible/            the same site as a role of Ansible with its watches.yaml
//	kustomization.yaml  the hardened operator without the sample, for kubectl apply -k
func Manifests() fs.FS { return kit.Sub(config, "config") }

// CRDs returns the custom resource definitions of a variant; of Hardened if it is empty.
func CRDs(v Variant) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return kit.CRDs(Manifests(), string(cmp.Or(v, Hardened)))
}
