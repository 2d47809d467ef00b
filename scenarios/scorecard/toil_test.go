package scorecard_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/scorecard"
)

// played is a play in which faults were measured; it fails at its end if so.
func played(keeper string, fails bool, faults ...report.Toil) scorecard.Result {
	name := "toil-" + keeper
	run := passes(name)
	for i := range faults {
		run.Steps = append(run.Steps, &report.Step{Name: "again", Toil: &faults[i]})
	}
	if fails {
		run.Steps = append(run.Steps, &report.Step{Name: "again", Operations: []*report.Operation{{
			Type: "writes", Name: "EtcdCluster example", Failure: &report.Failure{Message: "no write is acknowledged: no quorum"},
		}}})
	}
	return scorecard.Result{Tag: scorecard.Tag{Name: name, Description: "Faults.", Keeper: keeper}, Runs: []*report.Test{run}}
}

func TestToilTable(t *testing.T) {
	results := []scorecard.Result{
		played("hardened", false,
			report.Toil{Fault: "kill-member", Outage: 0.31}, report.Toil{Fault: "kill-operator", Outage: 0.28},
			report.Toil{Fault: "lose-quorum", Decisions: 2, Outage: 7.49}),
		played("classic", true, report.Toil{Fault: "kill-member", Outage: 1}),
		played(scorecard.NoOperator, false, report.Toil{Fault: "kill-member", Actions: 5, Outage: 12.04}, report.Toil{Fault: "lose-quorum", Actions: 12, Decisions: 1, Outage: 123.4}),
	}
	for _, language := range []string{"en", "ja"} {
		t.Run(language, func(t *testing.T) {
			scope := scorecard.New("etcd", "hardened", language, nil, nil)
			scope.Habits, scope.Phases = nil, nil
			card, err := scope.Judge(results)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			if err := scorecard.Write(&got, language, card); err != nil {
				t.Fatal(err)
			}
			golden := "testdata/toil." + language + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("if it is meant: go test ./scenarios/scorecard -update (-want +got)\n%s", diff)
			}
		})
	}
}

// TestKeepers: plays of all variants are taken unless one is asked for, and none when something else is.
func TestKeepers(t *testing.T) {
	play := func(annotations map[string]string) *format.Test {
		test := &format.Test{ObjectMeta: metav1.ObjectMeta{Name: "t", Annotations: map[string]string{}}}
		annotations["writes"], annotations["toil.whole"] = "example", "upgrade"
		for name, value := range annotations {
			test.Annotations["operator-lab.dev/"+name] = value
		}
		test.Spec.Steps = []format.TestStep{{Name: "whole"}}
		return test
	}
	for name, c := range map[string]struct {
		annotations map[string]string
		variant     string // asked for
		habits      []int
		want        string
	}{
		"without an operator":         {annotations: map[string]string{}, want: scorecard.NoOperator},
		"also of a variant":           {annotations: map[string]string{}, variant: "classic", want: scorecard.NoOperator},
		"of a variant":                {annotations: map[string]string{"operator": "etcd", "variant": "classic"}, want: "classic"},
		"of the one asked for":        {annotations: map[string]string{"operator": "etcd", "variant": "classic"}, variant: "classic", want: "classic"},
		"of another":                  {annotations: map[string]string{"operator": "etcd", "variant": "hardened"}, variant: "classic"},
		"of none in particular":       {annotations: map[string]string{"operator": "etcd"}, want: "hardened"},
		"a habit is asked for":        {annotations: map[string]string{"operator": "etcd", "habits": "7"}, habits: []int{1}},
		"its own habit is asked for":  {annotations: map[string]string{"operator": "etcd", "habits": "7"}, habits: []int{7}, want: "not measured"},
		"one of another operator's":   {annotations: map[string]string{"operator": "zundoko"}},
		"no habit of another variant": {annotations: map[string]string{"operator": "etcd", "variant": "classic", "habits": "7"}, habits: []int{7}},
	} {
		t.Run(name, func(t *testing.T) {
			variant := c.variant
			if variant == "" {
				variant = "hardened"
			}
			scope := scorecard.New("etcd", variant, "en", c.habits, nil)
			scope.OtherVariants = c.variant == ""
			tag, is := scope.TagOf(play(c.annotations))
			got := tag.Keeper
			if is && got == "" {
				got = "not measured"
			}
			if !is {
				got = ""
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
