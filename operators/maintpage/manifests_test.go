package maintpage_test

import (
	"io/fs"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/maintpage"
)

func TestCRDs(t *testing.T) {
	data, err := fs.ReadFile(maintpage.Manifests(), "migration/maintpages.yaml")
	if err != nil {
		t.Fatal(err)
	}
	moved := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, moved); err != nil {
		t.Fatal(err)
	}
	sets := map[maintpage.Variant][]*apiextensionsv1.CustomResourceDefinition{"migration": {moved}}
	for _, variant := range maintpage.Variants() {
		if sets[variant], err = maintpage.CRDs(variant); err != nil {
			t.Fatal(err)
		}
	}
	for set, crds := range sets {
		if len(crds) != 1 || crds[0].Name != "maintpages.maintpage.example.com" {
			t.Fatalf("%s has other CRDs: %v", set, crds)
		}
		names, version := crds[0].Spec.Names, crds[0].Spec.Versions[0]
		if names.Kind != "MaintPage" || names.ListKind != "MaintPageList" || names.Singular != "maintpage" {
			t.Errorf("%s has other names: %+v", set, names)
		}
		if version.Name != "v1alpha1" || version.Subresources == nil || version.Subresources.Status == nil {
			t.Errorf("%s is not v1alpha1 with a status subresource: %+v", set, version)
		}
	}
	if _, err := maintpage.CRDs("loud"); err == nil || !strings.Contains(err.Error(), "loud") {
		t.Errorf("an unknown variant gives %v", err)
	}
}

func TestSample(t *testing.T) {
	sample, err := maintpage.Sample()
	if err != nil {
		t.Fatal(err)
	}
	app, page := sample.Spec.AppConfig, sample.Spec.MaintPageConfig
	if sample.Name != "example" || app.AppName != "httpd" || app.AppImage != "quay.io/daein/prodpage:latest" ||
		page.MaintPageImage != "quay.io/daein/maintpage:latest" || page.MaintPageToggle {
		t.Errorf("not the sample of the article: %+v", sample)
	}
}
