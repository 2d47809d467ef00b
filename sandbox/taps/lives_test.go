package taps_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func TestTwoOperatorsAndTheSameTwice(t *testing.T) {
	l := newLab(t)
	one, two := &keeper{}, &keeper{}
	d := &deployer{}
	l.startKeeper(l.newTaps("one"), one)
	first := len(l.timeline.Tip().Reconciles())
	l.start(l.newTaps("deployer"), ctrl.Options{}, d.setup)
	l.start(l.newTaps("two"), ctrl.Options{}, two.setup)
	seen := func(s *trace.State, operator, key string) int {
		n := 0
		for _, reconcile := range s.Reconciles() {
			if reconcile.Operator == operator && reconcile.Key.Name == key && !reconcile.Running() {
				n++
			}
		}
		return n
	}
	l.await("the second keeper's watches", func(s *trace.State) bool { return seen(s, "two", "warm-up") > 0 })
	l.must(l.you.Create(t.Context(), l.configMap("a", nil)))
	l.must(l.you.Create(t.Context(), l.deployment()))
	// One of the two keepers created the Secret of "a"; for the other it is somebody else's write. Each may see it
	// together with another event, and then reconciles once for both.
	l.await("all three to work, woken by the Secret once each", func(s *trace.State) bool {
		own, others := wokenBySecret(s)
		return own == 1 && others == 1 && seen(s, "deployer", "web") >= 1 && len(s.Running()) == 0 && len(s.Queue()) == 0
	})
	if s := l.timeline.Tip(); first == 0 || s.Total().ByVerb["create Secret"] != 2 {
		t.Errorf("%d Secrets were made, want 2", s.Total().ByVerb["create Secret"])
	}
}

// wokenBySecret counts how often the Secret of "a" woke its creator, and others.
func wokenBySecret(s *trace.State) (own, others int) {
	for _, reconcile := range s.Reconciles() {
		for _, w := range s.Wakes(reconcile) {
			if w.Watch == nil || w.Watch.Object.Kind != "Secret" || w.Watch.Object.Name != "a" || w.Write == nil {
				continue
			}
			if w.Own {
				own++
			} else {
				others++
			}
		}
	}
	return own, others
}

func TestStopAndStartAgain(t *testing.T) {
	l := newLab(t)
	tap := l.newTaps("keeper")
	op := l.startKeeper(tap, &keeper{})
	op.stop()
	l.await("the operator to stop", func(*trace.State) bool {
		return l.find(func(e *trace.Event) bool { return e.Kind == trace.KindOperator && e.Verb == trace.VerbStop }) != nil
	})
	before := l.journal.Stats().Last
	again := &keeper{}
	l.start(tap, ctrl.Options{}, again.setup)
	l.must(l.you.Create(t.Context(), l.configMap("a", nil)))
	l.await("work in the second life", ended("a", 2))
	initial := l.find(func(e *trace.Event) bool {
		return e.Seq > before && e.Kind == trace.KindWatch && e.Initial && e.Object.Name == "warm-up"
	})
	if initial == nil {
		t.Error("the second life did not find the warm-up at its start")
	}
}

// TestManagerInstruments pins what Manager relies on: that controller-runtime's controller has the fields it sets, so
// that an operator without controller options is observed too.
func TestManagerInstruments(t *testing.T) {
	l := newLab(t)
	tap := l.newTaps("keeper")
	k := &keeper{}
	l.start(tap, ctrl.Options{}, func(mgr ctrl.Manager, _ controller.Options) error {
		return k.setup(tap.Manager(mgr), controller.Options{})
	})
	l.must(l.you.Create(t.Context(), l.configMap("a", nil)))
	l.await("an observed reconcile", ended("a", 2))
	if note := l.find(func(e *trace.Event) bool { return e.Kind == trace.KindNote }); note != nil {
		t.Errorf("note: %s", note.Message)
	}
	if reconcile := reconcilesOf(l.timeline.Tip(), "a")[0]; len(reconcile.Calls()) == 0 || len(reconcile.Logs()) == 0 {
		t.Errorf("calls and logs are not joined: %+v", reconcile)
	}
}

// TestHandlersOfTheOperatorsOwn checks handlers other than controller-runtime's, which may add keys too; they are
// joined by the goroutine.
func TestHandlersOfTheOperatorsOwn(t *testing.T) {
	l := newLab(t)
	tap := l.newTaps("keeper")
	k := &keeper{}
	var queue workqueue.TypedRateLimitingInterface[ctrl.Request]
	l.start(tap, ctrl.Options{}, func(mgr ctrl.Manager, o controller.Options) error {
		k.Client = mgr.GetClient()
		add := source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
			queue = q
			i, err := mgr.GetCache().GetInformer(ctx, &corev1.Secret{})
			if err != nil {
				return err
			}
			_, err = i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
				queue.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj.(client.Object))})
			}})
			return err
		})
		return ctrl.NewControllerManagedBy(mgr).Named("raw").For(&corev1.ConfigMap{}).WatchesRawSource(add).WithOptions(o).Complete(k)
	})
	l.must(l.you.Create(t.Context(), l.configMap("a", nil)))
	l.await("the raw handler's key", ended("a", 2))
	w := l.timeline.Tip().Wakes(reconcilesOf(l.timeline.Tip(), "a")[1])[0]
	if w.Watch == nil || w.Watch.Object.Kind != "Secret" || !w.Own {
		t.Errorf("the key of the operator's own handler is woken by %+v", w)
	}
}

func TestSecretsStayOut(t *testing.T) {
	l := newLab(t)
	l.must(l.you.Create(t.Context(), &corev1.Secret{
		ObjectMeta: l.configMap("s", nil).ObjectMeta, StringData: map[string]string{"password": "hunter2"},
	}))
	for _, e := range l.journal.Since(0) {
		if s := string(e.After) + string(e.Before); strings.Contains(s, "hunter2") || strings.Contains(s, "aHVudGVyMg") {
			t.Errorf("a secret is in the journal: %s", s)
		}
	}
}
