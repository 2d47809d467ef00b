package lab_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/zundoko"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func TestLoadServesAndSings(t *testing.T) {
	w := open(t)
	w.load(song())
	o := w.operator()
	if !running(o) || o.Status.Restarts != 0 || o.Status.Version != "v1" || strings.Join(o.Status.Controllers, " ") != "hikawa" {
		t.Errorf("loaded is %+v", o)
	}
	if w.lab.Taps("zundoko") == nil || w.lab.Taps("nobody") != nil || w.lab.Err("zundoko") != nil {
		t.Error("the lab does not tell what is loaded")
	}
	w.sing("hikawa")
	w.sungOnce()
	// Loading it again unchanged has no effect.
	w.load(song())
	if again := w.operator(); again.Generation != 1 || again.Status.Restarts != 0 {
		t.Errorf("after the same spec: %+v", again)
	}
}

// TestVariant checks that another variant comes with its own CRDs, without a status subresource, and that these go with
// it.
func TestVariant(t *testing.T) {
	w := open(t)
	w.load(song())
	for i, variant := range []zundoko.Variant{zundoko.Classic, zundoko.Hardened} {
		w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Variant = string(variant) })
		w.awaitOperator("another run", restarted(int32(i+1)))
		crd := &apiextensionsv1.CustomResourceDefinition{}
		w.must(crdClient(t).Get(t.Context(), client.ObjectKey{Name: "hikawas.zundokokiyoshi.kaitoy.github.com"}, crd))
		sub := crd.Spec.Versions[0].Subresources
		if has := sub != nil && sub.Status != nil; has != (variant == zundoko.Hardened) {
			t.Errorf("%s: the CRD has a status subresource: %v", variant, has)
		}
		w.sing(string(variant))
	}
}

func crdClient(t *testing.T) client.Client {
	t.Helper()
	scheme := as(t, "test").Scheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(rest.CopyConfig(box.Config()), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParameters(t *testing.T) {
	w := open(t)
	w.load(song())
	w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Parameters["song"] = "Doko,Zun,Zun,Zun,Zun,Doko" })
	w.awaitOperator("another run", restarted(1))
	w.sing("six")
	if said := w.count(writes(trace.VerbCreate, "Zundoko")); said != 6 {
		t.Errorf("%d words were said, want 6", said)
	}
}

func TestPaused(t *testing.T) {
	w := open(t)
	w.load(song())
	w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Paused = true })
	w.awaitOperator("the pause", func(o *v1alpha1.Operator) bool {
		return o.Status.State == v1alpha1.OperatorPaused && o.Status.ObservedGeneration == o.Generation && o.Status.Restarts == 0
	})
	w.ask("waits", time.Millisecond)
	w.eventually("the key to be ready", func() error { return unless(w.readyKeys() > 0, "no key is ready") })
	w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Parameters["seed"] = "3" })
	w.awaitOperator("another run, as paused", func(o *v1alpha1.Operator) bool {
		return o.Status.State == v1alpha1.OperatorPaused && o.Status.ObservedGeneration == o.Generation && o.Status.Restarts == 1
	})
	w.eventually("the key to be ready again", func() error { return unless(w.readyKeys() > 0, "no key is ready") })
	if n := w.reconciles(); n != 0 {
		t.Errorf("%d reconciles began although it is paused", n)
	}
	w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Paused = false })
	w.awaitOperator("it to go on", restarted(1))
	w.awaitSung("waits")
}

// TestPauseEndsWithTheRun checks that a pause of the spec ends with a spec without it, even if that needs another run.
func TestPauseEndsWithTheRun(t *testing.T) {
	w := open(t)
	spec := song()
	spec.Paused = true
	w.load(spec)
	w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Paused, s.Parameters["seed"] = false, "3" })
	w.awaitOperator("another run, not paused", restarted(1))
	w.sing("hikawa")
}

// TestPauseOfAPersonStays checks that a pause by key is independent of the spec and survives restarts.
func TestPauseOfAPersonStays(t *testing.T) {
	w := open(t)
	w.load(song())
	w.lab.Taps("zundoko").Pause()
	w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Parameters["seed"] = "3" })
	w.awaitOperator("another run, as paused", func(o *v1alpha1.Operator) bool {
		return o.Status.State == v1alpha1.OperatorPaused && o.Status.ObservedGeneration == o.Generation
	})
	w.lab.Taps("zundoko").Resume()
	w.awaitOperator("it to go on", running)
}

func unless(ok bool, message string) error {
	if ok {
		return nil
	}
	return errors.New(message)
}

// reconciles counts the reconciles of the namespace that have begun.
func (w *fixture) reconciles() int {
	return w.count(func(e *trace.Event) bool { return e.Kind == trace.KindStart && e.Key.Namespace == w.namespace })
}

