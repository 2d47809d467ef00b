package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// answering is a cluster of which only an API server is there.
type answering struct {
	operatorhost.Cluster
	url string
}

func (a answering) Config() *rest.Config { return &rest.Config{Host: a.url} }

// TestDeletedLater checks that an object which waits for a finalizer is not said to be gone, when the demo has deleted it.
func TestDeletedLater(t *testing.T) {
	const marked = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns", "name": "a", "uid": "u", "resourceVersion": "7",
		"deletionTimestamp": "2026-11-24T12:00:00Z", "deletionGracePeriodSeconds": 0, "finalizers": ["foregroundDeletion"]}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answers := map[string]string{
			"/api":                               `{"kind": "APIVersions", "versions": ["v1"]}`,
			"/apis":                              `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
			"/api/v1":                            `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "configmaps", "namespaced": true, "kind": "ConfigMap", "verbs": ["delete"]}]}`,
			"/api/v1/namespaces/ns/configmaps/a": marked,
		}
		_, _ = io.WriteString(w, answers[r.URL.Path])
	}))
	defer server.Close()
	journal := trace.New(trace.Options{})
	demo, err := clientOf(trace.Demo, answering{url: server.URL}, journal, clientgoscheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	// The operator hears of it before the demo has the answer.
	ref := trace.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a", UID: "u"}
	journal.Append(trace.Event{Kind: trace.KindWatch, Verb: trace.Modified, Object: ref, ResourceVersion: "7", After: []byte(marked)})
	if err := demo.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	timeline := trace.NewTimeline(journal)
	timeline.Update()
	if o := timeline.Tip().Object(ref); o == nil || o.Deleted {
		t.Errorf("it is said to be gone: %+v", o)
	}
}

// TestBelongings checks what is waited for before a demo begins again: what was made, and all that belongs to it.
func TestBelongings(t *testing.T) {
	journal := trace.New(trace.Options{})
	for name, owner := range map[string]string{"leaf": "child", "parent": "", "child": "parent", "other": "somebody"} {
		journal.Append(trace.Event{
			Kind: trace.KindWatch, Verb: trace.Added, Object: trace.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: name, UID: name},
			ResourceVersion: "1", After: []byte(`{"metadata": {"name": "` + name + `", "ownerReferences": [{"uid": "` + owner + `"}]}}`),
		})
	}
	timeline := trace.NewTimeline(journal)
	timeline.Update()
	var names []string
	for _, ref := range belongings(timeline.Tip(), trace.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "parent", UID: "parent"}) {
		names = append(names, ref.Name)
	}
	if got := strings.Join(names, " "); got != "parent child leaf" {
		t.Errorf("what belongs to it: %s", got)
	}
}
