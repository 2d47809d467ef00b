package scorecard_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/scorecard"
)

func TestTagOf(t *testing.T) {
	test := func(annotations map[string]string) *format.Test {
		all := map[string]string{"operator-lab.dev/operator": "zundoko"}
		for name, value := range annotations {
			all["operator-lab.dev/"+name] = value
		}
		return &format.Test{ObjectMeta: metav1.ObjectMeta{Name: "t", Annotations: all}}
	}
	for name, c := range map[string]struct {
		annotations    map[string]string
		variant        string
		habits, phases []int
		want           string
	}{
		"both":                    {annotations: map[string]string{"habits": "7, 4", "phase": "3"}, want: "habits [4 7] phases [3]"},
		"no evidence":             {annotations: map[string]string{"finding": "Z-01"}},
		"of this habit":           {annotations: map[string]string{"habits": "4, 7", "phase": "3"}, habits: []int{7}, want: "habits [7] phases []"},
		"not of this habit":       {annotations: map[string]string{"habits": "4, 7", "phase": "3"}, habits: []int{1}},
		"of this phase":           {annotations: map[string]string{"habits": "4", "phase": "2, 3"}, phases: []int{3, 1}, want: "habits [] phases [3]"},
		"about this variant":      {annotations: map[string]string{"habits": "5", "variant": "hardened"}, want: "habits [5] phases []"},
		"about the other variant": {annotations: map[string]string{"habits": "5", "variant": "hardened"}, variant: "classic"},
		"of another operator":     {annotations: map[string]string{"habits": "5", "operator": "etcd"}},
		"wrong":                   {annotations: map[string]string{"habits": "8"}},
	} {
		t.Run(name, func(t *testing.T) {
			variant := c.variant
			if variant == "" {
				variant = "hardened"
			}
			tag, is := scorecard.New("zundoko", variant, "en", c.habits, c.phases).TagOf(test(c.annotations))
			got := ""
			if is {
				got = strings.TrimSpace(strings.Join([]string{"habits", text(tag.Habits), "phases", text(tag.Phases)}, " "))
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func text(numbers []int) string {
	var out []string
	for _, n := range numbers {
		out = append(out, string(rune('0'+n)))
	}
	return "[" + strings.Join(out, " ") + "]"
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func run(name string, step *report.Step) *report.Test {
	return &report.Test{Name: name, Started: now, Ended: now.Add(time.Second), Steps: []*report.Step{step}, Journal: name + ".jsonl"}
}

func passes(name string) *report.Test {
	return run(name, &report.Step{Name: "sing", Operations: []*report.Operation{{Type: "assert"}}})
}

func fails(name string) *report.Test {
	return run(name, &report.Step{Name: "sing", Operations: []*report.Operation{{Type: "apply"}, {
		Type: "assert", Name: "Hikawa hikawa", Failure: &report.Failure{
			Message: "not as asserted", Differences: []report.Difference{{Path: "status.kiyoshied", Message: "want true,\ngot false"}},
		},
	}}})
}

func results() []scorecard.Result {
	shaky := &report.Test{Name: "shaky", Started: now, Ended: now, Findings: []report.Finding{{Oracle: "counts", Message: "create Zundoko: 6 times"}}}
	return []scorecard.Result{
		{Tag: scorecard.Tag{Name: "sings", Description: "It sings.", Habits: []int{2}, Phases: []int{1}}, Runs: []*report.Test{passes("sings")}},
		{
			Tag:  scorecard.Tag{Name: "z-08", Description: "The Kiyoshi comes back.", Finding: "Z-08", Habits: []int{3, 7}},
			Runs: []*report.Test{passes("z-08/1"), fails("z-08/2"), fails("z-08/3")},
		},
		{Tag: scorecard.Tag{Name: "deletion", Habits: []int{3}}, Runs: []*report.Test{passes("deletion")}},
		{Tag: scorecard.Tag{Name: "shaky", Habits: []int{7}}, Runs: []*report.Test{shaky}},
		{Tag: scorecard.Tag{Name: "upgrade", Phases: []int{2}}, Runs: []*report.Test{passes("upgrade")}},
		{Tag: scorecard.Tag{Name: "seen", Phases: []int{4}}, Runs: []*report.Test{passes("seen")}},
		{Tag: scorecard.Tag{Name: "left-out", Habits: []int{4}}, Runs: []*report.Test{{Name: "left-out", Skipped: true}}},
	}
}

// lacks are what somebody says is lacking. Of habit 3 and phase 1 scenarios show something.
var lacks = []format.Lack{
	{Habit: 3, Why: "nothing"},
	{Phase: 1, Why: "nothing"},
	{Habit: 5, Why: "it is the first version: nothing is older"},
	{Phase: 5, Why: "it neither scales nor tunes anything", Japanese: "スケールもチューニングもしない"},
}

func TestCard(t *testing.T) {
	for _, language := range []string{"en", "ja"} {
		t.Run(language, func(t *testing.T) {
			want, err := os.ReadFile("testdata/card." + language + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			scope := scorecard.New("zundoko", "classic", language, nil, nil)
			card, err := scope.Judge(results(), lacks...)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			if err := scorecard.Write(&got, language, card); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !scope.Fails(card) || *card.Capability != 2 {
				t.Errorf("it fails: %v, its capability is %d", scope.Fails(card), *card.Capability)
			}
			if journal := card.Habits[2].Evidence[0].Journal; journal != "z-08/2.jsonl" {
				t.Errorf("the journal is %q", journal)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	for _, c := range []struct {
		habits, phases []int
		language, want string
	}{
		{nil, nil, "en", "zundoko (classic) holds 1 of 7 habits (4 not shown); capability: phase 2 (Seamless Upgrades)"},
		{[]int{2, 3, 3}, nil, "en", "zundoko (classic) holds 1 of 2 habits looked at"},
		{[]int{2, 1}, []int{1}, "en", "zundoko (classic) holds 1 of 2 habits looked at (1 not shown) and 1 of 1 phases looked at"},
		{nil, nil, "ja", "zundoko (classic) は、習慣 7 つのうち 1 つ (不明 4 つ) を満たします。成熟度: フェーズ 2 (Seamless Upgrades)"},
		{nil, []int{1, 2, 3, 4, 5}, "en", "zundoko (classic): capability: phase 2 (Seamless Upgrades)"},
	} {
		card, err := scorecard.New("zundoko", "classic", c.language, c.habits, c.phases).Judge(results())
		if err != nil || card.Summary != c.want {
			t.Errorf("%q, %v; want %q", card.Summary, err, c.want)
		}
	}
}

func TestLacks(t *testing.T) {
	test := &format.Test{ObjectMeta: metav1.ObjectMeta{Name: "t", Annotations: map[string]string{
		"operator-lab.dev/operator": "zundoko", "operator-lab.dev/lacks.phase-3": "no data", "operator-lab.dev/lacks.habit-5.classic": "the first",
	}}}
	for _, c := range []struct {
		operator, variant string
		want              []format.Lack
		unshown           string
	}{
		{"zundoko", "classic", []format.Lack{{Habit: 5, Variant: "classic", Why: "the first"}, {Phase: 3, Why: "no data"}}, "[1 2 3 6] [1 2 4 5]"},
		{"zundoko", "hardened", []format.Lack{{Phase: 3, Why: "no data"}}, "[1 2 3 5 6] [1 2 4 5]"},
		{"etcd", "hardened", nil, "[1 2 3 5 6] [1 2 3 4 5]"},
	} {
		scope := scorecard.New(c.operator, c.variant, "en", nil, nil)
		got := scope.LacksOf(test)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (%s): (-want +got)\n%s", c.operator, c.variant, diff)
		}
		rest := scope.Without([]scorecard.Tag{{Habits: []int{4, 7}}}, got)
		if unshown := fmt.Sprint(rest.Habits, rest.Phases); unshown != c.unshown || rest.Toil || len(scope.Habits) != 7 {
			t.Errorf("%s (%s): nothing is said of %s, want %s", c.operator, c.variant, unshown, c.unshown)
		}
	}
}

func TestNothingIsJudgedOfWhatDidNotEnd(t *testing.T) {
	unfinished := []scorecard.Result{{Tag: scorecard.Tag{Name: "sings", Habits: []int{2}}, Runs: []*report.Test{{Name: "sings", Started: now, Unfinished: true}}}}
	if card, err := scorecard.New("zundoko", "classic", "en", nil, nil).Judge(unfinished); err == nil {
		t.Errorf("it was judged: %s", card.Summary)
	}
}

func TestNoEvidence(t *testing.T) {
	scope := scorecard.New("zundoko", "classic", "en", nil, nil)
	card, err := scope.Judge(nil)
	if want := "zundoko (classic) holds 0 of 7 habits (7 not shown); capability: no phase yet"; err != nil || card.Summary != want {
		t.Errorf("%q, %v; want %q", card.Summary, err, want)
	}
	if scope.Fails(card) {
		t.Error("what nothing shows is taken for a failure")
	}
}

func TestFails(t *testing.T) {
	failed := func(habits, phases []int) scorecard.Result {
		return scorecard.Result{Tag: scorecard.Tag{Name: "upgrade", Habits: habits, Phases: phases}, Runs: []*report.Test{fails("upgrade")}}
	}
	for name, c := range map[string]struct {
		habits, phases []int
		failed         scorecard.Result
		want           bool
	}{
		"a habit of all":          {failed: failed([]int{6}, nil), want: true},
		"a habit asked for":       {habits: []int{2, 6}, failed: failed([]int{6}, nil), want: true},
		"a habit not asked for":   {habits: []int{2}, phases: []int{1}, failed: failed([]int{6}, []int{2})},
		"a phase asked for":       {phases: []int{1, 2}, failed: failed([]int{6}, []int{2}), want: true},
		"a phase beside a habit":  {habits: []int{2}, phases: []int{2}, failed: failed(nil, []int{2}), want: true},
		"a phase of all":          {failed: failed(nil, []int{2})},
		"a phase that none shows": {phases: []int{5}, failed: failed(nil, []int{2})},
	} {
		t.Run(name, func(t *testing.T) {
			scope := scorecard.New("etcd", "classic", "en", c.habits, c.phases)
			card, err := scope.Judge([]scorecard.Result{c.failed})
			if err != nil {
				t.Fatal(err)
			}
			if got := scope.Fails(card); got != c.want {
				t.Errorf("fails: %v, want %v", got, c.want)
			}
		})
	}
}
