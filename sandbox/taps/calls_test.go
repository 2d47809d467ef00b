package taps_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// once runs a keeper whose second reconcile of ConfigMap "a" calls a function once, and returns the reconcile of that
// reconcile.
func (l *lab) once(do func(context.Context, *keeper, ctrl.Manager, *corev1.ConfigMap) error) *trace.Reconcile {
	l.Helper()
	return l.onceBy(l.newTaps("keeper"), do)
}

// onceBy is once with taps of the test's.
func (l *lab) onceBy(tapped *taps.Taps, do func(context.Context, *keeper, ctrl.Manager, *corev1.ConfigMap) error) *trace.Reconcile {
	l.Helper()
	k := &keeper{}
	done := false
	op := l.startKeeper(tapped, k)
	k.then = func(ctx context.Context, cm *corev1.ConfigMap) (reconcile.Result, error) {
		if done {
			return reconcile.Result{}, nil
		}
		done = true
		return reconcile.Result{}, reconcile.TerminalError(do(ctx, k, op.mgr, cm))
	}
	l.must(l.you.Create(l.Context(), l.configMap("a", map[string]string{"word": "zun"})))
	l.await("the second reconcile", ended("a", 2))
	return reconcilesOf(l.timeline.Tip(), "a")[1]
}

// writes returns the writes of a reconcile.
func writes(reconcile *trace.Reconcile) []*trace.Event {
	var out []*trace.Event
	for _, e := range reconcile.Calls() {
		if trace.IsWriteVerb(e.Verb) {
			out = append(out, e)
		}
	}
	return out
}

func TestEveryKindOfWrite(t *testing.T) {
	l := newLab(t)
	reconcile := l.once(func(ctx context.Context, k *keeper, _ ctrl.Manager, cm *corev1.ConfigMap) error {
		stale := cm.DeepCopy()
		cm.Data = map[string]string{"word": "doko"}
		if err := k.Update(ctx, cm); err != nil {
			return err
		}
		if err := k.Update(ctx, cm); err != nil { // changes nothing
			return err
		}
		stale.Data = map[string]string{"word": "late"}
		if err := k.Update(ctx, stale); !apierrors.IsConflict(err) {
			return err
		}
		old := cm.DeepCopy()
		cm.Data["word"] = "zun"
		if err := k.Patch(ctx, cm, client.MergeFrom(old)); err != nil {
			return err
		}
		applied := corev1ac.ConfigMap("b", cm.Namespace).WithData(map[string]string{"word": "b"})
		if err := k.Apply(ctx, applied, client.FieldOwner("keeper")); err != nil {
			return err
		}
		c := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: "c"}}
		if err := k.Patch(ctx, c, client.Apply, client.FieldOwner("keeper")); err != nil { //nolint:staticcheck // SA1019: operators still use it
			return err
		}
		if err := k.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, GenerateName: "d-"}}, client.DryRunAll); err != nil {
			return err
		}
		return k.Delete(ctx, c)
	})
	want := []struct {
		verb, name, reason string
		noOp               bool
	}{
		{trace.VerbUpdate, "a", "", false},
		{trace.VerbUpdate, "a", "", true},
		{trace.VerbUpdate, "a", "Conflict", false},
		{trace.VerbPatch, "a", "", false},
		{trace.VerbApply, "b", "", false},
		{trace.VerbApply, "c", "", false},
		{trace.VerbCreate, "d-", "", false},
		{trace.VerbDelete, "c", "", false},
	}
	got := writes(reconcile)
	if len(got) != len(want) {
		l.dump()
		t.Fatalf("%d writes, want %d; ended %s", len(got), len(want), reconcile.End.Error)
	}
	for i, w := range want {
		e := got[i]
		if e.Verb != w.verb || !strings.HasPrefix(e.Object.Name, w.name) || e.Reason != w.reason || e.NoOp != w.noOp || e.Source != trace.Server || e.Object.Kind != "ConfigMap" {
			t.Errorf("write %d: %+v, want %+v", i, e, w)
		}
		if !strings.Contains(e.Line, "/calls_test.go:") {
			t.Errorf("write %d was called at %q", i, e.Line)
		}
		if w.reason == "" && e.Object.UID == "" {
			t.Errorf("write %d has no uid: %+v", i, e)
		}
		if strings.Contains(string(e.After), "managedFields") {
			t.Errorf("write %d keeps managed fields: %s", i, e.After)
		}
	}
	if !strings.Contains(string(got[0].Before), "zun") || !strings.Contains(string(got[0].After), "doko") {
		t.Errorf("the update shows no difference: %s, %s", got[0].Before, got[0].After)
	}
	if got[4].FieldManager != "keeper" || got[6].Via != trace.ViaDryRun {
		t.Errorf("field manager %q, dry run %q", got[4].FieldManager, got[6].Via)
	}
	if c := reconcile.Tally; c.Writes != 6 || c.NoOps != 1 || c.Conflicts != 1 {
		t.Errorf("tally: %+v", c)
	}
	l.await("the delete to come back", func(s *trace.State) bool {
		for _, e := range s.Effects(got[7]) {
			if e.Kind == trace.KindWatch && e.Verb == trace.Deleted {
				return true
			}
		}
		return false
	})
}

