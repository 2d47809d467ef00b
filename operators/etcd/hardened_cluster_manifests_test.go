package etcd_test

import (
	"io/fs"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/etcd"
)

// TestKustomization: what it names is there.
func TestKustomization(t *testing.T) {
	data, err := fs.ReadFile(etcd.Manifests(), "kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var k struct{ Resources []string }
	if err := yaml.Unmarshal(data, &k); err != nil {
		t.Fatal(err)
	}
	crds, err := etcd.CRDs(etcd.Hardened)
	if err != nil || len(k.Resources) < len(crds)+4 {
		t.Errorf("there are %v, and %d definitions, %v", k.Resources, len(crds), err)
	}
	for _, name := range k.Resources {
		if _, err := fs.Stat(etcd.Manifests(), name); err != nil {
			t.Error(err)
		}
	}
}
