package scorecard_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/scorecard"
)

func someObject(kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": kind, "metadata": map[string]any{"name": name}}}
}

// ownPlan is the plan of an operator with a kind of its own, a sample and a Deployment.
func ownPlan() *project.Plan {
	crd := someObject("CustomResourceDefinition", "cafes.example.com")
	crd.Object["spec"] = map[string]any{"group": "example.com", "names": map[string]any{"kind": "Cafe"}}
	return &project.Plan{
		Objects: []*unstructured.Unstructured{crd},
		LeftOut: []project.LeftOut{{Kind: "Deployment", Name: "cafe"}, {Kind: "Service", Name: "cafe"}},
		Samples: []project.Sample{{File: "cafe.yaml", Objects: []*unstructured.Unstructured{someObject("Cafe", "one"), someObject("Secret", "s")}}},
	}
}

// TestSamples checks that what is made of samples are scenarios without a problem, tagged for the operator.
func TestSamples(t *testing.T) {
	files, err := scorecard.Samples("cafe", ownPlan())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	d := format.Discovery{Paths: []string{dir}, TestFile: "chainsaw-test"}
	for _, p := range format.Lint(d) {
		t.Error(p)
	}
	all, err := format.Discover(d)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][][]int{}
	for _, loaded := range all {
		tag, _ := scorecard.New("cafe", "", "en", nil, nil).TagOf(loaded.Test)
		got[tag.Name] = [][]int{tag.Habits, tag.Phases}
	}
	want := map[string][][]int{
		"samples": {{1, 2}, {1}}, "operator-away": {{4}, nil}, "crash-before-writes": {{7}, nil}, "crash-after-writes": {{7}, nil},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	foreign := ownPlan()
	foreign.Objects = nil
	if files, err := scorecard.Samples("cafe", foreign); err != nil || len(files) > 0 {
		t.Errorf("%v of samples of kinds that the operator does not define: %v", slices.Collect(maps.Keys(files)), err)
	}
}

// TestShows checks what a scenario shows of an operator that does little.
func TestShows(t *testing.T) {
	for name, c := range map[string]struct {
		events []trace.Event
		shown  map[string]bool
	}{
		"nothing": {nil, map[string]bool{"samples": true, "mine": true}},
		"a status": {
			[]trace.Event{{Kind: trace.KindCall, Operator: "cafe", Verb: trace.VerbUpdate}, {Kind: trace.KindCall, Operator: "you", Verb: trace.VerbCreate}},
			map[string]bool{"samples": true, "mine": true, "crash-before-writes": true},
		},
		"a refused object": {
			[]trace.Event{{Kind: trace.KindCall, Operator: "cafe", Verb: trace.VerbCreate, Error: "Forbidden"}},
			map[string]bool{"samples": true, "mine": true},
		},
		"an object": {
			[]trace.Event{{Kind: trace.KindCall, Operator: "cafe", Verb: trace.VerbCreate}},
			map[string]bool{"samples": true, "mine": true, "crash-before-writes": true, "operator-away": true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			journal := trace.New(trace.Options{})
			for _, e := range c.events {
				journal.Append(e)
			}
			for _, scenario := range []string{"samples", "mine", "crash-before-writes", "operator-away"} {
				reason, shows := scorecard.Shows(scenario, "cafe", journal)
				if shows != c.shown[scenario] || shows != (reason == "") {
					t.Errorf("%s: %v %q", scenario, shows, reason)
				}
			}
		})
	}
}

// TestManifests checks what manifests show of the first habit.
func TestManifests(t *testing.T) {
	card := func(change func(*project.Plan)) scorecard.Row {
		t.Helper()
		plan := ownPlan()
		change(plan)
		scope := scorecard.New("cafe", "", "en", []int{1}, nil)
		var results []scorecard.Result
		if r, shows := scope.Manifests(plan, time.Now()); shows {
			results = append(results, r)
		}
		c, err := scope.Judge(results)
		if err != nil {
			t.Fatal(err)
		}
		return c.Habits[0]
	}
	if got := card(func(*project.Plan) {}); got.Verdict != scorecard.Held {
		t.Errorf("one Deployment: %+v", got)
	}
	got := card(func(p *project.Plan) { p.Objects = append(p.Objects, someObject("Job", "migrate")) })
	if got.Verdict != scorecard.NotHeld || got.Evidence[0].Why != "manifests: read: what runs of them: Job migrate, Deployment cafe" {
		t.Errorf("two: %+v", got)
	}
	if got := card(func(p *project.Plan) { p.LeftOut = nil }); got.Verdict != scorecard.NotShown {
		t.Errorf("none: %+v", got)
	}
}
