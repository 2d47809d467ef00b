package verify

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operator-lab/operator-lab/scenarios/expression"
)

// TestConditions checks that conditions are told apart by their types, in any order, and by their places if those are no types, and
// that the path of a field is an expression that finds it.
func TestConditions(t *testing.T) {
	const ready, done, both = "status.conditions[?type=='Ready'] | [0].status", "status.conditions[?type=='Done'] | [0].status", `"True"`
	condition := func(of, status string) any { return map[string]any{"type": of, "status": status} }
	object := func(conditions ...any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
		o.SetNamespace("verify-1")
		o.SetUID("6a1c")
		return o
	}
	for name, test := range map[string]struct {
		conditions []any
		want       fields
	}{
		"in order":        {[]any{condition("Done", "True"), condition("Ready", "True")}, fields{ready: both, done: both}},
		"in another one":  {[]any{condition("Ready", "True"), condition("Done", "True")}, fields{ready: both, done: both}},
		"one is false":    {[]any{condition("Ready", "False"), condition("Done", "True")}, fields{ready: `"False"`, done: both}},
		"one is missing":  {[]any{condition("Ready", "True")}, fields{ready: both, done: ""}},
		"two of one type": {[]any{condition("Ready", "True"), condition("Ready", "True")}, fields{"status.conditions[0].status": both, ready: ""}},
		"a quote":         {[]any{condition("Re'ady", "True")}, fields{"status.conditions[0].status": both}},
		"texts":           {[]any{"Ready"}, fields{"status.conditions[0]": `"Ready"`}},
	} {
		o := object(test.conditions...)
		got := flat(o, false, nil)
		for path, want := range test.want {
			if got[path] != want {
				t.Errorf("%s: %s is %s, want %s", name, path, got[path], want)
			}
			tree := map[string]any{"(" + path + ")": yamlValue(want)}
			if want == "" {
				tree = map[string]any{"(" + path + " == null)": true}
			}
			if wrong, err := (expression.Scope{}).Check(t.Context(), tree, o.Object); path == ready && name != "two of one type" && (err != nil || len(wrong) > 0) {
				t.Errorf("%s: %v: %v, %v", name, tree, wrong, err)
			}
			tree["("+path+")"] = "other"
			if wrong, err := (expression.Scope{}).Check(t.Context(), tree, o.Object); err != nil || len(wrong) == 0 {
				t.Errorf("%s: another value passes: %v", name, err)
			}
		}
	}
	was, is := object(condition("Done", "True"), condition("Ready", "True")), object(condition("Ready", "False"), condition("Done", "True"))
	r := &reference{state: state{{}: {flat(was, false, nil)}}}
	if differ := r.differences(state{{}: {flat(is, false, nil)}}); len(differ) != 1 || differ[0].Path != ready {
		t.Errorf("they differ in %v", differ)
	}
}

// TestVaries checks that what differs by itself is no difference: a field of an object that did so in plays without a fault, and that
// of another object of the kind if the object was in none of these plays.
func TestVaries(t *testing.T) {
	site, other, pod := role{"v1", "Service", "site"}, role{"v1", "Service", "site-2"}, role{"v1", "Pod", "site"}
	r := &reference{varies: map[role]map[string]bool{site: {"spec.clusterIP": true}, pod: {}}}
	for of, want := range map[role]bool{site: true, other: true, pod: false, {"v2", "Service", "site"}: false} {
		if r.isVaried(of, "spec.clusterIP") != want || r.isVaried(of, "spec.type") {
			t.Errorf("%v: %v, %v", of, r.isVaried(of, "spec.clusterIP"), r.isVaried(of, "spec.type"))
		}
	}
}
