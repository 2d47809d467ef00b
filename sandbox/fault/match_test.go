package fault_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/fault"
)

const (
	apply     = "application/apply-patch+yaml"
	merge     = "application/merge-patch+json"
	strategic = "application/strategic-merge-patch+json"
	jsonPatch = "application/json-patch+json"
)

// fail returns a fault that answers a call with 500, so that the test sees it.
func fail(match v1alpha1.FaultMatch) v1alpha1.FaultSpec {
	return v1alpha1.FaultSpec{API: &v1alpha1.APIFault{}, Match: &match}
}

func TestMatching(t *testing.T) {
	one := songs + "/one"
	for _, c := range []struct {
		match v1alpha1.FaultMatch
		what  string
		body  string
		want  bool
	}{
		// By default every write matches.
		{v1alpha1.FaultMatch{}, "POST " + songs, song("one", ""), true},
		{v1alpha1.FaultMatch{}, "PUT " + one, song("one", ""), true},
		{v1alpha1.FaultMatch{}, "PATCH " + one + " " + merge, "{}", true},
		{v1alpha1.FaultMatch{}, "PATCH " + one + " " + apply, "{}", true},
		{v1alpha1.FaultMatch{}, "DELETE " + one, "", true},
		{v1alpha1.FaultMatch{}, "DELETE " + songs, "", true},
		{v1alpha1.FaultMatch{}, "GET " + one, "", false},
		{v1alpha1.FaultMatch{}, "GET " + songs, "", false},
		{v1alpha1.FaultMatch{}, "PUT " + one + "?dryRun=All", song("one", ""), false},
		// Verbs.
		{v1alpha1.FaultMatch{Verbs: []string{"get"}}, "GET " + one, "", true},
		{v1alpha1.FaultMatch{Verbs: []string{"get"}}, "GET " + songs, "", false},
		{v1alpha1.FaultMatch{Verbs: []string{"list"}}, "GET " + songs, "", true},
		{v1alpha1.FaultMatch{Verbs: []string{"patch"}}, "PATCH " + one + " " + strategic, "{}", true},
		{v1alpha1.FaultMatch{Verbs: []string{"patch"}}, "PATCH " + one + " " + apply, "{}", false},
		{v1alpha1.FaultMatch{Verbs: []string{"apply"}}, "PATCH " + one + " " + apply, "{}", true},
		{v1alpha1.FaultMatch{Verbs: []string{"apply"}}, "PATCH " + one + " " + jsonPatch, "[]", false},
		{v1alpha1.FaultMatch{Verbs: []string{"create", "delete"}}, "PUT " + one, song("one", ""), false},
		// Kinds.
		{v1alpha1.FaultMatch{Kind: "Song"}, "DELETE " + one, "", true},
		{v1alpha1.FaultMatch{Kind: "song"}, "DELETE " + one, "", true},
		{v1alpha1.FaultMatch{Kind: "songs"}, "DELETE " + one, "", true},
		{v1alpha1.FaultMatch{Kind: "Son"}, "DELETE " + one, "", false},
		{v1alpha1.FaultMatch{Kind: "Policy"}, "DELETE /apis/x/v1/policies/p", "", true},
		{v1alpha1.FaultMatch{Kind: "Endpoints"}, "DELETE /api/v1/namespaces/default/endpoints/e", "", true},
		{v1alpha1.FaultMatch{Kind: "Namespace"}, "DELETE /api/v1/namespaces/default", "", true},
		{v1alpha1.FaultMatch{Kind: "Namespace", Subresource: "finalize"}, "PUT /api/v1/namespaces/default/finalize", "{}", true},
		{v1alpha1.FaultMatch{Kind: "Goose"}, "POST /apis/x/v1/namespaces/default/geese", `{"apiVersion":"x/v1","kind":"Goose"}`, true},
		{v1alpha1.FaultMatch{Kind: "Crow"}, "DELETE /apis/x/v1/murders/m", "", true}, // see newBench's Kind below
		{v1alpha1.FaultMatch{Group: "music.example.com"}, "DELETE " + one, "", true},
		{v1alpha1.FaultMatch{Group: "example.com"}, "DELETE " + one, "", false},
		{v1alpha1.FaultMatch{Group: "core"}, "DELETE " + maps + "/m", "", true},
		{v1alpha1.FaultMatch{Group: "core"}, "DELETE " + one, "", false},
		// Subresources.
		{v1alpha1.FaultMatch{Kind: "Song"}, "PUT " + one + "/status", song("one", ""), true},
		{v1alpha1.FaultMatch{Subresource: "status"}, "PUT " + one + "/status", song("one", ""), true},
		{v1alpha1.FaultMatch{Subresource: "status"}, "PUT " + one, song("one", ""), false},
		{v1alpha1.FaultMatch{Subresource: "-"}, "PUT " + one + "/status", song("one", ""), false},
		{v1alpha1.FaultMatch{Subresource: "-"}, "PUT " + one, song("one", ""), true},
		// Namespaces and names.
		{v1alpha1.FaultMatch{Namespace: "default"}, "DELETE " + one, "", true},
		{v1alpha1.FaultMatch{Namespace: "other"}, "DELETE " + one, "", false},
		{v1alpha1.FaultMatch{Name: "one"}, "DELETE " + one, "", true},
		{v1alpha1.FaultMatch{Name: "o*"}, "DELETE " + one, "", true},
		{v1alpha1.FaultMatch{Name: "*n*"}, "DELETE " + one, "", true},
		{v1alpha1.FaultMatch{Name: "o*o"}, "DELETE " + one, "", false},
		{v1alpha1.FaultMatch{Name: "on"}, "DELETE " + one, "", false},
		{v1alpha1.FaultMatch{Name: "*"}, "DELETE " + one, "", true},
		{v1alpha1.FaultMatch{Name: "*"}, "DELETE " + songs, "", false},
		{v1alpha1.FaultMatch{Name: "one"}, "POST " + songs, song("one", ""), true},
		{v1alpha1.FaultMatch{Name: "two"}, "POST " + songs, song("one", ""), false},
		{v1alpha1.FaultMatch{Name: "demo-*"}, "POST " + songs, `{"metadata":{"generateName":"demo-"}}`, true},
		{v1alpha1.FaultMatch{Name: "demo-"}, "POST " + songs, `{"metadata":{"generateName":"demo-"}}`, true},
		{v1alpha1.FaultMatch{Name: "dem"}, "POST " + songs, `{"metadata":{"generateName":"demo-"}}`, false},
		// Bodies that cannot be parsed have no name.
		{v1alpha1.FaultMatch{Name: "one"}, "POST " + songs, `{"metadata":`, false},
		{v1alpha1.FaultMatch{}, "POST " + songs, `{"metadata":`, true},
	} {
		b := newBench(t)
		b.faults = fault.NewFaults(fault.FaultsOptions{Journal: b.journal, Effects: b.effects, Kind: crows})
		b.live()
		b.arm("f", fail(c.match))
		code, text, err := b.send(c.what, c.body)
		if err != nil {
			t.Fatal(err)
		}
		if got := code == http.StatusInternalServerError; got != c.want {
			t.Errorf("%+v matches %s %s: %t, want %t (%d %s)", c.match, c.what, c.body, got, c.want, code, text)
		}
	}
}

