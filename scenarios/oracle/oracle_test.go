package oracle_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/operator-lab/operator-lab/operators/zundoko"
	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/oracle"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// box is the sandbox of all tests of the package.
var box *sandbox.Sandbox

func TestMain(m *testing.M) { os.Exit(withSandbox(m)) }

func withSandbox(m *testing.M) int {
	if _, err := sandbox.FindBinary(); err != nil {
		fmt.Fprintf(os.Stderr, "skipping the tests of oracle: %v; 'make test' builds it\n", err)
		return 0
	}
	crds, err := zundoko.CRDs(zundoko.Hardened)
	if err == nil {
		box, err = sandbox.Start(context.Background(), sandbox.Options{Ephemeral: true, CRDs: crds}) //nolint:forbidigo // there is no test yet
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = box.Stop() }()
	return m.Run()
}

// worker is an operator for Hikawas that keeps a ConfigMap for each, either correctly or with one bug.
type worker struct {
	client.Client
	bug    string
	passes int
	remade bool
	scheme *runtime.Scheme
}

func (w *worker) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w.passes++
	hikawa := &v1beta1.Hikawa{}
	if err := w.Get(ctx, req.NamespacedName, hikawa); err != nil || !hikawa.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name + "-child"}}
	if w.bug != oracle.Leak && w.bug != leakByApply {
		if err := ctrl.SetControllerReference(hikawa, child, w.scheme); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := w.provide(ctx, child); err != nil && !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, err
	}
	switch w.bug {
	case oracle.Panic:
		if w.passes == 1 {
			panic("a bug that panics")
		}
	case oracle.HotLoop:
		hikawa.Labels = map[string]string{"passes": fmt.Sprint(w.passes)}
		return ctrl.Result{}, w.Update(ctx, hikawa)
	case oracle.Idempotent: // nothing watches the written object, so that the loop is not woken
		child.Data = map[string]string{"passes": fmt.Sprint(w.passes)}
		child.ResourceVersion = ""
		return ctrl.Result{}, w.Update(ctx, child)
	case clock:
		if w.passes > 1 { // else the first probe might come in the same second
			child.Data = map[string]string{"reconciled": time.Now().UTC().Format(time.RFC3339)}
			return ctrl.Result{}, w.Update(ctx, child)
		}
	case lateNews:
		if w.passes == 2 {
			child.Data = map[string]string{"news": "read before they were delivered"}
			return ctrl.Result{}, w.Update(ctx, child)
		}
	case oracle.LiveDelete:
		if !w.remade {
			w.remade = true
			return ctrl.Result{RequeueAfter: time.Millisecond}, w.Delete(ctx, child)
		}
	case oracle.ObservedGeneration:
		hikawa.Status.ObservedGeneration = 1
		return ctrl.Result{}, w.Status().Update(ctx, hikawa)
	}
	return ctrl.Result{}, nil
}

const (
	// leakByApply is a leak of an applied object.
	leakByApply = oracle.Leak + " by apply"
	// clock writes the time of each reconcile, in whole seconds.
	clock = oracle.Idempotent + " by the clock"
	// lateNews writes once more for a good reason, and then no more.
	lateNews = "late news"
)

func (w *worker) provide(ctx context.Context, child *corev1.ConfigMap) error {
	if w.bug != leakByApply {
		return w.Create(ctx, child)
	}
	return w.Apply(ctx, corev1ac.ConfigMap(child.Name, child.Namespace), client.FieldOwner("worker"))
}

// fixture is a worker with one Hikawa in its own namespace.
type fixture struct {
	*oracle.Witness
	client client.Client
	hikawa *v1beta1.Hikawa
}

func newFixture(t *testing.T, bug string) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)))
	you, err := client.New(box.Config(), client.Options{Scheme: scheme})
	must(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "oracle-"}}
	must(t, you.Create(t.Context(), namespace))
	journal := trace.New(trace.Options{})
	tap := taps.New(journal, taps.Options{Operator: "worker"})
	manager, err := ctrl.NewManager(tap.RESTConfig(box.Config()), tap.ManagerOptions(ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace.Name: {}}},
	}))
	must(t, err)
	w := &worker{Client: manager.GetClient(), bug: bug, scheme: scheme}
	must(t, ctrl.NewControllerManagedBy(manager).For(&v1beta1.Hikawa{}).
		WithOptions(tap.ControllerOptions(controller.Options{})).Complete(w))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
		must(t, you.Delete(context.WithoutCancel(t.Context()), namespace))
	})
	must(t, tap.AwaitServing(t.Context()))
	s := &fixture{
		Witness: &oracle.Witness{Journal: journal, Reader: you, Loops: map[string]oracle.Prober{"worker": tap}, Off: map[string]bool{}},
		client:  you,
		hikawa:  &v1beta1.Hikawa{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "song"}},
	}
	s.hikawa.Spec.IntervalMillis = 1
	must(t, you.Create(t.Context(), s.hikawa))
	s.awaitPasses(t, 1)
	return s
}

