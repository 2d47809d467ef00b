package operatorhost_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestOLM checks what of an audit log gets into the journal of an operator that has nothing to do with it: what OLM installs
// and what that owns, with the kind that an answer has, no copies, and nothing else.
func TestOLM(t *testing.T) {
	lines := []string{
		`{"verb":"create","userAgent":"kubectl/v1","objectRef":{"resource":"subscriptions","apiGroup":"operators.coreos.com","apiVersion":"v1alpha1"},
		  "responseObject":{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","metadata":{"name":"cafe","uid":"s"}}}`,
		`{"verb":"create","userAgent":"olm/v1","objectRef":{"resource":"clusterserviceversions","apiGroup":"operators.coreos.com","apiVersion":"v1alpha1"},
		  "responseObject":{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"cafe.v1","uid":"c"}}}`,
		`{"verb":"create","userAgent":"olm/v1","objectRef":{"resource":"clusterserviceversions","apiGroup":"operators.coreos.com","apiVersion":"v1alpha1"},
		  "responseObject":{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion",
		  "metadata":{"name":"cafe.v1","namespace":"other","uid":"d","labels":{"olm.copiedFrom":"operators"}}}}`,
		`{"verb":"create","userAgent":"olm/v1","objectRef":{"resource":"deployments","apiGroup":"apps","apiVersion":"v1"},
		  "responseObject":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"cafe","uid":"e","ownerReferences":[{"uid":"c"}]}}}`,
		`{"verb":"patch","userAgent":"olm/v1","objectRef":{"resource":"deployments","apiGroup":"apps","apiVersion":"v1"},
		  "responseObject":{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"cafe","uid":"e","ownerReferences":[{"uid":"c"}]}}}`,
		`{"verb":"create","userAgent":"olm/v1","objectRef":{"resource":"services","apiVersion":"v1"},
		  "responseObject":{"apiVersion":"v1","kind":"Service","metadata":{"name":"cafe","uid":"f"}}}`,
	}
	journal := trace.New(trace.Options{})
	others := operatorhost.NewOthers(journal)
	for _, line := range lines {
		others.Note([]byte(line))
	}
	var got []string
	for _, e := range journal.Since(0) {
		if e.Kind == trace.KindCall {
			got = append(got, strings.TrimSpace(e.Verb+" "+e.Object.String()))
		}
	}
	want := []string{
		"create Subscription cafe", "create ClusterServiceVersion cafe.v1", "create Deployment cafe", "patch Deployment cafe",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDeletedByOthers checks that it is known who deleted an object, though the answer to that is a Status.
func TestDeletedByOthers(t *testing.T) {
	journal := trace.New(trace.Options{})
	cafe := trace.Ref{APIVersion: "example.com/v1", Kind: "Cafe", Namespace: "default", Name: "corner", UID: "u"}
	for _, verb := range []string{trace.Added, trace.Deleted} {
		journal.Append(trace.Event{Kind: trace.KindWatch, Operator: "cafe", Verb: verb, Object: cafe, ResourceVersion: "7"})
	}
	operatorhost.NewOthers(journal).Note([]byte(`{"verb":"delete","userAgent":"kubectl/v1",
	  "objectRef":{"resource":"cafes","apiGroup":"example.com","apiVersion":"v1","namespace":"default","name":"corner"},
	  "responseStatus":{"code":200},
	  "responseObject":{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"corner","kind":"cafes","uid":"u"}}}`))
	timeline := trace.NewTimeline(journal)
	timeline.Update()
	state := timeline.Tip()
	for l, want := range map[trace.Language]string{trace.English: "it is gone, deleted by you", trace.Japanese: "あなたが削除し、もうない"} {
		if got := state.WhyObject(state.Object(cafe), l); !strings.Contains(got, want) {
			t.Errorf("%s does not say %q", got, want)
		}
	}
}

// TestFind checks that what belongs to objects of the journal is found, owners first, though nobody told of it: with whether it
// was there before, not what the journal knows or what belongs to nobody, and that its end is recorded from then on.
func TestFind(t *testing.T) {
	journal := trace.New(trace.Options{})
	object := func(kind, name, owner string, made time.Time) unstructured.Unstructured {
		o := unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": kind}}
		o.SetNamespace("default")
		o.SetName(name)
		o.SetUID(types.UID("uid-" + name))
		o.SetResourceVersion("5")
		o.SetCreationTimestamp(metav1.NewTime(made))
		if owner != "" {
			o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Owner", Name: owner, UID: types.UID("uid-" + owner)}})
		}
		return o
	}
	before := time.Now().Add(-time.Minute)
	there := []unstructured.Unstructured{
		object("Pod", "web-1-a", "web-1", before), object("Pod", "web-1-b", "web-1", time.Now()), object("Pod", "alone", "", before),
		object("ReplicaSet", "web-1", "web", before), object("ReplicaSet", "other-1", "other", before), object("Deployment", "web", "", before),
	}
	lists, broken := 0, error(nil)
	list := func(wanted func(schema.GroupKind) bool) (out []unstructured.Unstructured, err error) {
		lists++
		for _, o := range there {
			if wanted(o.GroupVersionKind().GroupKind()) {
				out = append(out, o)
			}
		}
		return out, broken
	}
	others := operatorhost.NewOthers(journal)
	find := func() []string {
		if err := others.Find(list); err != nil {
			t.Fatal(err)
		}
		timeline := trace.NewTimeline(journal)
		timeline.Update()
		var out []string
		for _, o := range timeline.Tip().Objects() {
			if !o.Deleted {
				out = append(out, timeline.Tip().WhyObject(o, trace.English))
			}
		}
		return out
	}
	if got := find(); len(got) != 0 || lists != 0 {
		t.Errorf("with an empty journal it listed %d times and found %q", lists, got)
	}
	journal.Append(trace.Event{
		Kind: trace.KindWatch, Verb: trace.Added, Initial: true, ResourceVersion: "4",
		Object: trace.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web", UID: "uid-web"},
	})
	want := []string{
		"Deployment web was there before the operator started.",
		"Pod web-1-a was there before the operator started and is owned by Owner web-1.",
		"Pod web-1-b was created by somebody the journal does not watch and is owned by Owner web-1.",
		"ReplicaSet web-1 was there before the operator started and is owned by Owner web.",
	}
	if diff := cmp.Diff(want, find()); diff != "" {
		t.Error(diff)
	}
	others.Note([]byte(`{"verb":"delete","userAgent":"kubectl/v1","objectRef":{"resource":"pods","apiGroup":"apps","apiVersion":"v1","namespace":"default","name":"web-1-a"},
	  "responseStatus":{"code":200},"responseObject":{"kind":"Status","status":"Success","details":{"name":"web-1-a","kind":"pods","uid":"uid-web-1-a"}}}`))
	if diff := cmp.Diff(slices.Delete(want, 1, 2), find()); diff != "" {
		t.Errorf("after a deletion, and a search in an old list: %s", diff)
	}
	if there, broken = nil, errors.New("nobody answers"); !errors.Is(others.Find(list), broken) {
		t.Error("it does not tell that nothing could be listed")
	}
}

// TestEarly checks that a ReplicaSet is recorded, and who created it, though that was told before the call of the operator that
// created its owner.
func TestEarly(t *testing.T) {
	journal := trace.New(trace.Options{})
	others := operatorhost.NewOthers(journal)
	for _, name := range []string{"other-1", "web-1"} {
		others.Note([]byte(`{"verb":"create","userAgent":"kube-controller-manager/v1 (linux) kubernetes/system:serviceaccount/deployment-controller",
		  "objectRef":{"resource":"replicasets","apiGroup":"apps","apiVersion":"v1"},"responseObject":{"apiVersion":"apps/v1","kind":"ReplicaSet",
		  "metadata":{"name":"` + name + `","uid":"uid-` + name + `","ownerReferences":[{"uid":"uid-` + strings.TrimSuffix(name, "-1") + `"}]}}}`))
	}
	journal.Append(trace.Event{
		Kind: trace.KindCall, Verb: trace.VerbCreate, Actor: "cafe", Status: 201,
		Object: trace.Ref{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "uid-web"},
	})
	others.Note([]byte(`{"verb":"update","userAgent":"kubelet/v1","objectRef":{"resource":"nodes","apiVersion":"v1"}}`))
	var got []string
	for _, e := range journal.Since(0) {
		got = append(got, e.Actor+" "+e.Verb+" "+e.Object.String())
	}
	want := []string{"cafe create Deployment web", "kube-controller-manager/deployment-controller create ReplicaSet web-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestBesideOLM: of what OLM's operators read only OLM's own kinds are of interest, of what they write all but copies.
func TestBesideOLM(t *testing.T) {
	beside := operatorhost.BesideOLM()
	csv := trace.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "a", UID: "a"}
	copied := csv
	copied.UID = "b"
	label := json.RawMessage(`{"metadata": {"labels": {"olm.copiedFrom": "operators"}}}`)
	role := trace.Ref{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role", Name: "a", UID: "c"}
	for _, test := range []struct {
		event trace.Event
		want  bool
	}{
		{trace.Event{Kind: trace.KindWatch, Verb: trace.Added, Object: csv, After: json.RawMessage(`{"metadata": {}}`)}, false},
		{trace.Event{Kind: trace.KindWatch, Verb: trace.Added, Object: copied, After: label}, true},
		{trace.Event{Kind: trace.KindWatch, Verb: trace.Deleted, Object: copied}, true}, // nothing says any more that it was one
		{trace.Event{Kind: trace.KindCall, Verb: trace.VerbUpdate, Object: copied, After: label}, true},
		{trace.Event{Kind: trace.KindCall, Verb: trace.VerbUpdate, Object: csv}, false},
		{trace.Event{Kind: trace.KindCall, Verb: trace.VerbList, Object: trace.Ref{APIVersion: csv.APIVersion, Kind: csv.Kind}}, false},
		{trace.Event{Kind: trace.KindWatch, Verb: trace.Added, Object: role}, true},
		{trace.Event{Kind: trace.KindCall, Verb: trace.VerbList, Object: role}, true},
		{trace.Event{Kind: trace.KindCall, Verb: trace.VerbCreate, Object: role}, false},
	} {
		if got := beside(&test.event); got != test.want {
			t.Errorf("%s %s %s: %t", test.event.Kind, test.event.Verb, test.event.Object, got)
		}
	}
}
