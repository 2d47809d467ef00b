package tomcat_test

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

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