func TestFields(t *testing.T) {
	one := songs + "/one"
	stored := song("one", `,"spec":{"words":["Zun","Doko"],"loud":true},"status":{"phase":"Singing","errors":[]}`)
	for _, c := range []struct {
		field, what, body string
		want              bool
	}{
		{"spec.loud", "PUT " + one, song("one", `,"spec":{"words":["Zun","Doko"],"loud":true}`), false},
		{"spec.loud", "PUT " + one, song("one", `,"spec":{"words":["Zun","Doko"],"loud":false}`), true},
		{"spec.loud", "PUT " + one, song("one", ``), true},
		{"spec", "PUT " + one, song("one", `,"spec":{"loud":true,"words":["Zun","Doko"],"more":{},"none":null}`), false},
		{"spec.words[1]", "PUT " + one, song("one", `,"spec":{"words":["Zun","Zun"]}`), true},
		{"spec.words[0]", "PUT " + one, song("one", `,"spec":{"words":["Zun","Zun"]}`), false},
		{"status.errors", "PUT " + one, song("one", ``), false},
		{"status.phase", "PUT " + one + "/status", song("one", `,"status":{"phase":"Done"}`), true},
		{"spec.loud", "PUT " + one + "/status", song("one", `,"status":{"phase":"Done"}`), false},
		{"spec.loud", "PUT " + songs + "/two", song("two", `,"spec":{"loud":true}`), true}, // the object does not exist
		{"spec.loud", "POST " + songs, song("two", `,"spec":{"loud":false}`), true},
		{"spec.loud", "POST " + songs, song("two", `,"spec":{}`), false},
		{"spec.loud", "PATCH " + one + " " + merge, `{"spec":{"loud":true}}`, true}, // the object is not read
		{"spec.loud", "PATCH " + one + " " + merge, `{"spec":{"loud":null}}`, true},
		{"spec.loud", "PATCH " + one + " " + merge, `{"spec":null}`, true},
		{"spec.loud", "PATCH " + one + " " + merge, `{"spec":{"words":[]}}`, false},
		{"spec", "PATCH " + one + " " + strategic, `{"spec":{"words":[]}}`, true},
		{"metadata.annotations", "PATCH " + one + " " + merge, `{"metadata":{"labels":{"a":"b"}}}`, false},
		{`metadata.labels["a.b/c"]`, "PATCH " + one + " " + merge, `{"metadata":{"labels":{"a.b/c":"b"}}}`, true},
		{`metadata.labels.a\.b/c`, "PATCH " + one + " " + merge, `{"metadata":{"labels":{"a.b/c":"b"}}}`, true},
		{"spec.loud", "PATCH " + one + " " + apply, "spec:\n  loud: true\n", true},
		{"spec.loud", "PATCH " + one + " " + apply, `{"spec":{"words":[]}}`, false},
		{"spec.loud", "PATCH " + one + " " + jsonPatch, `[{"op":"replace","path":"/spec/loud","value":true}]`, true},
		{"spec.loud", "PATCH " + one + " " + jsonPatch, `[{"op":"remove","path":"/spec"}]`, true},
		{"spec", "PATCH " + one + " " + jsonPatch, `[{"op":"add","path":"/spec/words/0","value":"x"}]`, true},
		{"spec.loud", "PATCH " + one + " " + jsonPatch, `[{"op":"test","path":"/spec/loud","value":true},{"op":"add","path":"/spec/words/0","value":"x"}]`, false},
		{"spec.loud", "PATCH " + one + " " + jsonPatch, `[{"op":"move","from":"/spec/loud","path":"/spec/quiet"}]`, true},
		{`metadata.labels["a/b"]`, "PATCH " + one + " " + jsonPatch, `[{"op":"add","path":"/metadata/labels/a~1b","value":"x"}]`, true},
		{"spec.loud", "DELETE " + one, "", false},
	} {
		b := newBench(t)
		b.server.answers = map[string]string{"GET " + one: stored, "GET " + one + "/status": stored, "GET " + songs + "/two": ""}
		b.arm("f", fail(v1alpha1.FaultMatch{Field: c.field}))
		code, text, err := b.send(c.what, c.body)
		if err != nil {
			t.Fatal(err)
		}
		if got := code == http.StatusInternalServerError; got != c.want {
			t.Errorf("%s is changed by %s %s: %t, want %t (%d %s)", c.field, c.what, c.body, got, c.want, code, text)
		}
	}
}

