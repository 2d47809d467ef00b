package catalog_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/catalog"
	"github.com/operator-lab/operator-lab/operators/kit"
)

// validate reads a catalog as 'opm validate' does.
func validate(t *testing.T, text string) (*declcfg.DeclarativeConfig, error) {
	t.Helper()
	config, err := declcfg.LoadFS(t.Context(), fstest.MapFS{"catalog.json": {Data: []byte(text)}})
	if err == nil {
		_, err = declcfg.ConvertToModel(*config)
	}
	return config, err
}

func TestTheCatalogIsValid(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	if err := catalog.Write(&text, operators.All()); err != nil {
		t.Fatal(err)
	}
	config, err := validate(t, text.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range operators.Names() {
		if !slices.ContainsFunc(config.Packages, func(p declcfg.Package) bool { return p.Name == name }) {
			t.Errorf("it has no package %s", name)
		}
	}
	for _, b := range config.Bundles {
		if b.Image != "" || len(b.Objects) < 2 {
			t.Errorf("the bundle %s has %d objects, and the image %q", b.Name, len(b.Objects), b.Image)
		}
	}
	// The same catalog with a version that replaces itself is not valid.
	if _, err := validate(t, strings.Replace(text.String(), `"replaces": "zundoko.v0.1.0"`, `"replaces": "zundoko.v1.0.0"`, 1)); err == nil {
		t.Error("a version that replaces itself is taken for valid")
	}
}

// TestWhatIsNoDeploymentIsNotInTheCatalog: OLM installs nothing else.
func TestWhatIsNoDeploymentIsNotInTheCatalog(t *testing.T) {
	t.Parallel()
	op, _ := operators.Find("zundoko")
	bare, none := op, op
	bare.Name, bare.Manifests = "bare", fstest.MapFS{
		"crds/hardened/a.yaml":   {Data: []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com}\n")},
		"manager/namespace.yaml": {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: bare}\n")},
	}
	none.Name, none.Manifests = "none", fstest.MapFS{}
	var text bytes.Buffer
	if err := catalog.Write(&text, []operators.Operator{bare, op, none}); err != nil {
		t.Fatal(err)
	}
	config, err := validate(t, text.String())
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Packages) != 1 || config.Packages[0].Name != "zundoko" {
		t.Errorf("the packages are %+v", config.Packages)
	}
}

// TestCSVsAreValid has upstream's validator look at each ClusterServiceVersion.
// variants returns those that an operator has.
func variants(op operators.Operator) []string {
	return slices.DeleteFunc([]string{"classic", "hardened"}, func(variant string) bool {
		_, err := fs.Stat(op.Manifests, "crds/"+variant)
		return err != nil
	})
}

func TestCSVsAreValid(t *testing.T) {
	t.Parallel()
	for _, op := range operators.All() {
		for _, variant := range variants(op) {
			csv := csvOf(t, op, variant)
			for _, problem := range problems(csv) {
				t.Errorf("%s %s: %s", op.Name, variant, problem)
			}
			var examples []map[string]any
			if err := json.Unmarshal([]byte(csv.Annotations["alm-examples"]), &examples); err != nil || len(examples) == 0 {
				t.Errorf("%s: the samples are %v: %v", op.Name, examples, err)
			}
			csv.Spec.InstallModes = nil
			if len(problems(csv)) == 0 {
				t.Errorf("%s: without install modes it is taken for valid", csv.Name)
			}
		}
	}
}

func TestAVariantIsWhatRuns(t *testing.T) {
	t.Parallel()
	op, _ := operators.Find("zundoko")
	for variant, want := range map[string]string{"classic": "", "hardened": "--variant=hardened --leader-elect"} {
		deployment := csvOf(t, op, variant).Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
		pod := deployment.Spec.Template.Spec
		if got := strings.Join(pod.Containers[0].Args, " "); got != want {
			t.Errorf("%s is called with %q, want %q", variant, got, want)
		}
		env := pod.Containers[0].Env
		watched := env[len(env)-1]
		if watched.Name != "WATCH_NAMESPACE" || watched.ValueFrom.FieldRef.FieldPath != "metadata.annotations['olm.targetNamespaces']" {
			t.Errorf("%s watches %v", variant, watched)
		}
	}
	if _, err := catalog.CSV(op, "another"); err == nil || !strings.Contains(err.Error(), `the variant "another" has no version`) {
		t.Errorf("another variant: %v", err)
	}
}

func csvOf(t *testing.T, op operators.Operator, variant string) *v1alpha1.ClusterServiceVersion {
	t.Helper()
	csv, err := catalog.CSV(op, variant)
	if err != nil {
		t.Fatal(err)
	}
	return csv
}

// problems returns what upstream's validator takes for errors.
func problems(csv *v1alpha1.ClusterServiceVersion) (all []string) {
	for _, result := range validation.ClusterServiceVersionValidator.Validate(csv) {
		for _, err := range result.Errors {
			all = append(all, err.Error())
		}
	}
	return all
}

// TestDescriptors checks that the schemas have the fields that people are told of, and that there are some of each operator's.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	for _, op := range operators.All() {
		for _, variant := range variants(op) {
			crds, err := kit.CRDs(op.Manifests, variant)
			if err != nil {
				t.Fatal(err)
			}
			described := 0
			for _, kind := range csvOf(t, op, variant).Spec.CustomResourceDefinitions.Owned {
				var paths []string
				for _, d := range kind.SpecDescriptors {
					paths = append(paths, "spec."+d.Path)
				}
				for _, d := range kind.StatusDescriptors {
					paths = append(paths, "status."+d.Path)
				}
				described += len(paths)
				for _, path := range paths {
					if !hasField(crds, kind, path) {
						t.Errorf("%s %s: %s has no field %s", op.Name, variant, kind.Kind, path)
					}
				}
				if hasField(crds, kind, "nowhere") && variant == "hardened" {
					t.Errorf("%s %s: any field would do", op.Name, variant)
				}
			}
			if described == 0 {
				t.Errorf("%s %s: no field is described", op.Name, variant)
			}
		}
	}
}

// hasField reports whether objects of a kind can have the field at a path.
func hasField(crds []*apiextensionsv1.CustomResourceDefinition, kind v1alpha1.CRDDescription, path string) bool {
	i := slices.IndexFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == kind.Name })
	v := slices.IndexFunc(crds[i].Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == kind.Version })
	schema := crds[i].Spec.Versions[v].Schema.OpenAPIV3Schema
	for step := range strings.SplitSeq(path, ".") {
		below, has := schema.Properties[step]
		if !has {
			return schema.XPreserveUnknownFields != nil
		}
		schema = &below
	}
	return true
}
