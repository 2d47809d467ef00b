package runner_test

import (
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

func TestNamespaces(t *testing.T) {
	t.Parallel()
	c := clientset(t).CoreV1().Namespaces()
	gone := func(name string) {
		t.Helper()
		if _, err := c.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the namespace %s is left: %v", name, err)
		}
	}
	t.Run("named, with a template", func(t *testing.T) {
		r := one(t, `
namespace: by-name
namespaceTemplateCompiler: cel
namespaceTemplate: {metadata: {labels: {for: (bindings.resolve("namespace"))}}}
steps: [{try: [{assert: {resource: {apiVersion: v1, kind: Namespace, metadata: {name: by-name, labels: {for: by-name}}}}}]}]
`)
		if r.Failed() || r.Namespace != "by-name" {
			t.Error(r.Namespace, told(r))
		}
		gone("by-name")
	})
	t.Run("one that is there is used and stays", func(t *testing.T) {
		r := one(t, "namespace: default\nsteps: [{try: [{sleep: {duration: 1ms}}]}]")
		if r.Failed() || strings.Contains(told(r), "@cleanup") {
			t.Error(told(r))
		}
	})
	t.Run("one for all tests", func(t *testing.T) {
		spec := "steps: [{try: [{assert: {resource: {($namespace): for-all}}}]}]"
		o := onLab(t, folder(t, "a/chainsaw-test.yaml", test("a", spec), "b/chainsaw-test.yaml", test("b", spec)))
		o.Configuration.Spec.Namespace.Name = "for-all"
		for _, r := range run(t, o).Tests {
			if r.Failed() {
				t.Error(told(r))
			}
		}
		gone("for-all")
	})
	t.Run("the same seed gives the same names", func(t *testing.T) {
		dir := folder(t, "chainsaw-test.yaml", test("a", "steps: [{try: [{sleep: {duration: 1ms}}]}]"))
		o := onLab(t, dir)
		o.Seed = 42
		first, second := run(t, o), run(t, o)
		if a, b := first.Tests[0].Namespace, second.Tests[0].Namespace; a != b || a == "" {
			t.Errorf("the namespaces are %q and %q", a, b)
		}
		if first.Seed != 42 {
			t.Errorf("the seed is %d", first.Seed)
		}
	})
	t.Run("who has the same seed at the same time gets another name", func(t *testing.T) {
		o := onLab(t, folder(t, "chainsaw-test.yaml", test("a", "steps: [{try: [{sleep: {duration: 1ms}}]}]")))
		o.Seed = 43
		runs := make([]*report.Run, 16)
		var all sync.WaitGroup
		for i := range runs {
			all.Go(func() { runs[i], _ = runner.Run(t.Context(), o) }) // failures are in the report
		}
		all.Wait()
		for _, r := range runs {
			if r.Tests[0].Failed() {
				t.Error(told(r.Tests[0]))
			}
		}
	})
	t.Run("one that cannot be deleted is one clear error", func(t *testing.T) {
		dir := folder(t, "chainsaw-test.yaml", test("a", `
timeouts: {cleanup: 2s}
skipDelete: false
steps:
- skipDelete: true
  try:
  - create: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.com/stay]}}}
`))
		r := run(t, onLab(t, dir)).Tests[0]
		cms := clientset(t).CoreV1().ConfigMaps(r.Namespace)
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		if _, err := cms.Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		text := told(r)
		if strings.Count(text, "FAILED") != 1 || !strings.Contains(text, "ConfigMap a with the finalizers example.com/stay") || !strings.Contains(text, "Namespace "+r.Namespace+" is still there 2s after its deletion") {
			t.Error(text)
		}
	})
}
