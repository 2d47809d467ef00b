package format

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadLabHabitsAndPhases(t *testing.T) {
	l := load(annotated("    operator-lab.dev/habits: \"4, 7\"\n    operator-lab.dev/phase: \"3\"\n", "  steps: []\n"))
	got, err := ReadLab(l[0].Test)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]int{{4, 7}, {3}}, [][]int{got.Habits, got.Phases}); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLintHabitsAndPhases(t *testing.T) {
	const hint = ` | write numbers from 1 to 7 with commas between them: "1, 2"`
	for value, want := range map[string]string{
		"8":      `there is no habit "8"` + hint,
		"0, 1":   `there is no habit "0"` + hint,
		"tests":  `there is no habit "tests"` + hint,
		"1,":     `there is no habit ""` + hint,
		"2, 2":   `habit 2 is there twice`,
		"1 and2": `there is no habit "1 and2"` + hint,
	} {
		files := map[string]string{"chainsaw-test.yaml": annotated("    operator-lab.dev/habits: \""+value+"\"\n", "  steps: []\n")}
		got := tell(Lint(Discovery{FS: tree(files)}))
		if diff := cmp.Diff([]string{"chainsaw-test.yaml:6:5: annotation operator-lab.dev/habits: " + want}, got); diff != "" {
			t.Errorf("%q (-want +got)\n%s", value, diff)
		}
	}
	files := map[string]string{"chainsaw-test.yaml": annotated("    operator-lab.dev/phase: \"6\"\n", "  steps: []\n")}
	want := []string{`chainsaw-test.yaml:6:5: annotation operator-lab.dev/phase: there is no phase "6" | write numbers from 1 to 5 with commas between them: "1, 2"`}
	if diff := cmp.Diff(want, tell(Lint(Discovery{FS: tree(files)}))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
