package maintpage

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/operators/kit"
	"github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"
)

// classic behaves as the operator published in 2019 did. Its flaws are the reason it is here, each is
// marked where it sits, and none of them is to be repaired: hardened is the repaired one.
type classic struct {
	client client.Client
}

// setupClassic watches MaintPages and the Pods and Deployments they control, but no Services: one that
// is changed or deleted is not missed until something else happens (M-01).
func setupClassic(mgr ctrl.Manager, o Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1alpha1.MaintPage{}).
		Owns(&corev1.Pod{}).
		Owns(&appsv1.Deployment{}).
		WithOptions(o.Controller).
		Complete(&classic{client: mgr.GetClient()})
}

// Reconcile creates the first of three objects that is missing and leaves the rest to the next pass.
// With all three there it turns the Service, notes that it did, and only then looks at the image: what
// fails on the way keeps the image from being put back (M-12). It tells nobody: there is no event, no
// condition, no observed generation (M-15).
func (r *classic) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	page := &v1alpha1.MaintPage{}
	if err := r.client.Get(ctx, req.NamespacedName, page); err != nil {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("get the MaintPage: %w", err)
	}
	if created, err := r.createPod(ctx, page); created || err != nil {
		return ctrl.Result{}, err // the event of the Pod brings the next pass
	}
	deployment := r.newDeployment(page)
	// What has the name already counts, whoever it belongs to (M-04).
	if created, err := kit.CreateMissing(ctx, r.client, deployment); created || err != nil {
		return again(created), err
	}
	service := r.newService(page)
	if created, err := kit.CreateMissing(ctx, r.client, service); created || err != nil {
		return again(created), err
	}
	if err := r.toggle(ctx, page, service); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.putImageBack(ctx, page, deployment)
}

// again asks for another pass at once if something was created. By then the cache may still lack it;
// that pass then fails to create it a second time, and is repeated.
func again(created bool) ctrl.Result {
	return ctrl.Result{Requeue: created} //nolint:staticcheck // what the published operator used, now deprecated
}

// createPod creates the Pod of the maintenance page if there is none of that name. What there is may be
// of another image (M-06), or long over (M-07).
func (r *classic) createPod(ctx context.Context, page *v1alpha1.MaintPage) (created bool, err error) {
	pod := newPod(page)
	if err := ctrl.SetControllerReference(page, pod, r.client.Scheme()); err != nil {
		return false, fmt.Errorf("set the owner of Pod %s: %w", pod.Name, err)
	}
	if created, err = kit.CreateMissing(ctx, r.client, pod); !created && err == nil {
		log.FromContext(ctx).Info("Skip reconcile: the Pod is there already", "pod", pod.Name) // it does not skip
	}
	return created, err
}

// toggle turns the Service to one of the two pages, whether it is Ready or not (M-02), and says that it
// did. A Service without any selector has no map to write to: the pass panics (M-09). Turned to
// maintenance, it writes the Service and the status again in every pass; otherwise only the status
// (M-13).
func (r *classic) toggle(ctx context.Context, page *v1alpha1.MaintPage, service *corev1.Service) error {
	published := v1alpha1.NotPublished
	switch {
	case page.Spec.MaintPageConfig.MaintPageToggle:
		published = v1alpha1.Published
		// With the MaintPage named as the application this is the label of both pages (M-03).
		service.Spec.Selector[appLabel] = page.Name
		if err := r.client.Update(ctx, service); err != nil {
			return fmt.Errorf("turn Service %s to maintenance: %w", service.Name, err)
		}
	case service.Spec.Selector[appLabel] != page.Spec.AppConfig.AppName:
		service.Spec.Selector[appLabel] = page.Spec.AppConfig.AppName
		if err := r.client.Update(ctx, service); err != nil {
			return fmt.Errorf("turn Service %s to production: %w", service.Name, err)
		}
	}
	page.Status.MaintPublishStatus = published
	// The whole status, of the object as the cache had it: any write since makes this a conflict (M-12).
	if err := r.client.Status().Update(ctx, page); err != nil {
		return fmt.Errorf("update the status: %w", err)
	}
	return nil
}

// putImageBack puts back the image of the first container, and nothing else about a Deployment (M-08).
func (r *classic) putImageBack(ctx context.Context, page *v1alpha1.MaintPage, deployment *appsv1.Deployment) error {
	container := &deployment.Spec.Template.Spec.Containers[0]
	if container.Image == page.Spec.AppConfig.AppImage {
		return nil
	}
	container.Image = page.Spec.AppConfig.AppImage
	if err := r.client.Update(ctx, deployment); err != nil {
		return fmt.Errorf("put back the image of Deployment %s: %w", deployment.Name, err)
	}
	return nil
}
