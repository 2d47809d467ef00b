package tutor

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// TestDifferences checks that a learner's changes are found, and that objects which Kubernetes adds to each namespace
// are ignored.
func TestDifferences(t *testing.T) {
	object := func(name, uid string) unstructured.Unstructured {
		o := unstructured.Unstructured{Object: map[string]any{}}
		o.SetNamespace("hall")
		o.SetName(name)
		o.SetUID(types.UID(uid))
		return o
	}
	take := func(kind string, objects ...unstructured.Unstructured) inventory {
		s := inventory{}
		for i := range objects {
			s.add(kind, &objects[i], digestOf(objects[i].Object))
		}
		return s
	}
	changed := object("words", "1")
	changed.SetLabels(map[string]string{"loud": "yes"})
	changedCA := object("kube-root-ca.crt", "1")
	changedCA.SetLabels(map[string]string{"loud": "yes"})
	counted := object("words", "1")
	counted.SetGeneration(7)
	role := func(aggregated bool, verb string) unstructured.Unstructured {
		o := object("admin", "1")
		o.Object["rules"] = []any{map[string]any{"verbs": []any{verb}}}
		if aggregated {
			o.Object["aggregationRule"] = map[string]any{}
		}
		return o
	}
	for name, tc := range map[string]struct {
		was, is inventory
		want    []string
	}{
		"nothing":         {was: take("ConfigMap", object("words", "1")), is: take("ConfigMap", object("words", "1"))},
		"counted":         {was: take("ConfigMap", object("words", "1")), is: take("ConfigMap", counted)},
		"changed":         {was: take("ConfigMap", object("words", "1")), is: take("ConfigMap", changed), want: []string{"ConfigMap/hall/words was changed"}},
		"another":         {was: take("ConfigMap", object("words", "1")), is: take("ConfigMap", object("words", "2")), want: []string{"ConfigMap/hall/words is another one"}},
		"gone":            {was: take("ConfigMap", object("words", "1")), is: inventory{}, want: []string{"ConfigMap/hall/words is gone"}},
		"new":             {was: inventory{}, is: take("Secret", object("default", "1")), want: []string{"Secret/hall/default is new"}},
		"another root CA": {was: take("ConfigMap", object("kube-root-ca.crt", "1")), is: take("ConfigMap", object("kube-root-ca.crt", "2"))},
		"a changed root CA": {
			was: take("ConfigMap", object("kube-root-ca.crt", "1")), is: take("ConfigMap", changedCA), want: []string{"ConfigMap/hall/kube-root-ca.crt was changed"},
		},
		"a role":            {was: take("ClusterRole", role(false, "get")), is: take("ClusterRole", role(false, "list")), want: []string{"ClusterRole/hall/admin was changed"}},
		"a gathered role":   {was: take("ClusterRole", role(true, "get")), is: take("ClusterRole", role(true, "list"))},
		"a role not so now": {was: take("ClusterRole", role(true, "get")), is: take("ClusterRole", role(false, "get")), want: []string{"ClusterRole/hall/admin was changed"}},
		"a later account":   {was: inventory{}, is: take("ServiceAccount", object("default", "1"))},
	} {
		if got := tc.was.differences(tc.is); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
