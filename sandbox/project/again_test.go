package project_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/operator-lab/operator-lab/sandbox/project"
)

// TestSampleIsReadAnew checks that a sample is applied as its file is then.
func TestSampleIsReadAnew(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "one.yaml")
	one := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {text: old}\n"
	write(t, file, []byte(one))
	samples, err := project.ReadSamples(file)
	if err != nil || len(samples) != 1 {
		t.Fatal(samples, err)
	}
	write(t, file, []byte(strings.ReplaceAll(one, "old", "new")))
	c := fake.NewClientBuilder().WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(clientgoscheme.Scheme)).Build()
	if err := samples[0].Apply(t.Context(), c, "me"); err != nil {
		t.Fatal(err)
	}
	var applied corev1.ConfigMap
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "one"}, &applied); err != nil || applied.Data["text"] != "new" {
		t.Errorf("%v, %v", applied.Data, err)
	}
	write(t, file, []byte("kind: ["))
	if err := samples[0].Apply(t.Context(), c, "me"); err == nil || !strings.Contains(err.Error(), "one.yaml: document 1") {
		t.Error(err)
	}
}

// TestWatchDirs checks of which files a change counts: source, and manifests, but no samples, and nothing far below a file that is named.
func TestWatchDirs(t *testing.T) {
	t.Parallel()
	dir := unpack(t, "cmd")
	writeModule(t, dir, "example.com/toy")
	for _, name := range []string{"config/rbac/role.yaml", "config/samples/one.yaml", "config/.hidden/a.yaml", "deploy/all.yaml", "deploy/below/more.yaml"} {
		write(t, filepath.Join(dir, name), nil)
	}
	for _, c := range []struct {
		manifests []string
		counts    []string
	}{
		{nil, []string{"config/rbac/role.yaml"}},
		{[]string{filepath.Join(dir, "deploy")}, []string{"deploy/all.yaml", "deploy/below/more.yaml"}},
		{[]string{filepath.Join(dir, "deploy", "all.yaml")}, []string{"deploy/all.yaml"}},
	} {
		p := find(t, project.Options{Dir: dir, Manifests: c.manifests})
		var counts []string
		for _, name := range []string{"config/rbac/role.yaml", "config/rbac/notes.txt", "config/samples/one.yaml", "config/.hidden/a.yaml", "deploy/all.yaml", "deploy/below/more.yaml"} {
			file := filepath.Join(dir, name)
			watched := slices.Contains(p.WatchDirs(), filepath.Dir(file))
			if is := p.IsSource(file); is != (watched && strings.HasSuffix(name, ".yaml")) {
				t.Errorf("%v: %s counts: %v, its directory is watched: %v", c.manifests, name, is, watched)
			} else if is {
				counts = append(counts, name)
			}
		}
		if !slices.Equal(counts, c.counts) {
			t.Errorf("%v: %v, not %v", c.manifests, counts, c.counts)
		}
		if foreign := find(t, project.Options{Dir: dir, Manifests: c.manifests, Foreign: true}); slices.ContainsFunc(foreign.WatchDirs(), func(of string) bool {
			return strings.Contains(of, "config") || strings.Contains(of, "deploy")
		}) {
			t.Errorf("in a cluster of the user's: %v", foreign.WatchDirs())
		}
		if main := filepath.Join(dir, "cmd", "main.go"); !p.IsSource(main) || !slices.Contains(p.WatchDirs(), filepath.Dir(main)) {
			t.Error("main.go does not count")
		}
	}
}
