package metacontroller

import (
	"embed"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operator-lab/operator-lab/operators/kit"
)

// Variant is the only variant of this operator.
const Variant = "hardened"

//go:embed config
var config embed.FS

// Manifests returns the YAML files of the operator: its custom resource definitions in crds/hardened, its service account
// and what that may do in rbac and rbac/hardened.
func Manifests() fs.FS { return kit.Sub(config, "config") }

// CRDs returns the custom resource definitions.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return kit.CRDs(Manifests(), Variant)
}
