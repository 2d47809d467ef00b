package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/operator-lab/operator-lab/operators/starter/project/api/v1alpha1"
)

// world is an API server that is only a memory, with one object of the kind Gizmo, and the reconciler.
type world struct {
	*testing.T
	Reconciler

	owner      *v1alpha1.Gizmo
	deployment *appsv1.Deployment
}

// newWorld makes a world with the objects that are there before the reconciler is.
func newWorld(t *testing.T, more ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t}
	w.owner = &v1alpha1.Gizmo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one", UID: "1", Generation: 1},
		Spec:       v1alpha1.GizmoSpec{Image: "nginx", Replicas: 2},
	}
	w.deployment = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(more, w.owner)...).
		WithStatusSubresource(w.owner, w.deployment).Build()
	return w
}

// reconcile calls the reconciler and reads both objects again.
func (w *world) reconcile() {
	w.Helper()
	key := client.ObjectKeyFromObject(w.owner)
	_, err := w.Reconcile(w.Context(), ctrl.Request{NamespacedName: key})
	if err := errors.Join(err, w.Get(w.Context(), key, w.owner), w.Get(w.Context(), key, w.deployment)); err != nil {
		w.Fatal(err)
	}
}

// must ends the test if an error is not nil.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func TestDeploymentIsKept(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	if !metav1.IsControlledBy(w.deployment, w.owner) {
		t.Error("the Deployment has no owner: nobody will delete it")
	}
	if got := *w.deployment.Spec.Replicas; got != 2 {
		t.Errorf("there are %d replicas, want 2", got)
	}
	w.owner.Spec.Replicas, w.owner.Spec.Image = 3, "httpd"
	w.must(w.Update(t.Context(), w.owner))
	w.reconcile()
	if got := w.deployment.Spec; *got.Replicas != 3 || got.Template.Spec.Containers[0].Image != "httpd" {
		t.Errorf("the Deployment has not followed: %d of %s", *got.Replicas, got.Template.Spec.Containers[0].Image)
	}
}

func TestNothingToDoWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	owner, deployment := w.owner.ResourceVersion, w.deployment.ResourceVersion
	w.reconcile()
	if w.owner.ResourceVersion != owner || w.deployment.ResourceVersion != deployment {
		t.Error("the second reconcile has written, although nothing had changed")
	}
}

func TestStatus(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	if meta.IsStatusConditionTrue(w.owner.Status.Conditions, ready) {
		t.Error("it is ready before its pods are")
	}
	w.deployment.Status.ReadyReplicas = 2
	w.must(w.Status().Update(t.Context(), w.deployment))
	w.reconcile()
	if !meta.IsStatusConditionTrue(w.owner.Status.Conditions, ready) || w.owner.Status.ObservedGeneration != 1 {
		t.Errorf("it is not ready: %+v", w.owner.Status)
	}
}

func TestDeploymentOfOthersIsLeftAlone(t *testing.T) {
	w := newWorld(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one", UID: "2"}})
	_, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.owner)})
	if err == nil || !strings.Contains(err.Error(), "belongs to somebody else") {
		t.Errorf("got error %v", err)
	}
}

func TestOldReadIsNoError(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	missing := apierrors.NewNotFound(appsv1.Resource("deployments"), "one")
	w.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, is := obj.(*appsv1.Deployment); is {
				return missing // the cache has not heard of it yet
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	result, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.owner)})
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("got %v, %v: want another look soon", result, err)
	}
}

func TestDeletedIsNoError(t *testing.T) {
	w := newWorld(t)
	w.must(w.Delete(t.Context(), w.owner))
	if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.owner)}); err != nil {
		t.Error(err)
	}
}

func TestEndOfTheNamespaceIsNoError(t *testing.T) {
	w := newWorld(t)
	ending := apierrors.NewForbidden(appsv1.Resource("deployments"), "one", errors.New("the namespace is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	w.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return ending },
	})
	if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.owner)}); err != nil {
		t.Error(err)
	}
}
