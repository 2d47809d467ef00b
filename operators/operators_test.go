package operators_test

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestOperators checks what the lab requires of each bundled operator.
func TestOperators(t *testing.T) {
	for _, op := range operators.All() {
		t.Run(op.Name, func(t *testing.T) {
			instance := op.New()
			flags := pflag.NewFlagSet(op.Name, pflag.ContinueOnError)
			instance.Flags(flags)
			if err := flags.Set("variant", instance.Variant()); err != nil {
				t.Errorf("it needs a flag variant that takes its own variant: %v", err)
			}
			if _, err := operators.Source(path.Join("operators", op.Name, "doc.go")); err != nil {
				t.Error(err)
			}
			for _, dir := range []string{"rbac", path.Join("rbac", instance.Variant()), "manager"} {
				if _, err := fs.ReadDir(op.Manifests, dir); err != nil {
					t.Errorf("its manifests: %v", err)
				}
			}
			if op.Summary == "" || op.Namespace == "" || op.ServiceAccount == "" || op.LeaderElectionID == "" {
				t.Errorf("a field is empty: %+v", op)
			}
			scheme := runtime.NewScheme()
			none := len(scheme.AllKnownTypes())
			if err := op.AddToScheme(scheme); err != nil {
				t.Error(err)
			}
			if crds, err := instance.CRDs(); err != nil || len(crds) == 0 && len(scheme.AllKnownTypes()) > none {
				t.Errorf("it has types of its own, and %d CRDs: %v", len(crds), err)
			}
		})
	}
}

// TestSource checks that all code can be shown, and that tests and generated code are left out of the binary.
func TestSource(t *testing.T) {
	for _, pattern := range []string{"*/*.go", "*/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			out := strings.HasSuffix(file, "_test.go") || strings.HasPrefix(filepath.Base(file), "zz_")
			if _, err := operators.Source("operators/" + filepath.ToSlash(file)); (err != nil) != out {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// nothing is a cluster without objects.
type nothing struct{ client.Reader }

func (nothing) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (nothing) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// TestSummary checks that a demo tells what it has left behind in both languages.
func TestSummary(t *testing.T) {
	english := func(english, _ string) string { return english }
	japanese := func(_, japanese string) string { return japanese }
	for name, want := range map[string][2]string{
		"etcd": {"[[left nothing]]", "[[残り なし]]"}, "maintpage": {"[]", "[]"},
		"metering": {"[[left nothing]]", "[[残り なし]]"}, "tomcat": {"[[left nothing]]", "[[残り なし]]"},
		"visitors": {"[[left Deployment 0]]", "[[残り Deployment 0]]"}, "zundoko": {"[[song ] [words 0]]", "[[歌 ] [語数 0]]"},
	} {
		op, _ := operators.Find(name)
		for i, choose := range []func(english, japanese string) string{english, japanese} {
			lines, err := op.New().Demo().Summary(t.Context(), nothing{}, choose)
			if err != nil || fmt.Sprint(lines) != want[i] {
				t.Errorf("%s tells %v (error: %v), want %s", name, lines, err, want[i])
			}
		}
	}
}

// TestManifests reads every file, and follows the kustomizations to files that exist.
func TestManifests(t *testing.T) {
	for _, op := range operators.All() {
		t.Run(op.Name, func(t *testing.T) {
			err := fs.WalkDir(op.Manifests, ".", func(name string, entry fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				for _, file := range []string{"Chart.yaml", "watches.yaml"} {
					if _, err := fs.Stat(op.Manifests, path.Join(name, file)); err == nil {
						return fs.SkipDir // a chart has templates, not objects, and an operator of one has kinds
					}
				}
				if name == "prometheus" {
					return fs.SkipDir // rules, which the tests of sandbox/metrics read
				}
				if entry.IsDir() {
					return nil
				}
				for _, o := range sandboxtest.Objects(t, op.Manifests, name) {
					if o.GetAPIVersion() == "" || o.GetKind() == "" {
						t.Errorf("%s holds something that is no object: %v", name, o.Object)
					}
					if o.GetKind() != "Kustomization" {
						continue
					}
					files, _, err := unstructured.NestedStringSlice(o.Object, "resources")
					if err != nil || len(files) == 0 {
						t.Errorf("%s has the resources %v (error: %v)", name, files, err)
					}
					for _, file := range files {
						if _, err := fs.Stat(op.Manifests, path.Join(path.Dir(name), file)); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
