package packages

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestRecord looks at OLM when the journal tells of a change of its objects, and records only what has changed. Who does not answer
// is asked again, and a package that is gone has no Subscription any more.
func TestRecord(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	catalog := grpc.NewServer()
	api.RegisterRegistryServer(catalog, registry{bundles: []*api.Bundle{
		{PackageName: "cafe", ChannelName: "stable", CsvName: "cafe.v1.0.0", Version: "1.0.0"},
		{PackageName: "tea", ChannelName: "stable", CsvName: "tea.v1.0.0", Version: "1.0.0"},
	}})
	go func() { _ = catalog.Serve(listener) }()
	t.Cleanup(catalog.Stop)
	var phase atomic.Value
	phase.Store("Installing")
	var asked atomic.Int32
	var down, unknown atomic.Bool
	down.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Swap(false) { // the first question
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		items := map[string]string{
			"catalogsources":         `{"metadata": {"namespace": "olm", "name": "local"}, "spec": {"address": "` + listener.Addr().String() + `"}}`,
			"subscriptions":          `{"metadata": {"namespace": "a", "name": "cafe"}, "spec": {"name": "cafe", "source": "local", "sourceNamespace": "olm"}, "status": {"installedCSV": "cafe.v1.0.0", "currentCSV": "cafe.v1.0.0"}}`,
			"clusterserviceversions": `{"metadata": {"namespace": "a", "name": "cafe.v1.0.0"}, "status": {"phase": "` + phase.Load().(string) + `"}}`,
		}[path.Base(r.URL.Path)]
		if path.Base(r.URL.Path) == "subscriptions" && unknown.Load() {
			items += `, {"metadata": {"namespace": "a", "name": "milk"}, "spec": {"name": "milk", "source": "local", "sourceNamespace": "olm"}}`
		}
		if path.Base(r.URL.Path) == "installplans" { // the last question
			asked.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"items": [` + items + `]}`)) // the client sees it
	}))
	defer server.Close()

	journal := trace.New(trace.Options{})
	stop := Record(t.Context(), &rest.Config{Host: server.URL}, journal)
	defer stop()
	change := trace.Event{Kind: trace.KindWatch, Verb: trace.Modified, Object: trace.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription"}}
	await := func(what string, is func() bool) {
		for end := time.Now().Add(20 * time.Second); !is(); {
			if time.Now().After(end) {
				t.Fatalf("%s: never", what)
			}
			<-time.After(time.Millisecond)
		}
	}
	told := func() (all []*trace.Event) {
		for _, e := range journal.Since(0) {
			if e.Kind == trace.KindPackage {
				all = append(all, e)
			}
		}
		return all
	}
	journal.Append(change)
	await("the first look", func() bool { return len(told()) == 1 })
	journal.Append(trace.Event{Kind: trace.KindNote}) // of something else
	journal.Append(change)
	await("another look", func() bool { return asked.Load() == 2 })
	phase.Store("Succeeded")
	journal.Append(change)
	await("what has changed", func() bool { return len(told()) == 2 })
	for i, want := range []string{"Installing", "Succeeded"} {
		e := told()[i]
		p, known := trace.PackageOf(e)
		if !known || p.Name != "cafe" || len(p.Channels) != 1 || p.Subscriptions[0].Phase != want || e.Object.Namespace != "olm" {
			t.Errorf("%d is %+v of %s", i+1, p, e.Object)
		}
		if (i == 0) != (e.Before == nil) {
			t.Errorf("%d has before it %s", i+1, e.Before)
		}
	}
	if asked.Load() != 3 {
		t.Errorf("OLM was looked at %d times, want 3", asked.Load())
	}
	for i, exists := range []bool{true, false} {
		unknown.Store(exists)
		journal.Append(change)
		await("the package that no catalog has", func() bool { return len(told()) == 3+i })
		p, _ := trace.PackageOf(told()[2+i])
		if p.Name != "milk" || p.Catalog != "olm/local" || len(p.Subscriptions) > 0 != exists {
			t.Errorf("told was %+v", p)
		}
	}
}
