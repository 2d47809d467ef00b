package labapi_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

func conditions(kind string) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Reason: kind, LastTransitionTime: metav1.Now()}}
}

func client(tb testing.TB, config *rest.Config, resource string) dynamic.NamespaceableResourceInterface {
	tb.Helper()
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		tb.Fatal(err)
	}
	return c.Resource(v1alpha1.GroupVersion.WithResource(resource))
}

func newFault(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Fault",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"crash": map[string]any{}},
	}}
}

// next returns the next event other than a bookmark, as "TYPE name".
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	for e := range w.ResultChan() {
		if e.Type == watch.Bookmark {
			continue
		}
		if o, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Error {
			return string(e.Type) + " " + o.GetName()
		}
		return fmt.Sprint(e.Type, " ", apierrors.FromObject(e.Object))
	}
	t.Fatal("the watch ended")
	return ""
}

func expect(t *testing.T, w watch.Interface, events ...string) {
	t.Helper()
	for _, want := range events {
		if got := next(t, w); got != want {
			t.Errorf("the event is %q, not %q", got, want)
		}
	}
}

func TestWatchGoesOnFromAVersion(t *testing.T) {
	l := newLab()
	serve(t, l)
	faults := client(t, cluster.Config(), "faults")
	first, err := faults.Create(t.Context(), newFault("first"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := faults.Create(t.Context(), newFault("second"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	l.phase("first", v1alpha1.FaultInjected)
	list, err := faults.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if err := faults.Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	watching := func(o metav1.ListOptions) watch.Interface {
		t.Helper()
		w, err := faults.Watch(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		return w
	}
	expect(t, watching(metav1.ListOptions{ResourceVersion: first.GetResourceVersion()}), "ADDED second", "MODIFIED first", "DELETED first")
	expect(t, watching(metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}), "DELETED first")
	expect(t, watching(metav1.ListOptions{}), "ADDED second")
	expect(t, watching(metav1.ListOptions{ResourceVersion: "0", FieldSelector: "metadata.name=second"}), "ADDED second")
	if got := next(t, watching(metav1.ListOptions{ResourceVersion: "12"})); !apierrors.IsResourceExpired(expired(got)) {
		t.Errorf("an old version gives %q", got)
	}
	future, err := strconv.ParseInt(list.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	_, err = faults.List(t.Context(), metav1.ListOptions{ResourceVersion: strconv.FormatInt(future+1000, 10)})
	if !apierrors.IsTimeout(err) {
		t.Errorf("a version to come gives %v", err)
	}
}

// expired returns the error of a printed event.
func expired(event string) error {
	if event == "" || event[:5] != "ERROR" {
		return nil
	}
	return apierrors.NewResourceExpired(event)
}

func TestWatchForgets(t *testing.T) {
	l := newLab()
	serve(t, l)
	operators := client(t, cluster.Config(), "operators")
	list, err := operators.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1100 { // more than are remembered; each is noticed because it is read
		l.change(func() {
			o := l.operators["zundoko"]
			o.Status.Restarts = int32(i + 1)
			l.operators["zundoko"] = o
		})
		if _, err := operators.Get(t.Context(), "zundoko", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w, err := operators.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	e := <-w.ResultChan()
	if e.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
		t.Errorf("the first event is %v", e)
	}
}

func TestWatchOfASelection(t *testing.T) {
	serve(t, newLab())
	faults := client(t, cluster.Config(), "faults")
	w, err := faults.Watch(t.Context(), metav1.ListOptions{LabelSelector: "chosen"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := faults.Create(t.Context(), newFault("selected"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, patch := range []string{`{"chosen":"1"}`, `{"chosen":"2"}`, `{"chosen":null}`, `{"chosen":"3"}`} {
		merge := []byte(`{"metadata":{"labels":` + patch + `}}`)
		if _, err := faults.Patch(t.Context(), "selected", types.MergePatchType, merge, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := faults.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "chosen"}); err != nil {
		t.Fatal(err)
	}
	expect(t, w, "ADDED selected", "MODIFIED selected", "DELETED selected", "ADDED selected", "DELETED selected")
}

func TestWatchList(t *testing.T) {
	l := newLab()
	l.loops = []v1alpha1.Loop{loop("default", "a", "zundoko"), loop("default", "b", "zundoko"), loop("kube-system", "c", "zundoko")}
	serve(t, l)
	yes := true
	w, err := client(t, cluster.Config(), "loops").Namespace("default").Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	expectAll := []string{"ADDED hikawa.a", "ADDED hikawa.b"}
	for _, want := range expectAll {
		e := <-w.ResultChan()
		if got := string(e.Type) + " " + e.Object.(*unstructured.Unstructured).GetName(); got != want {
			t.Errorf("the event is %q, not %q", got, want)
		}
	}
	e := <-w.ResultChan()
	mark, ok := e.Object.(*unstructured.Unstructured)
	if !ok || e.Type != watch.Bookmark || mark.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" || mark.GetResourceVersion() == "" {
		t.Errorf("the initial events end with %v", e)
	}
	l.change(func() { l.loops = l.loops[1:] })
	expect(t, w, "DELETED hikawa.a")
}

func TestInformer(t *testing.T) {
	l := newLab()
	l.loops = []v1alpha1.Loop{loop("default", "informed", "zundoko")}
	serve(t, l)
	c, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	factory := dynamicinformer.NewDynamicSharedInformerFactory(c, 0)
	lister := factory.ForResource(v1alpha1.GroupVersion.WithResource("loops")).Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	l.change(func() { l.loops[0].Status.Reconciles = 7 })
	sandboxtest.Eventually(t, "the informer to see it", func(context.Context) error {
		o, err := lister.ByNamespace("default").Get("hikawa.informed")
		if err != nil {
			return err
		}
		n, _, _ := unstructured.NestedInt64(o.(*unstructured.Unstructured).Object, "status", "reconciles")
		if n != 7 {
			return fmt.Errorf("it sees %d", n)
		}
		return nil
	})
	cancel()
	factory.Shutdown()
}

func TestReadsSeeWhatIsSoNow(t *testing.T) {
	l := newLab()
	l.loops = []v1alpha1.Loop{loop("default", "fresh", "zundoko")}
	serve(t, l)
	loops := client(t, cluster.Config(), "loops").Namespace("default")
	last := ""
	for i := range 20 {
		l.change(func() { l.loops[0].Status.Reconciles = int64(100 + i) })
		o, err := loops.Get(t.Context(), "hikawa.fresh", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n, _, _ := unstructured.NestedInt64(o.Object, "status", "reconciles"); n != int64(100+i) {
			t.Errorf("it reads %d, not %d", n, 100+i)
		}
		if o.GetResourceVersion() == last {
			t.Error("the version is the same")
		}
		last = o.GetResourceVersion()
	}
	again, err := loops.Get(t.Context(), "hikawa.fresh", metav1.GetOptions{})
	if err != nil || again.GetResourceVersion() != last {
		t.Errorf("nothing changed, and the version is %s after %s: %v", again.GetResourceVersion(), last, err)
	}
}

func TestWrites(t *testing.T) {
	l := newLab()
	serve(t, l)
	faults := client(t, cluster.Config(), "faults")

	t.Run("generated name", func(t *testing.T) {
		o := newFault("")
		o.SetGenerateName("generated-")
		got, err := faults.Create(t.Context(), o, metav1.CreateOptions{})
		if err != nil || len(got.GetName()) <= len("generated-") || got.GetUID() == "" {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("status is not the writer's", func(t *testing.T) {
		o := newFault("status")
		o.Object["status"] = map[string]any{"phase": "Expired", "times": int64(7), "matched": int64(7)}
		for _, write := range []func() (*unstructured.Unstructured, error){
			func() (*unstructured.Unstructured, error) {
				return faults.Create(t.Context(), o, metav1.CreateOptions{})
			},
			func() (*unstructured.Unstructured, error) {
				return faults.Apply(t.Context(), "status", o, metav1.ApplyOptions{FieldManager: "me", Force: true})
			},
			func() (*unstructured.Unstructured, error) {
				return faults.Patch(t.Context(), "status", types.MergePatchType, []byte(`{"status":{"phase":"Expired"}}`), metav1.PatchOptions{})
			},
		} {
			got, err := write()
			if err != nil {
				t.Fatal(err)
			}
			if phase, _, _ := unstructured.NestedString(got.Object, "status", "phase"); phase != "Armed" {
				t.Errorf("the phase is %q", phase)
			}
		}
		if _, err := faults.Get(t.Context(), "status", metav1.GetOptions{}, "status"); !apierrors.IsNotFound(err) {
			t.Errorf("there is a subresource: %v", err)
		}
	})
	t.Run("conflict", func(t *testing.T) {
		old, err := faults.Create(t.Context(), newFault("conflict"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l.phase("conflict", v1alpha1.FaultInjected)
		old.SetLabels(map[string]string{"a": "b"})
		if _, err := faults.Update(t.Context(), old, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("an update of an old version gives %v", err)
		}
		uid := types.UID("other")
		err = faults.Delete(t.Context(), "conflict", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if !apierrors.IsConflict(err) {
			t.Errorf("a delete of another uid gives %v", err)
		}
	})
	t.Run("field managers", func(t *testing.T) {
		o := newFault("managers")
		o.SetLabels(map[string]string{"who": "one"})
		if _, err := faults.Apply(t.Context(), "managers", o, metav1.ApplyOptions{FieldManager: "one"}); err != nil {
			t.Fatal(err)
		}
		o.SetLabels(map[string]string{"who": "two"})
		if _, err := faults.Apply(t.Context(), "managers", o, metav1.ApplyOptions{FieldManager: "two"}); !apierrors.IsConflict(err) {
			t.Errorf("the other manager's label: %v", err)
		}
	})
	t.Run("finalizer", func(t *testing.T) {
		o := newFault("finalizer")
		o.SetFinalizers([]string{"example.com/wait"})
		if _, err := faults.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := faults.Delete(t.Context(), "finalizer", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if l.phaseOf("finalizer") != v1alpha1.FaultArmed {
			t.Error("it was disarmed before its finalizer was gone")
		}
		remove := []byte(`{"metadata":{"finalizers":null}}`)
		if _, err := faults.Patch(t.Context(), "finalizer", types.MergePatchType, remove, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := faults.Get(t.Context(), "finalizer", metav1.GetOptions{}); !apierrors.IsNotFound(err) || l.phaseOf("finalizer") != "" {
			t.Errorf("it is there: %v", err)
		}
	})
	t.Run("refused by the backend", func(t *testing.T) {
		l.change(func() { l.refuses = errors.New("no memory left") })
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Operator", "metadata": map[string]any{"name": "other"},
		}}
		operators := client(t, cluster.Config(), "operators")
		if _, err := operators.Create(t.Context(), o, metav1.CreateOptions{}); !apierrors.IsInternalError(err) {
			t.Errorf("the error is %v", err)
		}
		if _, err := operators.Get(t.Context(), "other", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("it is there: %v", err)
		}
	})
}

// TestOperatorMetrics reads what an operator tells, as anybody does who reads metrics.
func TestOperatorMetrics(t *testing.T) {
	l := newLab()
	serve(t, l)
	const path = "/apis/operator-lab.dev/v1alpha1/operators/"
	if got := kubectl(t, "get", "--raw", path+"zundoko/metrics"); got != "up 1\n" {
		t.Errorf("it tells %q", got)
	}
	if got := refused(t, "", "get", "--raw", path+"nobody/metrics"); !strings.Contains(got, "NotFound") {
		t.Errorf("of an operator that is not there: %s", got)
	}
	l.change(func() { l.refuses = apierrors.NewServiceUnavailable("it has ended") })
	if got := refused(t, "", "get", "--raw", path+"zundoko/metrics"); !strings.Contains(got, "it has ended") {
		t.Errorf("of one that has ended: %s", got)
	}
}

func TestMetadataOnly(t *testing.T) {
	serve(t, newLab())
	c, err := metadata.NewForConfig(cluster.Config()) // in protobuf, as the garbage collector asks
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Resource(v1alpha1.GroupVersion.WithResource("operators")).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list.Items, func(o metav1.PartialObjectMetadata) bool { return o.Name == "zundoko" }) {
		t.Errorf("the list is %v", list.Items)
	}
}

func TestTypedClient(t *testing.T) {
	l := newLab()
	l.loops = []v1alpha1.Loop{loop("default", "typed", "zundoko")}
	serve(t, l)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	got := typed(t, scheme, "hikawa.typed")
	if got.Spec.Operator != "zundoko" || got.Status.Last.Outcome != "done" {
		t.Errorf("the loop is %+v", got)
	}
}

// typed reads a loop as a typed client does.
func typed(t *testing.T, scheme *runtime.Scheme, name string) v1alpha1.Loop {
	t.Helper()
	c, err := ctrlclient.New(cluster.Config(), ctrlclient.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	var got v1alpha1.Loop
	if err := c.Get(t.Context(), ctrlclient.ObjectKey{Namespace: "default", Name: name}, &got); err != nil {
		t.Fatal(err)
	}
	return got
}
