package scorecard_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestTagsOfTheBundledScenarios pins what each scenario is evidence of, because a failure denies an operator a habit or
// a phase. A change, or a new scenario, must be made in the list deliberately.
func TestTagsOfTheBundledScenarios(t *testing.T) {
	got := tags(t)
	golden := filepath.Join("testdata", "tags.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("if it is meant: go test ./scenarios/scorecard -update (-want +got)\n%s", diff)
	}
}

// tags lists the scenarios of all operators, one per line. It reads them from their folder, because the package that
// embeds them links all of Kubernetes.
func tags(t *testing.T) string {
	t.Helper()
	all, err := format.Discover(format.Discovery{Paths: []string{".."}, TestFile: "chainsaw-test"})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, loaded := range all {
		if loaded.Err != nil {
			t.Fatal(loaded.Err)
		}
		lab, err := format.ReadLab(loaded.Test)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(loaded.Folder)) + "/" + loaded.Test.Name
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%-37s %-13s %s", name, tag("habits", lab.Habits), tag("phase", lab.Phases)), " ")+"\n")
	}
	return strings.Join(slices.Sorted(slices.Values(lines)), "")
}

// tag formats numbers with a name; empty without numbers.
func tag(name string, numbers []int) string {
	if len(numbers) == 0 {
		return ""
	}
	return name + " " + strings.Trim(fmt.Sprint(numbers), "[]")
}
