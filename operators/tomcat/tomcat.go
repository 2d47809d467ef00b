package tomcat

import (
	"embed"
	"errors"
	"io/fs"

	"github.com/operator-framework/helm-operator-plugins/pkg/watches"
	"helm.sh/helm/v3/pkg/chart/loader"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/operators/helm"
	"github.com/operator-lab/operator-lab/operators/kit"
)

//go:embed all:config
var config embed.FS

// Kind is the kind whose objects are releases.
var Kind = schema.GroupVersionKind{Group: "apache.org", Version: "v1alpha1", Kind: "Tomcat"}

// The variants.
const (
	Hardened = "hardened"
	Classic  = "classic"
)

// Variants returns all variants, the default one first.
func Variants() []string { return []string{Hardened, Classic} }

// LeaderElectionID is the name of the lease a manager of this operator should elect its leader by.
const LeaderElectionID = "tomcat-operator-lock"

// Manifests returns the YAML files of the operator:
//
//	chart/              the chart
//	crds/<variant>/     the custom resource definition
//	rbac/               service account and binding
//	rbac/<variant>/     what the operator may do
//	manager/            namespace and Deployment of the operator
//	samples/            a Tomcat
//	kustomization.yaml  the operator without the sample, for kubectl apply -k
func Manifests() fs.FS { return kit.Sub(config, "config") }

// CRDs returns the custom resource definition of a variant.
func CRDs(variant string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return kit.CRDs(Manifests(), variant)
}

// SetupWithManager adds the operator to a manager. The options helm are for the variant hardened, whose controller takes no
// others; the options controller are for classic.
func SetupWithManager(mgr ctrl.Manager, variant string, o helm.Options, options controller.Options) error {
	var files []*loader.BufferedFile
	chart := kit.Sub(config, "config/chart")
	err := fs.WalkDir(chart, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(chart, name)
		files = append(files, &loader.BufferedFile{Name: name, Data: data})
		return err
	})
	loaded, loadErr := loader.LoadFiles(files)
	if err := errors.Join(err, loadErr); err != nil {
		return err
	}
	if variant == Classic {
		return setupClassic(mgr, loaded, options)
	}
	o.ResumePending = true // else a Tomcat is stuck when the operator dies in the middle of its installation
	return helm.SetupWithManager(mgr, []watches.Watch{{GroupVersionKind: Kind, ChartPath: "chart", Chart: loaded}}, o)
}
