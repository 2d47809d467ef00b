package maintpage

import (
	"embed"
	"fmt"
	"io/fs"
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

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

// Sample returns the MaintPage of samples/: named example, of no namespace, with the application httpd
// shown.
func Sample() (*v1alpha1.MaintPage, error) {
	page := &v1alpha1.MaintPage{}
	if err := decode("samples/maintpage.yaml", page); err != nil {
		return nil, err
	}
	return page, nil
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
