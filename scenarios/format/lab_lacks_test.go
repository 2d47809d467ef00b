package format

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLackAnnotations(t *testing.T) {
	for name, c := range map[string]struct {
		annotations map[string]string
		want        []Lack
		problem     string
	}{
		"all": {
			annotations: map[string]string{"lacks.phase-3": "no data", "ja.lacks.phase-3": "データがない", "lacks.habit-7.classic": "untested", "habits": "1, 2"},
			want:        []Lack{{Phase: 3, Why: "no data", Japanese: "データがない"}, {Habit: 7, Variant: "classic", Why: "untested"}},
		},
		"no such habit":    {annotations: map[string]string{"lacks.habit-8": "no"}, problem: `lacks.habit-8: "habit-8" is neither a habit nor a phase`},
		"no such phase":    {annotations: map[string]string{"ja.lacks.phase-0": "no"}, problem: `ja.lacks.phase-0: "phase-0" is neither a habit nor a phase`},
		"another word":     {annotations: map[string]string{"lacks.level-1": "no"}, problem: `"level-1" is neither a habit nor a phase`},
		"Japanese only":    {annotations: map[string]string{"ja.lacks.phase-3.classic": "データがない"}, problem: `ja.lacks.phase-3.classic: there is no reason in English`},
		"shown and absent": {annotations: map[string]string{"lacks.phase-3": "no data", "phase": "2, 3"}, problem: `lacks.phase-3: the test is evidence of it`},
		"empty":            {annotations: map[string]string{"lacks.phase-3": " "}, problem: `lacks.phase-3: is empty`},
	} {
		t.Run(name, func(t *testing.T) {
			all := map[string]string{}
			for key, value := range c.annotations {
				all["operator-lab.dev/"+key] = value
			}
			lab, err := ReadLab(&Test{ObjectMeta: metav1.ObjectMeta{Name: "t", Annotations: all}})
			switch {
			case c.problem == "":
				if diff := cmp.Diff(c.want, lab.Lacks); diff != "" || err != nil {
					t.Errorf("%v (-want +got)\n%s", err, diff)
				}
			case err == nil || !strings.Contains(err.Error(), c.problem):
				t.Errorf("%v: got %v, want %s", slices.Collect(maps.Keys(all)), err, c.problem)
			}
		})
	}
}
