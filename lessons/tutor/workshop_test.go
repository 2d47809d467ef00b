package tutor_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/tutor"
	"github.com/operator-lab/operator-lab/lessons/workshop"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// toys holds the files of an operator of a Helm chart.
var toys = map[string]string{
	"watches.yaml":                 "- {group: example.com, version: v1, kind: Toy, chart: toy}\n",
	"toy/Chart.yaml":               "{apiVersion: v2, name: toy, version: 0.1.0}\n",
	"toy/templates/configmap.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: toy}}\n",
	"lab.yaml":                     "manifests: [crd.yaml]\n",
	"crd.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: toys.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Toy, listKind: ToyList, plural: toys, singular: toy}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`,
}

// TestOperatorRunsBeforeTheNextStep checks that a step of a solution begins when the operator runs that the step before has saved:
// its build is not in the time limit of a step. The second script of the solution looks only once.
func TestOperatorRunsBeforeTheNextStep(t *testing.T) {
	dir := t.TempDir()
	operators := []book.Operator{{Name: "toys", Project: true}}
	shop, err := workshop.New(workshop.Options{Dir: dir, Operators: operators})
	must(t, err)
	taught := song(t, func(files fstest.MapFS) {
		files["01-song/sing.yaml"] = &fstest.MapFile{Data: []byte(`apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata: {name: sing, annotations: {operator-lab.dev/ja.check-runs: 動いている}}
spec:
  steps:
    - name: solution
      try:
        - script: {content: mv ` + dir + `/made ` + dir + `/toys}
        - script: {content: "kubectl get operator toys -o jsonpath='{.status.state}' | grep Running"}
    - name: check-runs
      description: toys runs
      try:
        - assert: {resource: {apiVersion: operator-lab.dev/v1alpha1, kind: Operator, metadata: {name: toys}}}
`)}
	})
	for name, text := range toys {
		file := filepath.Join(dir, "made", name)
		must(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)))
	}
	c := startLesson(t, tutor.Options{Lesson: taught, Workshop: shop, Dir: dir})
	must(t, shop.Follow(t.Context(), c.lab))
	t.Cleanup(func() { must(t, shop.Close()) })
	must(t, c.BeginAt(t.Context(), 0))
	if err := c.Solve(t.Context()); err != nil {
		for _, e := range c.lab.Journal().Since(0) {
			if e.Kind == trace.KindNote {
				t.Log(e.Message)
			}
		}
		t.Error(err)
	}
}
