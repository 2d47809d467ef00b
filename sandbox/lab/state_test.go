package lab_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/operators/zundoko"
	"github.com/operator-lab/operator-lab/operators/zundoko/v1beta1"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// back restores the sandbox and the lab, as an undo does.
func (w *fixture) back(point *sandbox.Checkpoint, resume func() error) {
	w.Helper()
	w.must(w.lab.Suspend())
	w.must(box.Checkpoints().Restore(w.Context(), point))
	w.must(resume())
}

// hasStatus reports whether the cluster has the CRDs of the variant whose status is a subresource.
func (w *fixture) hasStatus() bool {
	w.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	w.must(crdClient(w.T).Get(w.Context(), client.ObjectKey{Name: "hikawas.zundokokiyoshi.kaitoy.github.com"}, crd))
	sub := crd.Spec.Versions[0].Subresources
	return sub != nil && sub.Status != nil
}

// TestResume checks that a change of variant and its effects are undone, twice, and that faults are over, including one
// that has lost a node.
func TestResume(t *testing.T) {
	sandboxtest.Long(t)
	w := open(t)
	classic := song()
	classic.Variant = string(zundoko.Classic)
	w.load(classic)
	w.sing("before")
	owner := &v1beta1.Hikawa{}
	w.must(w.you.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "before"}, owner))
	fans := w.replicaSet(owner)
	state := w.lab.State()
	point, err := box.Checkpoints().Save(t.Context(), "task")
	w.must(err)
	harden := func() {
		w.changeOperator(func(s *v1alpha1.OperatorSpec) { s.Variant = string(zundoko.Hardened) })
		w.awaitOperator("another variant", restarted(1))
	}
	for range 2 {
		harden()
		w.sing("after")
		f := w.arm("dark", v1alpha1.FaultSpec{Node: &v1alpha1.NodeFault{Name: "node-1", Action: v1alpha1.NodeLost}})
		w.awaitFault(f, "the node to be lost", injected)

		journal := w.lab.NewJournal()
		w.back(point, func() error { return w.lab.Resume(t.Context(), state, journal) })

		if o := w.operator(); !running(o) || o.Spec.Variant != string(zundoko.Classic) || o.Spec.Parameters["song"] != classic.Parameters["song"] {
			t.Errorf("the operator is %+v", o)
		}
		if w.hasStatus() {
			t.Error("the cluster has the CRDs of the other variant")
		}
		if w.lab.Journal() != journal {
			t.Error("the epoch has another journal")
		}
		if err := w.you.Get(t.Context(), client.ObjectKeyFromObject(f), f); !apierrors.IsNotFound(err) {
			t.Errorf("the fault of before: %v", err)
		}
		after := &v1beta1.Hikawa{}
		if err := w.you.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "after"}, after); !apierrors.IsNotFound(err) {
			t.Errorf("what was made after the checkpoint: %v", err)
		}
		w.has(fans)
		w.sing("again")
		w.tellsTheSame()
	}
	harden() // other tests need it
}

// replicaSet creates a ReplicaSet that an object owns, and returns when its pod is there and both are older than what comes:
// the operator watches neither.
func (w *fixture) replicaSet(owner client.Object) *appsv1.ReplicaSet {
	w.Helper()
	labels := map[string]string{"app": "fans"}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fans"},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "page", Image: pageImage}}},
			},
		},
	}
	w.must(controllerutil.SetOwnerReference(owner, set, w.you.Scheme()))
	w.must(w.you.Create(w.Context(), set))
	w.eventually("a pod of the ReplicaSet", func() error {
		err := w.you.Get(w.Context(), client.ObjectKeyFromObject(set), set)
		if err == nil && set.Status.ReadyReplicas == 0 {
			err = errors.New("none is ready")
		}
		return err
	})
	// A creationTimestamp tells seconds: only when this one is over, both are known to be older than a new journal.
	made := time.Now()
	w.eventually("the second to be over", func() error {
		if !trace.New(trace.Options{}).Header().Older(made.Truncate(time.Second)) {
			return errors.New("it is not")
		}
		return nil
	})
	return set
}