func TestLastFinalizerEndsTheObject(t *testing.T) {
	l := newLab(t)
	reconcile := l.once(func(ctx context.Context, k *keeper, _ ctrl.Manager, cm *corev1.ConfigMap) error {
		controllerutil.AddFinalizer(cm, "lab.example/hold")
		if err := k.Update(ctx, cm); err != nil {
			return err
		}
		if err := k.Delete(ctx, cm); err != nil {
			return err
		}
		if err := l.you.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
			return err
		}
		cm.Finalizers = nil
		return k.Update(ctx, cm)
	})
	w := writes(reconcile)
	echo := func(write *trace.Event, verb string) func(*trace.State) bool {
		return func(s *trace.State) bool {
			for _, e := range s.Effects(write) {
				if e.Kind == trace.KindWatch && e.Verb == verb {
					return true
				}
			}
			return false
		}
	}
	if len(w) != 3 {
		t.Fatalf("%d writes; ended %s", len(w), reconcile.End.Error)
	}
	l.await("the delete to come back as a change", echo(w[1], trace.Modified))
	l.await("the last update to come back as the end", echo(w[2], trace.Deleted))
}

func TestStatusIsASubresource(t *testing.T) {
	l := newLab(t)
	d := &deployer{}
	l.start(l.newTaps("deployer"), ctrl.Options{}, d.setup)
	l.must(l.you.Create(t.Context(), l.deployment()))
	l.await("a reconcile", ended("web", 1))
	w := writes(reconcilesOf(l.timeline.Tip(), "web")[0])[0]
	if w.Object.Subresource != "status" || w.Verb != trace.VerbUpdate || !strings.Contains(string(w.After), `"observedGeneration":1`) {
		t.Errorf("status write: %+v %s", w, w.After)
	}
	if o := l.timeline.Tip().Object(trace.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: l.namespace, Name: "web"}); o.Meta().ObservedGeneration != 1 {
		t.Errorf("the object's state: %s", o.Raw)
	}
}

func TestPastTheClient(t *testing.T) {
	l := newLab(t)
	reconcile := l.once(func(ctx context.Context, _ *keeper, mgr ctrl.Manager, cm *corev1.ConfigMap) error {
		var live corev1.ConfigMap
		if err := mgr.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(cm), &live); err != nil {
			return err
		}
		set, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return err
		}
		made, err := set.CoreV1().ConfigMaps(cm.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "set"}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if _, err := set.CoreV1().ConfigMaps(cm.Namespace).Get(l.Context(), "set", metav1.GetOptions{}); err != nil {
			return err
		}
		_, err = set.CoreV1().ConfigMaps(cm.Namespace).Create(ctx, made, metav1.CreateOptions{})
		if err == nil {
			return nil
		}
		for _, kind := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
			config := rest.CopyConfig(mgr.GetConfig())
			config.ContentType, config.AcceptContentTypes = kind, kind
			lists, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			if _, err := lists.CoreV1().ConfigMaps(cm.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=set"}); err != nil {
				return err
			}
		}
		return set.CoreV1().ConfigMaps(cm.Namespace).Delete(ctx, "set", metav1.DeleteOptions{})
	})
	var wire []*trace.Event
	for _, e := range reconcile.Calls() {
		if e.Via == trace.ViaWire {
			wire = append(wire, e)
		}
	}
	if len(wire) != 6 {
		l.dump()
		t.Fatalf("%d calls past the client, want 6", len(wire))
	}
	if e := wire[0]; e.Verb != trace.VerbGet || e.Source != trace.Server || e.Status != 200 {
		t.Errorf("uncached read: %+v", e)
	}
	if e := wire[1]; e.Verb != trace.VerbCreate || e.Object.Kind != "ConfigMap" || e.ResourceVersion == "" || e.Object.UID == "" || e.After == nil {
		t.Errorf("a clientset's create: %+v", e)
	}
	if e := wire[2]; e.Status < 400 || !strings.Contains(e.Error, "resourceVersion") {
		t.Errorf("a clientset's failed create: %+v", e)
	}
	for _, e := range wire[3:5] {
		if e.Verb != trace.VerbList || e.Source != trace.Server || e.Count != 1 {
			t.Errorf("a clientset's list: %+v", e)
		}
	}
	if e := wire[5]; e.Verb != trace.VerbDelete || e.Object.Kind != "ConfigMap" || e.Object.UID == "" {
		t.Errorf("a clientset's delete: %+v", e)
	}
	own := l.find(func(e *trace.Event) bool {
		return e.Via == trace.ViaWire && e.Verb == trace.VerbGet && e.Object.Name == "set"
	})
	if own == nil || own.Reconcile != 0 {
		t.Errorf("a clientset's read without the context of the reconcile: %+v", own)
	}
}