// TestFieldThatCannotBeKnown checks that the status says why the fault does not happen.
func TestFieldThatCannotBeKnown(t *testing.T) {
	b := newBench(t)
	b.next = roundTrip(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodGet {
			return response(req, http.StatusForbidden, "{}"), nil
		}
		return b.server.RoundTrip(req)
	})
	b.live()
	b.arm("f", fail(v1alpha1.FaultMatch{Field: "spec.loud"}))
	b.must("PUT "+songs+"/one", song("one", ""))
	if s := b.wantStatus("f", v1alpha1.FaultArmed, 0, 0, false); !strings.Contains(s.Message, "403") {
		t.Error(s.Message)
	}
}

func crows(r schema.GroupResource) string {
	if r.Resource == "murders" {
		return "Crow"
	}
	return ""
}

func TestNeverMatched(t *testing.T) {
	b := newBench(t)
	b.arm("f", v1alpha1.FaultSpec{API: &v1alpha1.APIFault{}, Match: &v1alpha1.FaultMatch{
		Verbs: []string{"create", "update", "patch", "apply", "delete", "get", "list"}, Times: new(int32(0)),
	}})
	for _, what := range []string{
		"PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/leader",
		"POST " + strings.Replace(maps, "configmaps", "events", 1),
		"POST /apis/events.k8s.io/v1/namespaces/default/events",
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		"POST /apis/authentication.k8s.io/v1/tokenreviews",
		"POST /api/v1/namespaces/default/serviceaccounts/default/token",
		"POST /api/v1/namespaces/default/pods/p/exec",
		"GET /apis/operator-lab.dev/v1alpha1/faults",
		"GET /api", "GET /api/v1", "GET /apis", "GET /apis/apps/v1", "GET /openapi/v3", "GET /version", "GET /healthz",
		"POST " + songs + "?dryRun=All",
	} {
		b.must(what, "{}")
	}
	if _, _, err := b.sendAs(fault.Outside(t.Context()), "POST "+songs, "{}"); err != nil {
		t.Fatal(err)
	}
	b.wantStatus("f", v1alpha1.FaultArmed, 0, 0, false)
}