// has checks that the journal has the ReplicaSet of before and its pod, as the cluster has them, and says so.
func (w *fixture) has(set *appsv1.ReplicaSet) {
	w.Helper()
	var pods corev1.PodList
	w.must(w.you.List(w.Context(), &pods, client.InNamespace(w.namespace), client.MatchingLabels(set.Spec.Selector.MatchLabels)))
	if len(pods.Items) != 1 {
		w.Fatalf("the ReplicaSet has %d pods", len(pods.Items))
	}
	timeline := trace.NewTimeline(w.lab.Journal())
	timeline.Update()
	for _, want := range []trace.Ref{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: w.namespace, Name: set.Name, UID: string(set.UID)},
		{APIVersion: "v1", Kind: "Pod", Namespace: w.namespace, Name: pods.Items[0].Name, UID: string(pods.Items[0].UID)},
	} {
		o := timeline.Tip().Object(want)
		if o == nil || o.Ref.UID != want.UID || o.Deleted {
			w.Errorf("the journal has %+v instead of %s", o, want)
			continue
		}
		if said := timeline.Tip().WhyObject(o, trace.English); !strings.Contains(said, "was there before the operator started and is owned by") {
			w.Errorf("it says: %s", said)
		}
	}
}

// tellsTheSame checks that the Go API and the Kubernetes API return the same.
func (w *fixture) tellsTheSame() {
	w.Helper()
	w.loop("again", quiet)
	var loops v1alpha1.LoopList
	var operators v1alpha1.OperatorList
	w.must(w.you.List(w.Context(), &loops))
	w.must(w.you.List(w.Context(), &operators))
	w.eventually("the API to tell the same", func() error {
		w.must(w.you.List(w.Context(), &loops))
		if a, b := len(w.lab.Loops()), len(loops.Items); a != b || a == 0 {
			return fmt.Errorf("there are %d loops, and %d by the API", a, b)
		}
		return nil
	})
	if o := w.lab.Operators(); len(o) != 1 || len(operators.Items) != 1 || o[0].Name != operators.Items[0].Name || o[0].Status.State != operators.Items[0].Status.State {
		w.Errorf("there are operators %v, and %v by the API", o, operators.Items)
	}
}

// breaking is an operator whose program ends before it serves as often as it is told, and then begins as it should.
type breaking struct {
	lab.Program
	ends atomic.Int32
}

func (b *breaking) Start(ctx context.Context, o lab.RunOptions) (lab.Run, error) {
	if b.ends.Add(-1) >= 0 {
		return ended{}, nil
	}
	return b.Program.Start(ctx, o)
}

// ended is a run of a program that has ended before it served.
type ended struct{ lab.Run }

func (ended) AwaitServing(context.Context) error { return exit{errors.New("status 4")} }
func (ended) End() error                         { return nil }

type exit struct{ error }

func (exit) RestartAfter() time.Duration { return time.Second }

// TestResumeOfWhatServed checks that an operator that served at a checkpoint is started again until it serves.
func TestResumeOfWhatServed(t *testing.T) {
	sandboxtest.Long(t)
	bundled, found := operators.Find("zundoko")
	if !found {
		t.Fatal("there is no zundoko")
	}
	program := &breaking{Program: lab.Bundled(bundled)}
	w := openWith(t, lab.Options{
		Cluster: box, Kill: box.Kill, Machines: box.Nodes(), Installed: crds, Seed: 7, Version: "v1", Programs: []lab.Program{program},
	})
	w.load(song())
	state := w.lab.State()
	point, err := box.Checkpoints().Save(t.Context(), "served")
	w.must(err)
	program.ends.Store(2)
	w.back(point, func() error { return w.lab.Resume(t.Context(), state, w.lab.NewJournal()) })
	w.awaitOperator("the third run", restarted(2))
}

// TestResumeOfNothing checks that a lab's API is served again in a cluster restored to before there was a lab.
func TestResumeOfNothing(t *testing.T) {
	sandboxtest.Long(t)
	point, err := box.Checkpoints().Save(t.Context(), "nothing")
	if err != nil {
		t.Fatal(err)
	}
	w := open(t)
	state := w.lab.State()
	w.load(song())
	w.ask("long", time.Hour)
	w.back(point, func() error { return w.lab.Resume(t.Context(), state, w.lab.NewJournal()) })
	var operators v1alpha1.OperatorList
	w.must(w.you.List(t.Context(), &operators))
	if len(operators.Items) != 0 || len(w.lab.Operators()) != 0 {
		t.Errorf("there are operators %v", operators.Items)
	}
	w.must(w.you.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})) // undone
	w.load(song())
	w.sing("hikawa")
}
