package visitors

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/kit"
	v1 "github.com/operator-lab/operator-lab/operators/visitors/v1"
)

// classic behaves as the example operator of 2020 did. Its flaws are the reason it is here, each is marked where it sits,
// and none of them is to be repaired: hardened is the repaired one.
type classic struct {
	client client.Client
}

// mysqlDelay is how long it is until classic looks again whether MySQL is ready.
const mysqlDelay = 5 * time.Second

// setupClassic watches VisitorsApps and their Deployments and Services, but not the Secret: another password there is
// noticed by nobody (V-07).
func setupClassic(mgr ctrl.Manager, o Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1.VisitorsApp{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		WithOptions(o.Controller).
		Complete(&classic{client: mgr.GetClient()})
}

// Reconcile creates what is missing, tier by tier, and looks again five seconds later while MySQL is not ready. Of what
// exists it compares the size of the backend and the title of the frontend, and nothing else (V-05).
func (r *classic) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	app := &v1.VisitorsApp{}
	if err := r.client.Get(ctx, req.NamespacedName, app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	mysql, backend, frontend := classicMySQL(app), classicBackend(app), classicFrontend(app)
	if err := r.create(ctx, app, classicSecret(app), mysql, classicMySQLService(app)); err != nil {
		return ctrl.Result{}, err
	}
	if mysql.Status.ReadyReplicas != 1 {
		return ctrl.Result{RequeueAfter: mysqlDelay}, nil
	}
	// Another VisitorsApp has the node port already: its Service is refused, and there is no frontend either (V-03).
	if err := r.create(ctx, app, backend, classicService(app, backendTier, backendPort, backendNodePort)); err != nil {
		return ctrl.Result{}, err
	}
	app.Status.BackendImage = backendImage // a constant, whatever runs (V-04)
	if err := r.client.Status().Update(ctx, app); err != nil {
		return ctrl.Result{}, fmt.Errorf("update the status: %w", err)
	}
	if *backend.Spec.Replicas != app.Spec.Size {
		backend.Spec.Replicas = &app.Spec.Size
		if err := r.client.Update(ctx, backend); err != nil {
			return ctrl.Result{}, fmt.Errorf("update the size: %w", err)
		}
	}
	if err := r.create(ctx, app, frontend, classicService(app, frontendTier, frontendPort, frontendNodePort)); err != nil {
		return ctrl.Result{}, err
	}
	app.Status.FrontendImage = frontendImage
	if err := r.client.Status().Update(ctx, app); err != nil {
		return ctrl.Result{}, fmt.Errorf("update the status: %w", err)
	}
	// Without a title the frontend was made without a variable: the pass panics (V-01).
	if title := &frontend.Spec.Template.Spec.Containers[0].Env[0]; title.Value != app.Spec.Title {
		title.Value = app.Spec.Title
		if err := r.client.Update(ctx, frontend); err != nil {
			return ctrl.Result{}, fmt.Errorf("update the title: %w", err)
		}
	}
	return ctrl.Result{}, nil
}

// create creates those objects that are missing, and reads the others, whoever they belong to (V-02).
func (r *classic) create(ctx context.Context, app *v1.VisitorsApp, objects ...client.Object) error {
	for _, obj := range objects {
		if err := ctrl.SetControllerReference(app, obj, r.client.Scheme()); err != nil {
			return fmt.Errorf("set the owner of %s %s: %w", kit.Kind(obj), obj.GetName(), err)
		}
		if _, err := kit.CreateMissing(ctx, r.client, obj); err != nil {
			return err
		}
	}
	return nil
}