// readyKeys counts the keys of the namespace that a worker could take now.
func (w *fixture) readyKeys() (n int) {
	timeline := trace.NewTimeline(w.lab.Journal())
	timeline.Update()
	for _, item := range timeline.Tip().Queue() {
		if item.Ready && item.Key.Namespace == w.namespace {
			n++
		}
	}
	return n
}

func TestRefusedOperators(t *testing.T) {
	w := open(t)
	for _, test := range []struct {
		name, says string
		spec       v1alpha1.OperatorSpec
	}{
		{"nobody", "zundoko", song()},
		{"zundoko", `has no parameter "tempo"`, song("tempo", "presto")},
		{"zundoko", "variant", v1alpha1.OperatorSpec{Variant: "modern"}},
		{"zundoko", "seed", song("seed", "many")},
	} {
		_, err := w.lab.Load(t.Context(), test.name, test.spec)
		if err == nil || !strings.Contains(err.Error(), test.name) {
			t.Errorf("Load %s %+v: %v", test.name, test.spec, err)
		}
		o := &v1alpha1.Operator{ObjectMeta: metav1.ObjectMeta{Name: test.name}, Spec: test.spec}
		err = w.you.Create(t.Context(), o)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("create %s %+v: %v; want …%s…", test.name, test.spec, err, test.says)
		}
	}
	var all v1alpha1.OperatorList
	w.must(w.you.List(t.Context(), &all))
	if len(all.Items) != 0 {
		t.Errorf("there are %+v", all.Items)
	}
}

func TestDeleteStops(t *testing.T) {
	w := open(t)
	w.must(w.you.Create(t.Context(), &v1alpha1.Operator{ObjectMeta: metav1.ObjectMeta{Name: "zundoko"}, Spec: song()}))
	w.awaitOperator("it to run", running)
	w.must(w.you.Delete(t.Context(), w.operator()))
	err := w.you.Get(t.Context(), client.ObjectKey{Name: "zundoko"}, &v1alpha1.Operator{})
	if !apierrors.IsNotFound(err) || w.lab.Taps("zundoko") != nil {
		t.Errorf("deleted, it is %v", err)
	}
	n := w.count(func(e *trace.Event) bool { return e.Operator == "zundoko" })
	w.ask("nobody-sings", time.Millisecond)
	w.must(w.you.Create(t.Context(), &v1alpha1.Operator{ObjectMeta: metav1.ObjectMeta{Name: "zundoko"}, Spec: song()}))
	if o := w.awaitOperator("it to run again", running); o.Status.Restarts != 0 || o.Generation != 1 {
		t.Errorf("made again, it is %+v", o)
	}
	w.awaitSung("nobody-sings")
	if now := w.count(func(e *trace.Event) bool { return e.Operator == "zundoko" }); now <= n {
		t.Error("the second one is not in the journal")
	}
}

// TestFailed checks that an operator that cannot start says why, and that another spec makes it try again.
func TestFailed(t *testing.T) {
	w := open(t)
	w.load(song())
	// The operator's namespace is being deleted and kept by a finalizer: no grants can be created in it.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "zundoko-operator-system"}}
	stuck := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "stuck", Finalizers: []string{"example.com/stuck"}}}
	w.must(w.you.Create(t.Context(), stuck))
	w.must(w.you.Delete(t.Context(), namespace))
	w.eventually("what is in the namespace to be deleted", func() error {
		var accounts corev1.ServiceAccountList
		if err := w.you.List(t.Context(), &accounts, client.InNamespace(namespace.Name)); err != nil {
			return err
		}
		return unless(len(accounts.Items) == 0, "the service account is still there")
	})
	_, err := w.lab.Load(t.Context(), "zundoko", song("seed", "3"))
	if err == nil || !strings.Contains(err.Error(), "operator zundoko: grant the operator its permissions") {
		t.Errorf("Load: %v", err)
	}
	o := w.awaitOperator("it to fail", func(o *v1alpha1.Operator) bool { return o.Status.State == v1alpha1.OperatorFailed })
	if !strings.Contains(o.Status.Message, "being terminated") || o.Status.ObservedGeneration != o.Generation {
		t.Errorf("its status is %+v", o.Status)
	}
	if err := w.lab.Err("zundoko"); err == nil || !strings.Contains(err.Error(), o.Status.Message) {
		t.Errorf("Err: %v", err)
	}
	select {
	case <-w.lab.Failed("zundoko"):
	default:
		t.Error("Failed is not closed")
	}
	// The namespace controller may mark it as deleted at the same time, which does not conflict with a patch.
	w.must(w.you.Patch(t.Context(), stuck, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	w.eventually("the namespace to be gone", func() error {
		return unless(apierrors.IsNotFound(w.you.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace)), "it is there")
	})
	w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Parameters["seed"] = "4" })
	w.awaitOperator("another try", running)
	w.sing("hikawa")
}

