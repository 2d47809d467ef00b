package maintpage_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
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

// TestManifestsAreObjects reads every file, and follows the kustomization to files that exist.
func TestManifestsAreObjects(t *testing.T) {
	err := fs.WalkDir(maintpage.Manifests(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(maintpage.Manifests(), name)
		if err != nil {
			return err
		}
		for _, doc := range documents(t, data) {
			if doc["apiVersion"] == nil || doc["kind"] == nil {
				t.Errorf("%s holds something that is no object: %v", name, doc)
			}
			if path.Base(name) != "kustomization.yaml" {
				continue
			}
			for _, file := range doc["resources"].([]any) {
				if _, err := fs.Stat(maintpage.Manifests(), path.Join(path.Dir(name), file.(string))); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// documents splits a file of YAML documents.
func documents(t *testing.T, data []byte) []map[string]any {
	t.Helper()
	var docs []map[string]any
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		if doc != nil {
			docs = append(docs, doc)
		}
	}
}
