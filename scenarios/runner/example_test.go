package runner_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// A test that only runs a program needs no cluster. For one that does, set Config of the Options, such as to that of a
// sandbox.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	const test = `apiVersion: chainsaw.kyverno.io/v1alpha1
kind: Test
metadata:
  name: greets
spec:
  steps:
  - try:
    - script:
        content: echo hello
        check:
          (contains($stdout, 'hello')): true
`
	if err := os.WriteFile(filepath.Join(dir, "chainsaw-test.yaml"), []byte(test), 0o600); err != nil {
		log.Panic(err)
	}
	tests, err := format.Discover(format.Discovery{Paths: []string{dir}})
	if err != nil {
		log.Panic(err)
	}
	run, err := runner.Run(context.Background(), runner.Options{Tests: tests})
	if err != nil {
		log.Panic(err)
	}
	for _, t := range run.Tests {
		fmt.Println(t.Name, t.Status())
	}
	// Output: greets passed
}
