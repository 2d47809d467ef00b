package zundoko_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

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
