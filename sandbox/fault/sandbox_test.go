package fault_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/fault"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// shared is the sandbox of all tests; the first test that needs it starts it.
var shared struct {
	once sync.Once
	lab  *sandbox.Sandbox
	err  error
}

func stopSandbox() {
	if shared.lab != nil {
		if err := shared.lab.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the sandbox:", err)
		}
	}
}

// admin returns an administrator's config.
func admin(tb testing.TB) *rest.Config {
	tb.Helper()
	if _, err := sandbox.FindBinary(); err != nil {
		tb.Skipf("%v; 'make test' builds it", err)
	}
	shared.once.Do(func() {
		shared.lab, shared.err = sandbox.Start(context.WithoutCancel(tb.Context()), sandbox.Options{Ephemeral: true})
	})
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	config := rest.CopyConfig(shared.lab.Config())
	config.QPS = -1
	return config
}

// stage is a namespace with an operator that copies each source ConfigMap to another one.
type stage struct {
	*testing.T
	namespace string
	config    *rest.Config
	client    client.Client
	journal   *trace.Journal
	faults    *fault.Faults
	crashed   chan struct{}

	reconciles atomic.Int64
	finished   atomic.Int64
	mu         sync.Mutex
	errs       []error
	seen       []string // the source's words in the order that the operator saw them
	stop       func()
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, config: admin(t), journal: trace.New(trace.Options{}), crashed: make(chan struct{}, 9)}
	var err error
	if s.client, err = client.New(s.config, client.Options{}); err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "injector-"}}
	if err := s.client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	s.namespace = ns.Name
	s.faults = fault.NewFaults(fault.FaultsOptions{Journal: s.journal, Effects: &effects{
		onCrash: func() { s.crashed <- struct{}{} },
		onTouch: func(ctx context.Context, r schema.GroupVersionResource, namespace, name string, patch []byte) error {
			c, err := dynamic.NewForConfig(s.config)
			if err != nil {
				return err
			}
			_, err = c.Resource(r).Namespace(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	}})
	t.Cleanup(func() {
		s.faults.Close()
		if s.stop != nil {
			s.stop()
		}
	})
	return s
}

// live begins a run of the operator, and ends the one before.
func (s *stage) live() {
	s.Helper()
	if s.stop != nil {
		s.stop()
	}
	g := s.faults.Injector("echo")
	config := rest.CopyConfig(s.config)
	config.Wrap(g.Wrap)
	grace := time.Second
	m, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, GracefulShutdownTimeout: &grace,
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{s.namespace: {}}},
	})
	if err != nil {
		s.Fatal(err)
	}
	err = ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).
		WithOptions(controller.Options{SkipNameValidation: new(true)}).
		Complete(&echo{Client: m.GetClient(), stage: s})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Start(ctx) // a crash looks like any other end
	}()
	s.stop = func() { g.Die(); cancel(); <-done }
}

// echo is the reconciler.
type echo struct {
	client.Client
	stage *stage
}

func (r *echo) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	r.stage.reconciles.Add(1)
	var source, child corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &source); err != nil || source.Labels["role"] != "source" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.stage.saw(source.Data["word"])
	err = r.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: req.Name + "-echo"}, &child)
	switch {
	case apierrors.IsNotFound(err):
		child.Namespace, child.Name, child.Data = req.Namespace, req.Name+"-echo", source.Data
		err = r.Create(ctx, &child)
	case err == nil && child.Data["word"] != source.Data["word"]:
		child.Data = source.Data
		err = r.Update(ctx, &child)
	}
	r.stage.finished.Add(1)
	if err != nil {
		r.stage.mu.Lock()
		r.stage.errs = append(r.stage.errs, err)
		r.stage.mu.Unlock()
	}
	return ctrl.Result{}, err
}

func (s *stage) saw(word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.seen); n == 0 || s.seen[n-1] != word {
		s.seen = append(s.seen, word)
	}
}

func (s *stage) words() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.seen)
}