// TestCRDsAreBroughtBack checks that an operator is not started without its CRDs, even if somebody else deleted them.
func TestCRDsAreBroughtBack(t *testing.T) {
	w := open(t)
	w.load(song())
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "kiyoshis.zundokokiyoshi.kaitoy.github.com"}}
	c := crdClient(t)
	w.must(c.Delete(t.Context(), crd))
	w.eventually("the CRD to be gone", func() error {
		return unless(apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)), "it is there")
	})
	w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Parameters["seed"] = "3" })
	w.awaitOperator("another run", restarted(1))
	w.sing("hikawa")
}

// TestClassicSleeps checks that an operator that sleeps in Reconcile does not delay its restart or end.
func TestClassicSleeps(t *testing.T) {
	w := open(t)
	spec := song()
	spec.Variant = string(zundoko.Classic)
	w.load(spec)
	w.ask("slow", time.Hour)
	w.eventually("it to sleep", func() error { return unless(w.count(writes(trace.VerbUpdate, "Hikawa")) > 0, "it has not written yet") })
	w.arm("crash", v1alpha1.FaultSpec{Operator: "zundoko", Crash: &v1alpha1.CrashFault{}})
	w.awaitOperator("the run after the crash", restarted(1))
	w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Parameters["seed"] = "3" })
	w.awaitOperator("the run after the change", restarted(2))
	w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Variant = "" }) // the next test needs the other CRDs
	w.awaitOperator("the other variant", restarted(3))
	w.must(w.you.Delete(t.Context(), w.operator()))
}

func TestBeginForgets(t *testing.T) {
	w := open(t)
	w.load(song())
	w.sing("hikawa")
	w.arm("never", v1alpha1.FaultSpec{Crash: &v1alpha1.CrashFault{}, Match: &v1alpha1.FaultMatch{Name: "nobody"}})
	w.loop("hikawa", quiet)
	before := w.lab.Journal()
	journal := w.lab.NewJournal()
	w.must(w.lab.Begin(t.Context(), journal))
	if w.lab.Journal() != journal || len(journal.Since(0)) > 0 || w.lab.Taps("zundoko") != nil {
		t.Error("the second epoch is not empty")
	}
	for _, list := range []client.ObjectList{&v1alpha1.OperatorList{}, &v1alpha1.FaultList{}, &v1alpha1.LoopList{}} {
		w.eventually("the API to forget", func() error {
			if err := w.you.List(t.Context(), list); err != nil {
				return err
			}
			return unless(countOf(list) == 0, "something is left")
		})
	}
	last := before.Stats().Events
	w.load(song())
	w.sing("again")
	if w.count(writes(trace.VerbCreate, "Kiyoshi")) == 0 && w.count(writes(trace.VerbApply, "Kiyoshi")) == 0 {
		t.Error("the second epoch is not in the second journal")
	}
	if now := before.Stats().Events; now != last {
		t.Errorf("%d events came into the journal of the first epoch afterwards", now-last)
	}
}

func countOf(list client.ObjectList) int {
	switch l := list.(type) {
	case *v1alpha1.OperatorList:
		return len(l.Items)
	case *v1alpha1.FaultList:
		return len(l.Items)
	case *v1alpha1.LoopList:
		return len(l.Items)
	}
	return -1
}

// TestCloseLeavesNoAPI checks that discovery does not find a closed lab. Until then stopped operators are shown.
func TestCloseLeavesNoAPI(t *testing.T) {
	l, err := lab.Open(t.Context(), lab.Options{Cluster: box, Installed: crds})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Load(t.Context(), "zundoko", song()); err != nil {
		t.Fatal(err)
	}
	you := as(t, "kubectl/v1 (test)")
	kill := &v1alpha1.Fault{ObjectMeta: metav1.ObjectMeta{Name: "kill"}, Spec: v1alpha1.FaultSpec{ControlPlane: &v1alpha1.ControlPlaneFault{Program: "etcd"}}}
	if err := you.Create(t.Context(), kill); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "did not start this control plane") {
		t.Errorf("a control plane that is not the lab's is killed: %v", err)
	}
	if err := l.Stop(); err != nil {
		t.Fatal(err)
	}
	o := &v1alpha1.Operator{}
	if err := you.Get(t.Context(), client.ObjectKey{Name: "zundoko"}, o); err != nil || o.Status.State != v1alpha1.OperatorStopped {
		t.Errorf("stopped, it is %+v (%v)", o.Status, err)
	}
	if _, err := l.Load(t.Context(), "zundoko", song("seed", "3")); err == nil || !strings.Contains(err.Error(), "was stopped") {
		t.Errorf("loaded after the end: %v", err)
	}
	if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	err = you.Get(t.Context(), client.ObjectKey{Name: "v1alpha1.operator-lab.dev"}, apiService())
	if !apierrors.IsNotFound(err) {
		t.Errorf("the APIService: %v; want it gone", err)
	}
}

func apiService() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.APIVersion, o.Kind = "apiregistration.k8s.io/v1", "APIService"
	return o
}
