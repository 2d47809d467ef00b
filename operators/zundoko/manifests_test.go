package zundoko_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/zundoko"
)

func TestCRDs(t *testing.T) {
	for _, variant := range zundoko.Variants() {
		crds, err := zundoko.CRDs(variant)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, crd := range crds {
			names = append(names, crd.Name)
			version := crd.Spec.Versions[0]
			status := version.Subresources != nil && version.Subresources.Status != nil
			if want := variant == zundoko.Hardened && crd.Spec.Names.Kind == "Hikawa"; status != want {
				t.Errorf("%s %s has a status subresource: %v, want %v", variant, crd.Name, status, want)
			}
			if crd.Spec.Names.Kind != "Hikawa" {
				if diff := cmp.Diff([]string{"Say", "Age"}, columns(version)); diff != "" {
					t.Errorf("%s %s has other columns (-want +got):\n%s", variant, crd.Name, diff)
				}
			}
		}
		want := []string{
			"hikawas.zundokokiyoshi.kaitoy.github.com",
			"kiyoshis.zundokokiyoshi.kaitoy.github.com",
			"zundokos.zundokokiyoshi.kaitoy.github.com",
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s has other CRDs (-want +got):\n%s", variant, diff)
		}
	}
	if _, err := zundoko.CRDs("loud"); err == nil || !strings.Contains(err.Error(), "loud") {
		t.Errorf("an unknown variant gives %v", err)
	}
}

func columns(version apiextensionsv1.CustomResourceDefinitionVersion) (names []string) {
	for _, column := range version.AdditionalPrinterColumns {
		names = append(names, column.Name)
	}
	return names
}

func TestSample(t *testing.T) {
	sample, err := zundoko.Sample()
	if err != nil {
		t.Fatal(err)
	}
	if sample.Name != "hikawa-sample" || sample.Labels["controller-tools.k8s.io"] != "1.0" || sample.Spec.IntervalMillis != 500 {
		t.Errorf("not the sample of the article: %+v", sample)
	}
}

// TestManifestsAreObjects reads every file, and follows the kustomization to files that exist.
func TestManifestsAreObjects(t *testing.T) {
	err := fs.WalkDir(zundoko.Manifests(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(zundoko.Manifests(), name)
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
				if _, err := fs.Stat(zundoko.Manifests(), path.Join(path.Dir(name), file.(string))); err != nil {
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
