package operatorhost_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
