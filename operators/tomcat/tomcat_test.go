package tomcat_test

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/operators/helm"
	"github.com/operator-lab/operator-lab/operators/tomcat"
)

var update = flag.Bool("update", false, "write what is made of the chart into the manifests")

// TestManifests compares what is made of the chart with what is in the manifests.
func TestManifests(t *testing.T) {
	made, err := helm.Files(helm.Project{Name: "tomcat-operator", Kind: tomcat.Kind, Chart: "config/chart"})
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		"config/crd/bases/apache.org_tomcats.yaml": "crds/hardened/apache.org_tomcats.yaml",
		"config/rbac/role.yaml":                    "rbac/hardened/role.yaml",
	} {
		if *update {
			if err := os.WriteFile(filepath.Join("config", to), made[from], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		has, err := fs.ReadFile(tomcat.Manifests(), to)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(made[from]), string(has)); diff != "" {
			t.Errorf("%s is not what is made of the chart (run with -update): %s", to, diff)
		}
	}
}

// TestReleaseName has the names of releases that the kit's operator made of these UIDs.
func TestReleaseName(t *testing.T) {
	for uid, want := range map[types.UID]string{
		"e7ef0b6f-e236-11e8-90c9-0eb98ef86d70": "example-app-dqbff6a9lkwr0us934kfcb9m8",
		"ed318067-e267-11e8-90c9-0eb98ef86d70": "example-app-e1iz7hyn42auym80tr7vw4kmo",
	} {
		object := &unstructured.Unstructured{}
		object.SetName("example-app")
		object.SetUID(uid)
		if got := tomcat.ReleaseName(object); got != want {
			t.Errorf("%s: %s, want %s", uid, got, want)
		}
	}
}
