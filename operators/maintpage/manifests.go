package maintpage

import (
	"cmp"
	"embed"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operator-lab/operator-lab/operators/kit"
	"github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"
)

//go:embed config
var config embed.FS

// Manifests returns the YAML files of the operator:
//
//	crds/<variant>/  custom resource definitions; install those of the variant that runs
//	migration/       the published definition as a careless move to apiextensions.k8s.io/v1 leaves it
//	rbac/            service account and bindings
//	rbac/<variant>/  what the operator may do
//	manager/         namespace and Deployment of the operator
//	deploy/          the article's way to install it: in one namespace, with a Role of that namespace
//	samples/         a MaintPage
//	kustomization.yaml  the hardened operator without the sample, for kubectl apply -k
func Manifests() fs.FS { return kit.Sub(config, "config") }

// CRDs returns the custom resource definitions of a variant; of Hardened if it is empty.
func CRDs(v Variant) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return kit.CRDs(Manifests(), string(cmp.Or(v, Hardened)))
}

// Sample returns the MaintPage of samples/: named example, of no namespace, with the application httpd
// shown.
func Sample() (*v1alpha1.MaintPage, error) {
	return kit.Decode[v1alpha1.MaintPage](Manifests(), "samples/maintpage.yaml")
}
