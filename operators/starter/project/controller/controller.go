// Package controller makes what each object of the kind Gizmo asks for.
package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/operator-lab/operator-lab/operators/starter/project/api/v1alpha1"
)

// ready is the type of the condition that is true while all replicas that are asked for are ready.
const ready = "Ready"

// Reconciler keeps a Deployment for each object of the kind Gizmo.
type Reconciler struct {
	client.Client
}

// SetupWithManager has the manager call Reconcile when an object, or a Deployment that belongs to one, has changed.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.Gizmo{}).Owns(&appsv1.Deployment{}).Complete(r)
}

// Reconcile compares what is wanted with what there is, and changes what differs. It does not ask what has happened, so
// it may be called any number of times: with nothing to do, it writes nothing. After an error it is called again.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	owner := &v1alpha1.Gizmo{}
	if err := r.Get(ctx, req.NamespacedName, owner); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // deleted: the garbage collector deletes the Deployment
	}
	if owner.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name}}
	done, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error { return r.want(owner, deployment) })
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err): // what was read is old: it comes from a cache
		return ctrl.Result{RequeueAfter: time.Second}, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause): // the owner will be gone, too
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("keep the Deployment: %w", err)
	case done != controllerutil.OperationResultNone:
		ctrl.LoggerFrom(ctx).Info("Deployment "+string(done), "image", owner.Spec.Image, "replicas", owner.Spec.Replicas)
	}
	return ctrl.Result{}, r.report(ctx, owner, deployment)
}

// want writes what the owner asks for into its Deployment, which may be new. All other fields are left as they are: the
// API server has set them, or somebody else.
func (r *Reconciler) want(owner *v1alpha1.Gizmo, deployment *appsv1.Deployment) error {
	if deployment.UID != "" && !metav1.IsControlledBy(deployment, owner) {
		return fmt.Errorf("there is a Deployment %s that belongs to somebody else", deployment.Name)
	}
	labels := map[string]string{"app.kubernetes.io/name": "gizmo", "app.kubernetes.io/instance": owner.Name}
	deployment.Spec.Replicas = &owner.Spec.Replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	if len(deployment.Spec.Template.Spec.Containers) == 0 {
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
	}
	deployment.Spec.Template.Spec.Containers[0].Image = owner.Spec.Image
	return controllerutil.SetControllerReference(owner, deployment, r.Scheme())
}

// report writes the status of the owner if it has changed.
func (r *Reconciler) report(ctx context.Context, owner *v1alpha1.Gizmo, deployment *appsv1.Deployment) error {
	before, count := owner.DeepCopy(), deployment.Status.ReadyReplicas
	condition := metav1.Condition{
		Type: ready, Status: metav1.ConditionFalse, Reason: "Waiting", ObservedGeneration: owner.Generation,
		Message: fmt.Sprintf("%d of %d replicas are ready", count, owner.Spec.Replicas),
	}
	if seen := deployment.Status.ObservedGeneration >= deployment.Generation; seen && count == owner.Spec.Replicas {
		condition.Status, condition.Reason = metav1.ConditionTrue, "AllReady"
	}
	meta.SetStatusCondition(&owner.Status.Conditions, condition)
	owner.Status.ReadyReplicas = count
	owner.Status.ObservedGeneration = owner.Generation
	if equality.Semantic.DeepEqual(before.Status, owner.Status) {
		return nil
	}
	return r.Status().Patch(ctx, owner, client.MergeFrom(before))
}
