package remote_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/operator-lab/operator-lab/sandbox/link"
	"github.com/operator-lab/operator-lab/sandbox/remote"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// lab is a journal and the taps of an operator, which tests connect processes to.
type lab struct {
	*testing.T
	journal *trace.Journal
	taps    *remote.Taps
}

func newLab(t *testing.T) *lab {
	t.Helper()
	journal := trace.New(trace.Options{})
	sandboxtest.LogJournal(t, journal)
	return &lab{T: t, journal: journal, taps: remote.New(journal, "toy")}
}

// serve begins a run. It returns the process's end of the connection, and what Serve will return.
func (l *lab) serve() (net.Conn, <-chan error) {
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- l.taps.Serve(ours, link.Settings{Namespace: "lab"}) }()
	l.Cleanup(func() { _ = theirs.Close() })
	return theirs, served
}

// await waits until the state at the end of the journal is as wanted.
func (l *lab) await(what string, want func(*trace.State) bool) {
	l.Helper()
	timeline := trace.NewTimeline(l.journal)
	sandboxtest.Eventually(l, what, func() bool {
		timeline.Update()
		return want(timeline.Tip())
	})
}

// state returns the state at the end of the journal.
func (l *lab) state() *trace.State {
	timeline := trace.NewTimeline(l.journal)
	timeline.Update()
	return timeline.Tip()
}

// find returns the last event that matches, or nil.
func (l *lab) find(match func(*trace.Event) bool) (found *trace.Event) {
	for _, e := range l.journal.Since(0) {
		if match(e) {
			found = e
		}
	}
	return found
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// process is a run of an operator: managers as a program makes them, whose controller's keys come from the test.
type process struct {
	*lab
	link   *link.Link
	conn   net.Conn
	served <-chan error
}

func (l *lab) start() *process {
	l.Helper()
	conn, served := l.serve()
	linked, err := link.New(conn)
	l.must(err)
	return &process{lab: l, link: linked, conn: conn, served: served}
}

// manage runs a linked manager with one controller until the function that it returns is called; add adds a key to its
// queue.
func (p *process) manage(config *rest.Config, do func(context.Context, client.Client, string) error) (add func(string), stop func()) {
	p.Helper()
	return manage(p, p.link.Wrap(ctrl.NewManager), config, do)
}

func manage(tb testing.TB, newManager link.NewManagerFunc, config *rest.Config, do func(context.Context, client.Client, string) error) (add func(string), stop func()) {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	skip := true
	mgr, err := newManager(config, ctrl.Options{
		Controller:     crconfig.Controller{SkipNameValidation: &skip},
		Metrics:        metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper(), nil },
	})
	must(err)
	queues := make(chan workqueue.TypedRateLimitingInterface[reconcile.Request], 1)
	must(ctrl.NewControllerManagedBy(mgr).Named("copier").
		WatchesRawSource(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queues <- q
			return nil
		})).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, do(ctx, mgr.GetClient(), r.Name)
		})))
	ctx, cancel := context.WithCancel(tb.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = func() {
		cancel()
		must(<-done)
		done <- nil
	}
	tb.Cleanup(stop)
	queue := <-queues
	return func(name string) {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}})
	}, stop
}

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return m
}

// nothing is a reconciler that does nothing.
func nothing(context.Context, client.Client, string) error { return nil }

// create is a reconciler that creates a ConfigMap.
func create(ctx context.Context, c client.Client, name string) error {
	return c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name + "-copy"}})
}

// apiServer answers each request with a ConfigMap, after see was called with it.
func apiServer(tb testing.TB, see func(*http.Request)) *rest.Config {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		see(r)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(&corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "copy", UID: "u", ResourceVersion: "7"},
		})
	}))
	tb.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// unused is the config of a manager that asks for nothing.
var unused = &rest.Config{Host: "http://127.0.0.1:0"}

// ended returns whether a key was reconciled n times.
func ended(name string, n int) func(*trace.State) bool {
	return func(s *trace.State) bool {
		for _, r := range s.Reconciles() {
			if r.Key.Name == name && !r.Running() {
				n--
			}
		}
		return n <= 0
	}
}
