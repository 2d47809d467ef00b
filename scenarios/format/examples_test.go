package format

import (
	"os"
	"testing"
)

// examples is the folder of Chainsaw's examples, which are not part of this project.
func examples(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("OPERATOR_LAB_CHAINSAW_EXAMPLES")
	if dir == "" {
		t.Skip("OPERATOR_LAB_CHAINSAW_EXAMPLES does not name the folder of Chainsaw's examples")
	}
	return dir
}

func TestExamplesLoad(t *testing.T) {
	tests, err := Discover(Discovery{Paths: []string{examples(t)}, Remarshal: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(tests) < 40 {
		t.Errorf("there are only %d tests", len(tests))
	}
	for _, l := range tests {
		if l.Err != nil {
			t.Errorf("%s: %v", l.Name(true), l.Err)
		}
		if l.Test.Name == "" || len(l.Test.Spec.Steps) == 0 || l.Line == 0 {
			t.Errorf("%s: name %q, %d steps, line %d", l.File, l.Test.Name, len(l.Test.Spec.Steps), l.Line)
		}
	}
}

func TestExamplesLint(t *testing.T) {
	for _, p := range Lint(Discovery{Paths: []string{examples(t)}, Remarshal: true}) {
		if p.Warning {
			t.Logf("warning: %v (%s)", p, p.Hint)
			continue
		}
		t.Errorf("%v (%s)", p, p.Hint)
	}
}
