package lab_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/operators/zundoko"
	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// box is the sandbox of all tests of the package, and listener the lab that currently gets its events.
var (
	box      *sandbox.Sandbox
	listener lab.Listener
	// crds has the variant whose CRDs the sandbox has.
	crds = map[string]string{"zundoko": string(zundoko.Hardened)}
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(withSandbox(m))
}

func withSandbox(m *testing.M) int {
	if _, err := sandbox.FindBinary(); err != nil {
		fmt.Fprintf(os.Stderr, "skipping the tests of lab: %v; 'make test' builds it\n", err)
		return 0
	}
	all, err := zundoko.CRDs(zundoko.Hardened)
	if err == nil {
		o := sandbox.Options{Ephemeral: true, CRDs: all, Operators: []string{"zundoko"}, Nodes: 2}
		listener.Listen(&o)
		box, err = sandbox.Start(context.Background(), o) //nolint:forbidigo // there is no test yet
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = box.Stop() }()
	return m.Run()
}

// fixture is a lab in the sandbox, and a namespace for the test.
type fixture struct {
	*testing.T
	lab       *lab.Lab
	namespace string
	// you is the client of a person with kubectl: an administrator.
	you client.Client
}

// open opens a lab that closes with the test.
func open(t *testing.T) *fixture {
	t.Helper()
	return openWith(t, lab.Options{Cluster: box, Kill: box.Kill, Machines: box.Nodes(), Installed: crds, Seed: 7, Version: "v1"})
}

func openWith(t *testing.T, o lab.Options) *fixture {
	t.Helper()
	l, err := lab.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	listener.Set(l)
	w := &fixture{T: t, lab: l, you: as(t, "kubectl/v1 (test)")}
	t.Cleanup(func() {
		if t.Failed() {
			w.dump()
		}
		if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	w.namespace = w.newNamespace()
	return w
}

func (w *fixture) newNamespace() string {
	w.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "lab-"}}
	w.must(w.you.Create(w.Context(), ns))
	w.Cleanup(func() {
		if err := w.you.Delete(context.WithoutCancel(w.Context()), ns); err != nil {
			w.Error(err)
		}
	})
	return ns.Name
}

// as returns an administrator's client with a user agent.
func as(tb testing.TB, agent string) client.Client {
	tb.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			tb.Fatal(err)
		}
	}
	config := rest.CopyConfig(box.Config())
	config.QPS, config.UserAgent = -1, agent
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func (w *fixture) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// eventually waits until a condition holds, and fails with its last error.
func (w *fixture) eventually(what string, condition func() error) {
	w.Helper()
	sandboxtest.Eventually(w, what, condition)
}

// dump prints the state of the operators and the end of the journal, for a failed test.
func (w *fixture) dump() {
	for _, o := range w.lab.Operators() {
		w.Logf("operator %s: %+v", o.Name, o.Status)
	}
	events := w.lab.Journal().Since(0)
	for _, e := range events[max(0, len(events)-60):] {
		w.Logf("%4d %-8s #%-3d %s %s %s %s %s %s", e.Seq, e.Kind, e.Reconcile, e.Actor, e.Verb, e.Object, e.Reason, e.Message, e.Error)
	}
}

// song returns a spec with a short song, with more parameters as pairs of name and value.
func song(more ...string) v1alpha1.OperatorSpec {
	spec := v1alpha1.OperatorSpec{Parameters: map[string]string{"song": "Zun,Zun,Zun,Zun,Doko"}}
	for pair := range slices.Chunk(more, 2) {
		spec.Parameters[pair[0]] = pair[1]
	}
	return spec
}

// load loads zundoko with the Go API.
func (w *fixture) load(spec v1alpha1.OperatorSpec) {
	w.Helper()
	_, err := w.lab.Load(w.Context(), "zundoko", spec)
	w.must(err)
}

// operator reads the Operator object of zundoko.
func (w *fixture) operator() *v1alpha1.Operator {
	w.Helper()
	o := &v1alpha1.Operator{}
	w.must(w.you.Get(w.Context(), client.ObjectKey{Name: "zundoko"}, o))
	return o
}

// awaitOperator waits until zundoko's status reflects its newest spec and satisfies a condition.
func (w *fixture) awaitOperator(what string, fits func(*v1alpha1.Operator) bool) *v1alpha1.Operator {
	w.Helper()
	o := &v1alpha1.Operator{}
	w.eventually(what, func() error {
		if err := w.you.Get(w.Context(), client.ObjectKey{Name: "zundoko"}, o); err != nil {
			return err
		}
		if !fits(o) {
			return fmt.Errorf("generation %d, spec %+v, status %+v", o.Generation, o.Spec, o.Status)
		}
		return nil
	})
	return o
}