// happened sends n writes and returns the numbers of the failed ones.
func (b *bench) happened(n int) []int {
	b.Helper()
	var out []int
	for i := 1; i <= n; i++ {
		if code, _, err := b.send("POST "+songs, song("one", "")); err != nil || code != http.StatusOK {
			out = append(out, i)
		}
	}
	return out
}

func TestNthAndTimes(t *testing.T) {
	for _, c := range []struct {
		nth     int32
		times   *int32
		want    []int
		matched int32
		done    bool
	}{
		{0, nil, []int{1}, 1, true},
		{1, nil, []int{1}, 1, true},
		{3, nil, []int{3}, 3, true},
		{3, new(int32(2)), []int{3, 4}, 4, true},
		{5, new(int32(0)), []int{5, 6}, 6, false},
		{7, nil, nil, 6, false},
	} {
		b := newBench(t)
		b.arm("f", fail(v1alpha1.FaultMatch{Kind: "Song", Nth: c.nth, Times: c.times}))
		b.must("POST "+maps, `{"metadata":{"name":"m"}}`) // another kind
		if diff := cmp.Diff(c.want, b.happened(6)); diff != "" {
			t.Errorf("nth %d: %s", c.nth, diff)
		}
		phase := v1alpha1.FaultInjected
		if c.want == nil {
			phase = v1alpha1.FaultArmed
		}
		b.wantStatus("f", phase, c.matched, int32(len(c.want)), c.done)
	}
}

// TestPercent checks that the same seed chooses the same matches, whatever the name of the fault; that another seed
// chooses others, and the seed of the run others for each name; and that their number is about as requested.
func TestPercent(t *testing.T) {
	choose := func(name string, seed int64) []int {
		b := newBench(t)
		m := v1alpha1.FaultMatch{Percent: 30, Times: new(int32(0))}
		if seed != 0 {
			m.Seed = &seed
		}
		b.arm("other", fail(v1alpha1.FaultMatch{Percent: 50, Times: new(int32(0)), Kind: "Other"}))
		b.arm(name, fail(m))
		return b.happened(400)
	}
	first := choose("f", 7)
	for i := range 20 {
		if !slices.Equal(first, choose(fmt.Sprint("f", i), 7)) {
			t.Fatal("the same seed chooses differently")
		}
	}
	ofRun := choose("f", 0)
	if !slices.Equal(ofRun, choose("f", 0)) {
		t.Error("the seed of the run chooses differently")
	}
	if slices.Equal(first, choose("f", 8)) || slices.Equal(ofRun, choose("g", 0)) {
		t.Error("another seed, or another name with the seed of the run, chooses the same")
	}
	if n := len(first); n < 90 || n > 150 {
		t.Errorf("%d of 400 are 30 percent", n)
	}
	if fmt.Sprint(ofRun[:5]) != "[1 2 4 13 15]" || fmt.Sprint(first[:5]) != "[8 15 17 20 23]" {
		t.Errorf("the seeds choose other matches than they did in earlier versions: %v, %v", ofRun[:5], first[:5])
	}
}

// TestOperators checks that a fault counts the matches of all operators that it concerns.
func TestOperators(t *testing.T) {
	b := newBench(t)
	b.arm("mine", v1alpha1.FaultSpec{Operator: "zundoko", API: &v1alpha1.APIFault{}, Match: &v1alpha1.FaultMatch{Nth: 2, Times: new(int32(0))}})
	b.arm("all", v1alpha1.FaultSpec{API: &v1alpha1.APIFault{}, Match: &v1alpha1.FaultMatch{Nth: 100}})
	other := b.faults.Injector("other").Wrap(b.server)
	for range 3 {
		if _, err := other.RoundTrip(b.request(t.Context(), "POST "+songs, "{}")); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.happened(3); !slices.Equal(got, []int{2, 3}) {
		t.Error(got)
	}
	b.live() // the count continues in the next run
	b.happened(1)
	b.wantStatus("mine", v1alpha1.FaultInjected, 4, 3, false)
	b.wantStatus("all", v1alpha1.FaultArmed, 7, 0, false)
}
