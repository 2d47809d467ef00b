package verify

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestLearnNames checks which names count as made up.
func TestLearnNames(t *testing.T) {
	for name, test := range map[string]struct{ first, second, third, want string }{
		"none":                  {"a a-b", "a a-b", "a a-b", ""},
		"one":                   {"a a-x1", "a a-y2", "a a-z3", "a-*"},
		"three":                 {"a-x1 a-x2 a-x3", "a-y1 a-y2 a-y3", "a-z1 a-z2 a-z3", "a-*"},
		"in the middle":         {"a-x1-web", "a-y2-web", "a-z3-web", "a-*-web"},
		"of two owners":         {"a-x1 b-x2", "a-y1 b-y2", "a-z1 b-z2", "a-* b-*"},
		"after a dot":           {"a.x1", "a.y2", "a.z3", "a.*"},
		"not in the third":      {"a-x1", "a-y2", "b", ""},
		"more in the first":     {"a-1 a-2 a-3", "a-1 a-2", "a-1 a-2", ""},
		"nothing in common":     {"x1", "y2", "z3", ""},
		"longer in the second":  {"a-x1", "a-y2-b", "a-z3", ""},
		"beside one that stays": {"a-b a-x1", "a-b a-y2", "a-b a-z3", "a-*"},
	} {
		var plays []map[role]bool
		for _, names := range []string{test.first, test.second, test.third} {
			play := map[role]bool{}
			for name := range strings.FieldsSeq(names) {
				play[role{"v1", "Pod", name}] = true
			}
			plays = append(plays, play)
		}
		n := learnNames(plays)
		if diff := cmp.Diff(test.want, strings.Join(n.patterns[kind{"v1", "Pod"}], " ")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		roles := map[string]bool{}
		for r := range plays[2] {
			roles[n.of(r).name] = true
		}
		if name == "beside one that stays" && !cmp.Equal(slices.Sorted(maps.Keys(roles)), []string{"a-*", "a-b"}) {
			t.Errorf("%s: %v", name, roles)
		}
	}
}

// TestNamesOfOthers checks that names that are made up do not count as differences, wherever they stand.
func TestNamesOfOthers(t *testing.T) {
	stateWith := func(pod string) state {
		n := randomNames{patterns: map[kind][]string{{"v1", "Pod"}: {"a-*"}}}
		return n.stateOf([]unstructured.Unstructured{
			{Object: map[string]any{
				"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": pod, "namespace": "verify-1", "uid": "u-1"}, "spec": map[string]any{"hostname": pod},
			}},
			{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "A", "metadata": map[string]any{"name": "a", "namespace": "verify-1", "uid": "u-2", "annotations": map[string]any{pod: "x"}},
				"status": map[string]any{"ready": []any{pod}, "url": "https://" + pod + ".a:1"},
			}},
		})
	}
	one := stateWith("a-x1")
	if diff := cmp.Diff(one, stateWith("a-y2"), cmp.AllowUnexported(role{})); diff != "" {
		t.Error(diff)
	}
	of := role{"example.com/v1", "A", "a"}
	if want := `"https://<a-*>.a:1"`; len(one) != 2 || one[of][0]["status.url"] != want {
		t.Errorf("%v; want the URL %s", one, want)
	}
}