// awaitPasses waits until n reconciles have ended.
func (s *fixture) awaitPasses(t *testing.T, n int) {
	t.Helper()
	s.await(t, func(state *trace.State) bool { return state.Total().Reconciles >= n })
}

// await waits until the journal satisfies a condition.
func (s *fixture) await(t *testing.T, shows func(*trace.State) bool) {
	t.Helper()
	changed, cancel := s.Journal.Subscribe()
	defer cancel()
	timeline := trace.NewTimeline(s.Journal)
	for {
		timeline.Update()
		if shows(timeline.Tip()) {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("the worker does not work")
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func names(found []report.Finding) string {
	var names []string
	for _, f := range found {
		names = append(names, f.Oracle)
	}
	return strings.Join(names, " ")
}

// TestOracles checks that each oracle accepts a correct operator, and finds the bug that it is for.
func TestOracles(t *testing.T) {
	for _, test := range []struct{ bug, says string }{
		{oracle.Panic, "panicked: a bug that panics"},
		{oracle.HotLoop, "wakes itself without end"},
		{oracle.LiveDelete, "deleted ConfigMap song-child in reconcile #1 and made it again in #2"},
		{oracle.Idempotent, "one more reconcile wrote: update ConfigMap song-child"},
	} {
		t.Run(test.bug, func(t *testing.T) {
			if !slices.Contains(format.Oracles, test.bug) {
				t.Errorf("%s is not in format.Oracles: no scenario can switch it off", test.bug)
			}
			s := newFixture(t, test.bug)
			switch test.bug {
			case oracle.HotLoop:
				s.awaitPasses(t, 20)
			case oracle.LiveDelete, oracle.Panic:
				s.awaitPasses(t, 2)
			}
			found := s.Settled(t.Context(), true)
			if len(found) != 1 || found[0].Oracle != test.bug || !strings.Contains(found[0].Message, test.says) {
				t.Errorf("found %+v; want %s: …%s…", found, test.bug, test.says)
			}
			s.Off[test.bug] = true
			if again := s.Settled(t.Context(), true); names(again) == test.bug {
				t.Errorf("found although switched off: %+v", again)
			}
		})
	}
}

func TestWellDone(t *testing.T) {
	s := newFixture(t, "")
	s.Reference = "create ConfigMap=1, delete ConfigMap=0"
	if found := s.Settled(t.Context(), true); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
	must(t, s.client.Delete(t.Context(), s.hikawa))
	if found := s.Cleaned(t.Context()); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

// TestWritesEachTime checks that a single further write is accepted, and that repeated writes are not, even if only one
// a second.
func TestWritesEachTime(t *testing.T) {
	for bug, want := range map[string]string{lateNews: "", clock: oracle.Idempotent} {
		t.Run(bug, func(t *testing.T) {
			s := newFixture(t, bug)
			if found := s.Settled(t.Context(), true); names(found) != want {
				t.Errorf("found %+v, want %q", found, want)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	s := newFixture(t, "")
	s.Reference = "create ConfigMap=2"
	if found := s.Settled(t.Context(), true); names(found) != oracle.Counts || !strings.Contains(found[0].Message, "1 times, the reference says 2") {
		t.Errorf("found %+v", found)
	}
}

func TestObservedGeneration(t *testing.T) {
	s := newFixture(t, oracle.ObservedGeneration)
	if found := s.Settled(t.Context(), true); len(found) > 0 {
		t.Errorf("found %+v before the spec was changed", found)
	}
	must(t, s.client.Get(t.Context(), client.ObjectKeyFromObject(s.hikawa), s.hikawa))
	s.hikawa.Spec.IntervalMillis = 2
	must(t, s.client.Update(t.Context(), s.hikawa))
	s.await(t, func(state *trace.State) bool {
		o := state.Object(trace.Ref{APIVersion: v1beta1.GroupVersion.String(), Kind: "Hikawa", Namespace: s.hikawa.Namespace, Name: s.hikawa.Name})
		return o != nil && o.Generation == 2
	})
	if found := s.Settled(t.Context(), true); names(found) != oracle.ObservedGeneration {
		t.Errorf("found %+v", found)
	}
}

func TestLeak(t *testing.T) {
	sandboxtest.Long(t)
	for _, bug := range []string{oracle.Leak, leakByApply} {
		t.Run(bug, func(t *testing.T) {
			s := newFixture(t, bug)
			must(t, s.client.Delete(t.Context(), s.hikawa))
			found := s.Cleaned(t.Context())
			if names(found) != oracle.Leak || !strings.Contains(found[0].Message, "ConfigMap song-child") {
				t.Errorf("found %+v", found)
			}
		})
	}
}
