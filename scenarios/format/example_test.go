package format_test

import (
	"fmt"
	"testing/fstest"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// All that is wrong is reported at once, each with its place and the nearest known name.
func ExampleLint() {
	files := fstest.MapFS{"sings/chainsaw-test.yaml": {Data: []byte(`apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata:
  name: sings
spec:
  steps:
  - try:
    - aply: {file: song.yaml}
    - sleep: {duration: soon}
`)}}
	for _, problem := range format.Lint(format.Discovery{FS: files, Paths: []string{"sings"}}) {
		fmt.Println(problem)
		if problem.Hint != "" {
			fmt.Println("  hint:", problem.Hint)
		}
	}
	// Output:
	// sings/chainsaw-test.yaml:8:7: unknown field "aply" in spec.steps[0].try[0]
	//   hint: did you mean "apply"?
	// sings/chainsaw-test.yaml:9:25: spec.steps[0].try[1].sleep.duration must be a duration, not "soon"
	//   hint: write it with its unit, such as 5s or 1m30s
}