// failed reports whether a reconcile got a matching error.
func (s *stage) failed(is func(error) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.errs, is)
}

// sing creates the source, or changes its word.
func (s *stage) sing(word string) {
	s.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "song", Labels: map[string]string{"role": "source"}}}
	m.Data = map[string]string{"word": word}
	err := s.client.Create(s.Context(), m)
	if apierrors.IsAlreadyExists(err) {
		err = s.client.Update(s.Context(), m)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// echoed returns the word of the echo; empty if there is none.
func (s *stage) echoed() string {
	s.Helper()
	var m corev1.ConfigMap
	err := s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: "song-echo"}, &m)
	if client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	return m.Data["word"]
}

func (s *stage) arm(name string, spec v1alpha1.FaultSpec) {
	s.Helper()
	if err := s.faults.Arm(name, spec); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) await(what string, is func() bool) {
	s.Helper()
	deadline := time.After(patience)
	for !is() {
		select {
		case <-deadline:
			for _, e := range s.journal.Since(0) {
				s.Logf("%s %s %s %s %s", e.Kind, e.Reason, e.Verb, e.Message, e.Error)
			}
			s.Fatalf("waited in vain for: %s; the operator saw %s", what, s.words())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *stage) injected(name string) bool {
	st, _ := s.faults.Status(name)
	return st.Times > 0
}

func onEcho(verbs ...string) *v1alpha1.FaultMatch {
	return &v1alpha1.FaultMatch{Verbs: verbs, Kind: "ConfigMap", Name: "*-echo"}
}

func TestSandboxCrash(t *testing.T) {
	for _, when := range []v1alpha1.When{v1alpha1.Before, v1alpha1.After} {
		s := newStage(t)
		s.arm("f", v1alpha1.FaultSpec{Match: onEcho("create"), Crash: &v1alpha1.CrashFault{When: when}})
		s.live()
		s.sing("Zun")
		<-s.crashed
		if n := s.finished.Load(); n != 0 {
			t.Errorf("%s: %d reconciles went on", when, n)
		}
		if got, want := s.echoed(), map[v1alpha1.When]string{v1alpha1.After: "Zun"}[when]; got != want {
			t.Errorf("%s: the echo is %q, want %q", when, got, want)
		}
		s.sing("Doko")
		s.live()
		s.await("the echo", func() bool { return s.echoed() == "Doko" })
		st, _ := s.faults.Status("f")
		if want := "create ConfigMap " + s.namespace + "/song-echo in a reconcile"; st.Message != want || st.Times != 1 || st.Matched != 1 {
			t.Errorf("%s: %+v", when, st)
		}
	}
}

func TestSandboxLostReply(t *testing.T) {
	s := newStage(t)
	s.arm("f", v1alpha1.FaultSpec{Match: onEcho("create"), API: &v1alpha1.APIFault{Reply: v1alpha1.ReplyLost}})
	s.live()
	s.sing("Zun")
	s.await("the error", func() bool {
		return s.failed(func(err error) bool { return err.Error() != "" && !apierrors.IsAlreadyExists(err) })
	})
	if got := s.echoed(); got != "Zun" {
		t.Errorf("the echo is %q", got)
	}
	s.sing("Doko")
	s.await("the echo", func() bool { return s.echoed() == "Doko" })
}

func TestSandboxConflict(t *testing.T) {
	s := newStage(t)
	s.arm("f", v1alpha1.FaultSpec{Match: onEcho(), Conflict: &v1alpha1.ConflictFault{}})
	s.live()
	s.sing("Zun")
	s.await("the echo", func() bool { return s.echoed() == "Zun" })
	s.sing("Doko")
	s.await("the echo", func() bool { return s.echoed() == "Doko" })
	if !s.failed(apierrors.IsConflict) {
		t.Error("there was no conflict")
	}
	st, _ := s.faults.Status("f")
	if st.Times != 1 || st.Matched != 1 {
		t.Errorf("%+v", st)
	}
}

// TestSandboxField checks that the injector reads from the API server what an update and an event change.
func TestSandboxField(t *testing.T) {
	s := newStage(t)
	s.live()
	s.sing("Zun")
	s.await("the echo", func() bool { return s.echoed() == "Zun" })
	m := onEcho("update")
	m.Field = "data.word"
	s.arm("update", v1alpha1.FaultSpec{Match: m, API: &v1alpha1.APIFault{Reply: v1alpha1.ReplyForbidden}})
	s.arm("event", v1alpha1.FaultSpec{
		Match: &v1alpha1.FaultMatch{Verbs: []string{"MODIFIED"}, Kind: "configmaps", Name: "song", Field: "data.word"},
		Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchCoalesce},
	})
	before := s.reconciles.Load()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`))
	song := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "song"}}
	if err := s.client.Patch(t.Context(), song, patch); err != nil {
		t.Fatal(err)
	}
	s.await("the event that does not change the word", func() bool { return s.reconciles.Load() > before })
	s.sing("Doko")
	s.await("the event that is left out", func() bool { return s.injected("event") })
	if err := s.client.Patch(t.Context(), song, patch); err != nil {
		t.Fatal(err)
	}
	s.await("the next event", func() bool { return s.failed(apierrors.IsForbidden) })
	s.await("the echo", func() bool { return s.echoed() == "Doko" })
}

func onSong(action v1alpha1.WatchAction) v1alpha1.FaultSpec {
	return v1alpha1.FaultSpec{
		Match: &v1alpha1.FaultMatch{Verbs: []string{"MODIFIED"}, Kind: "ConfigMap", Name: "song"},
		Watch: &v1alpha1.WatchFault{Action: action},
	}
}

func TestSandboxWatches(t *testing.T) {
	for _, action := range []v1alpha1.WatchAction{v1alpha1.WatchCoalesce, v1alpha1.WatchDelay, v1alpha1.WatchCut, v1alpha1.WatchGone} {
		s := newStage(t)
		s.live()
		s.sing("Zun")
		s.await("the echo", func() bool { return s.echoed() == "Zun" })
		s.arm("f", onSong(action))
		s.sing("Zunzun")
		s.await("the fault", func() bool { return s.injected("f") })
		wanted := "[Zun Doko]"
		switch action {
		case v1alpha1.WatchDelay:
			s.sing("Doko")
			if got := s.words(); got != "[Zun]" {
				t.Errorf("the operator saw %s although its watch is held up", got)
			}
			s.faults.Release("f")
			s.await("the end", func() bool { return s.echoed() == "Doko" })
			continue // events may merge in the queue
		case v1alpha1.WatchCut, v1alpha1.WatchGone:
			wanted = "[Zun Zunzun Doko]"
			s.await("the event before the cut", func() bool { return s.echoed() == "Zunzun" })
		}
		s.sing("Doko")
		s.await("the end", func() bool { return s.echoed() == "Doko" })
		if got := s.words(); got != wanted {
			t.Errorf("%s: the operator saw %s, want %s", action, got, wanted)
		}
	}
}

// TestSandboxStale restarts the operator with what was before an event that it has acted upon.
func TestSandboxStale(t *testing.T) {
	s := newStage(t)
	s.live()
	s.sing("Zun")
	s.await("the echo", func() bool { return s.echoed() == "Zun" })
	s.arm("f", v1alpha1.FaultSpec{
		Match: &v1alpha1.FaultMatch{Verbs: []string{"MODIFIED"}, Kind: "ConfigMap", Name: "song"}, Stale: &v1alpha1.StaleFault{Restart: true},
	})
	s.sing("Doko")
	<-s.crashed
	if got := s.echoed(); got != "Doko" {
		t.Errorf("the echo is %q before the restart", got)
	}
	s.live()
	s.await("the word that was", func() bool { return s.words() == "[Zun Doko Zun]" })
	s.faults.Release("f")
	s.await("the word that is", func() bool { return s.words() == "[Zun Doko Zun Doko]" })
}
