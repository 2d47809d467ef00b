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

// TestTemplateHash checks that a Deployment whose ReplicaSet got another hash is as one whose ReplicaSet did not, and that the objects
// of both are found by the pattern.
func TestTemplateHash(t *testing.T) {
	n := randomNames{}
	object := func(apiVersion, kind, name, generateName, hash string, more map[string]any) unstructured.Unstructured {
		o := unstructured.Unstructured{Object: more}
		o.SetAPIVersion(apiVersion)
		o.SetKind(kind)
		o.SetName(name)
		o.SetGenerateName(generateName)
		o.SetNamespace("verify-1")
		o.SetUID("6a1c")
		if hash != "" {
			o.SetLabels(map[string]string{"app": "web", "pod-template-hash": hash})
		}
		return o
	}
	stateWith := func(hash, random string, collisions int64) state {
		return n.stateOf([]unstructured.Unstructured{
			object("apps/v1", "Deployment", "web", "", "", map[string]any{"status": map[string]any{
				"replicas": int64(1), "collisionCount": collisions, "conditions": []any{map[string]any{"type": "Progressing", "message": "ReplicaSet web-" + hash + " has progressed"}},
			}}),
			object("apps/v1", "ReplicaSet", "web-"+hash, "", hash, map[string]any{}),
			object("v1", "Pod", "web-"+hash+"-"+random, "web-"+hash+"-", hash, map[string]any{"spec": map[string]any{"image": "web:1"}}),
			object("v1", "Pod", "other-x1", "other-", "", map[string]any{}),
		})
	}
	one := stateWith("747594dd97", "abcde", 0)
	if diff := cmp.Diff(one, stateWith("b49d679fb", "fghij", 1), cmp.AllowUnexported(role{})); diff != "" {
		t.Error(diff)
	}
	got := map[role]string{}
	for r := range one {
		got[r] = n.numberOf(r)
	}
	want := map[role]string{
		{"apps/v1", "Deployment", "web"}:   "length(x_k8s_list($client, 'apps/v1', 'Deployment', $namespace).items[?metadata.name == 'web'])",
		{"apps/v1", "ReplicaSet", "web-*"}: "length(x_k8s_list($client, 'apps/v1', 'ReplicaSet', $namespace).items[?regex_match('^web-[^-.]+$', metadata.name)])",
		{"v1", "Pod", "web-*-*"}:           "length(x_k8s_list($client, 'v1', 'Pod', $namespace).items[?regex_match('^web-[^-.]+-[^-.]+$', metadata.name)])",
		{"v1", "Pod", "other-*"}:           "length(x_k8s_list($client, 'v1', 'Pod', $namespace).items[?metadata.generateName == 'other-'])",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(role{})); diff != "" {
		t.Error(diff)
	}
}