// running reports whether an operator runs with its newest spec.
func running(o *v1alpha1.Operator) bool {
	return o.Status.State == v1alpha1.OperatorRunning && o.Status.ObservedGeneration == o.Generation
}

// restarted reports whether an operator runs with its newest spec after n restarts.
func restarted(n int32) func(*v1alpha1.Operator) bool {
	return func(o *v1alpha1.Operator) bool { return running(o) && o.Status.Restarts == n }
}

// changeOperator changes the spec with the API; it retries, because the lab may change the status at the same time.
func (w *fixture) changeOperator(change func(*v1alpha1.OperatorSpec)) {
	w.Helper()
	w.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		o := w.operator()
		change(&o.Spec)
		return w.you.Update(w.Context(), o)
	}))
}

// ask creates a Hikawa, which requests a song.
func (w *fixture) ask(name string, interval time.Duration) {
	w.Helper()
	hikawa := &v1beta1.Hikawa{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	hikawa.Spec.IntervalMillis = interval.Milliseconds()
	w.must(w.you.Create(w.Context(), hikawa))
}

// awaitSung waits for the end of a song.
func (w *fixture) awaitSung(name string) {
	w.Helper()
	hikawa := &v1beta1.Hikawa{}
	w.eventually("the end of the song", func() error {
		err := w.you.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, hikawa)
		if err == nil && !hikawa.Status.Kiyoshied {
			err = fmt.Errorf("%d words were said", hikawa.Status.NumZundokosSaid)
		}
		return err
	})
}

// sing requests a song and waits for its end.
func (w *fixture) sing(name string) {
	w.Helper()
	w.ask(name, time.Millisecond)
	w.awaitSung(name)
}

// loop returns the Loop object of a Hikawa once it satisfies a condition.
func (w *fixture) loop(name string, fits func(*v1alpha1.LoopStatus) bool) *v1alpha1.Loop {
	w.Helper()
	l := &v1alpha1.Loop{}
	w.eventually("the loop of "+name, func() error {
		err := w.you.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: lab.LoopName("hikawa", name)}, l)
		if err == nil && !fits(&l.Status) {
			err = fmt.Errorf("it is %+v", l.Status)
		}
		return err
	})
	return l
}

func quiet(s *v1alpha1.LoopStatus) bool { return s.Quiet }

// arm creates a Fault with the API.
func (w *fixture) arm(name string, spec v1alpha1.FaultSpec) *v1alpha1.Fault {
	w.Helper()
	f := w.fault(name, spec)
	w.must(w.you.Create(w.Context(), f))
	return f
}

// fault returns a Fault to create.
func (w *fixture) fault(name string, spec v1alpha1.FaultSpec) *v1alpha1.Fault {
	if spec.Match != nil { // an earlier test's song may still run in its namespace
		spec.Match.Namespace = w.namespace
	}
	return &v1alpha1.Fault{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + name}, Spec: spec}
}

// awaitFault waits until the status of a fault satisfies a condition.
func (w *fixture) awaitFault(f *v1alpha1.Fault, what string, fits func(*v1alpha1.FaultStatus) bool) {
	w.Helper()
	w.eventually(what, func() error {
		err := w.you.Get(w.Context(), client.ObjectKeyFromObject(f), f)
		if err == nil && !fits(&f.Status) {
			err = fmt.Errorf("it is %+v", f.Status)
		}
		return err
	})
}

func injected(s *v1alpha1.FaultStatus) bool { return s.Phase == v1alpha1.FaultInjected }

// count counts events of the journal.
func (w *fixture) count(match func(*trace.Event) bool) (n int) {
	for _, e := range w.lab.Journal().Since(0) {
		if match(e) {
			n++
		}
	}
	return n
}

// writes matches zundoko's successful writes of a kind with a verb.
func writes(verb, kind string) func(*trace.Event) bool {
	return func(e *trace.Event) bool {
		return e.Kind == trace.KindCall && e.Operator == "zundoko" && e.Verb == verb && e.Object.Kind == kind && e.Error == "" && e.Via == ""
	}
}

// sungOnce checks for the five words and the one Kiyoshi of a single song.
func (w *fixture) sungOnce() {
	w.Helper()
	var words v1beta1.ZundokoList
	var kiyoshis v1beta1.KiyoshiList
	w.must(w.you.List(w.Context(), &words, client.InNamespace(w.namespace)))
	w.must(w.you.List(w.Context(), &kiyoshis, client.InNamespace(w.namespace)))
	if len(words.Items) != 5 || len(kiyoshis.Items) != 1 {
		w.Errorf("the song has %d words and %d Kiyoshis, want 5 and 1", len(words.Items), len(kiyoshis.Items))
	}
}