// TestPauseWithinAReconcile: a reconcile that has begun goes on while the loop is paused, with clients of its own, too.
func TestPauseWithinAReconcile(t *testing.T) {
	l := newLab(t)
	tapped := l.newTaps("keeper")
	reconcile := l.onceBy(tapped, func(ctx context.Context, _ *keeper, mgr ctrl.Manager, cm *corev1.ConfigMap) error {
		tapped.Pause()
		set, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return err
		}
		return set.CoreV1().ConfigMaps(cm.Namespace).Delete(ctx, cm.Name, metav1.DeleteOptions{})
	})
	if last := reconcile.Calls()[len(reconcile.Calls())-1]; last.Verb != trace.VerbDelete || last.Status != 200 {
		t.Errorf("its last call: %+v", last)
	}
}

// TestInReconcile: reads of the cache and requests whose context is not the reconcile's own belong to the reconcile that
// InReconcile finds, and to none if it finds none.
func TestInReconcile(t *testing.T) {
	l := newLab(t)
	tapped := l.newTaps("keeper")
	reconcile := l.onceBy(tapped, func(_ context.Context, _ *keeper, mgr ctrl.Manager, cm *corev1.ConfigMap) error {
		for _, controller := range []string{"configmap", "nobody"} {
			ctx := tapped.InReconcile(l.Context(), controller, trace.Key{Namespace: cm.Namespace, Name: "a"})
			if err := mgr.GetCache().Get(ctx, client.ObjectKeyFromObject(cm), &corev1.ConfigMap{}); err != nil {
				return err
			}
			if err := mgr.GetCache().List(ctx, &corev1.ConfigMapList{}, client.InNamespace(cm.Namespace)); err != nil {
				return err
			}
			made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, GenerateName: "by-"}}
			set, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
			if err != nil {
				return err
			}
			if _, err := set.CoreV1().ConfigMaps(cm.Namespace).Create(ctx, made, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	var got []string
	for _, e := range reconcile.Calls() {
		got = append(got, e.Verb+" "+e.Object.Kind+" "+string(e.Source))
	}
	// The first three are the keeper's own.
	want := []string{"get ConfigMap cache", "list Secret cache", "get Secret cache", "get ConfigMap cache", "list ConfigMap cache", "create ConfigMap server"}
	if !slices.Equal(got, want) || reconcile.End.Error != "nil terminal error" {
		l.dump()
		t.Errorf("the reconcile has the calls %q, want %q; it ended with %q", got, want, reconcile.End.Error)
	}
	others := l.find(func(e *trace.Event) bool {
		return e.Verb == trace.VerbCreate && e.Via == trace.ViaWire && e.Reconcile == 0
	})
	if others == nil {
		t.Error("the create for no reconcile is not in the journal, or belongs to one")
	}
}

func TestEventRecorder(t *testing.T) {
	l := newLab(t)
	l.once(func(_ context.Context, _ *keeper, mgr ctrl.Manager, cm *corev1.ConfigMap) error {
		mgr.GetEventRecorder("keeper").Eventf(cm, nil, corev1.EventTypeNormal, "Sang", "Sing", "the song is %s", "over")
		return nil
	})
	var e *trace.Event
	l.await("the Event", func(*trace.State) bool {
		e = l.find(func(e *trace.Event) bool { return e.Via == trace.ViaRecorder })
		return e != nil
	})
	if e.Reconcile != 0 || e.Actor != "keeper" || e.Object.Kind != "ConfigMap" || e.Object.Name != "a" || e.Reason != "Sang" || e.Message != "the song is over" {
		t.Errorf("recorded: %+v", e)
	}
}
