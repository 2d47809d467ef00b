package metering

import (
	"embed"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operator-lab/operator-lab/operators/kit"
)

//go:embed all:config
var config embed.FS

// Manifests returns the YAML files of the operator:
//
//	builtin/            the ReportDataSources and ReportQueries that the operator keeps in its own namespace
//	crds/hardened/      custom resource definitions
//	rbac/               service account and bindings
//	rbac/hardened/      what the operator may do
//	manager/            namespace and Deployment of the operator
//	samples/            a Report
//	kustomization.yaml  the operator without the sample, for kubectl apply -k
func Manifests() fs.FS { return kit.Sub(config, "config") }

// CRDs returns the custom resource definitions.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return kit.CRDs(Manifests(), Hardened)
}
