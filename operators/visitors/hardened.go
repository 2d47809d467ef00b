package visitors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/kit"
	v1 "github.com/operator-lab/operator-lab/operators/visitors/v1"
)

// +kubebuilder:rbac:groups=example.com,resources=visitorsapps,verbs=get;list;watch
// +kubebuilder:rbac:groups=example.com,resources=visitorsapps/status,verbs=patch
// +kubebuilder:rbac:groups=example.com,resources=visitorsapps/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets;services;persistentvolumeclaims,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=visitors-operator,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=visitors-operator,resources=events,verbs=create;patch

// These are all the operator may do, and all it does: config/rbac/hardened is generated from them. It deletes nothing. Of
// visitorsapps/finalizers it uses nothing, but where OwnerReferencesPermissionEnforcement is on, only who may update them
// may make objects that hold up their owner's deletion.

const (
	// fieldOwner owns the fields the operator writes.
	fieldOwner = client.FieldOwner("visitors-operator")

	// retryAfter is the time to wait before trying again what somebody else has to make possible, such as by deleting an
	// object whose name is needed.
	retryAfter = 5 * time.Second
)

// hardened compares what there is with what should be, and writes the difference and nothing else, so a pass over a
// VisitorsApp that is as it should be writes nothing. It needs no finalizer: all it makes has the VisitorsApp as its
// owner, so the garbage collector cleans up, the data included.
type hardened struct {
	client  client.Client
	writer  kit.Writer
	events  events.EventRecorder
	written kit.LastWritten[*v1.VisitorsApp]
}

// setupHardened watches all kinds it makes. Changes of a VisitorsApp other than to its spec are left out, most of them
// being the operator's own to the status.
func setupHardened(mgr ctrl.Manager, o Options) error {
	r := &hardened{
		client: mgr.GetClient(),
		writer: kit.Writer{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Owner: fieldOwner},
		events: mgr.GetEventRecorder(string(fieldOwner)),
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1.VisitorsApp{}, builder.WithPredicates(kit.SpecChanged())).
		Owns(&corev1.Secret{}).
		Owns(&corev1.PersistentVolumeClaim{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		WithOptions(o.Controller).
		Complete(r)
}

// pass holds what one call of Reconcile has read, and what came of it.
type pass struct {
	app         *v1.VisitorsApp // from the cache, never changed
	secret      corev1.Secret
	deployments map[tier]*appsv1.Deployment // as they are now; one that is not there has no UID

	taken    []string // the objects of somebody else that have a name we need, such as "Service ex-mysql-service"
	rejected string   // why the API server, or we, refuse something

	known v1.VisitorsAppStatus // the status as it is now
}

// Reconcile makes the objects of a VisitorsApp what they should be, then says how that went.
func (r *hardened) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	app := &v1.VisitorsApp{}
	if err := r.client.Get(ctx, req.NamespacedName, app); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.written.Forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("get the VisitorsApp: %w", err)
	}
	if !app.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector takes everything away
	}
	p := &pass{app: app, known: r.written.Latest(app).Status, deployments: map[tier]*appsv1.Deployment{
		mysqlTier: {}, backendTier: {}, frontendTier: {},
	}}
	why, err := kit.Refused(ctx, r.keepAll(ctx, p))
	p.rejected = cmp.Or(p.rejected, why)
	if err := errors.Join(err, r.writeStatus(ctx, p)); err != nil {
		return ctrl.Result{}, err
	}
	if len(p.taken) > 0 || p.rejected != "" {
		return ctrl.Result{RequeueAfter: retryAfter}, nil
	}
	return ctrl.Result{}, nil
}

// keepAll keeps the tiers in their order. One that does not exist yet waits until the one before it is rolled out.
func (r *hardened) keepAll(ctx context.Context, p *pass) error {
	if err := r.keepSecret(ctx, p); err != nil || !p.mine(&p.secret) || p.rejected != "" {
		return err
	}
	if err := r.keep(ctx, p, &corev1.PersistentVolumeClaim{}, wantedClaim(p.app)); err != nil {
		return err
	}
	before := true
	for _, t := range []struct {
		tier       tier
		deployment *unstructured.Unstructured
		service    *unstructured.Unstructured
	}{
		{mysqlTier, wantedMySQL(p.app, &p.secret), wantedService(p.app, mysqlTier, mysqlPort)},
		{backendTier, wantedBackend(p.app, &p.secret), wantedService(p.app, backendTier, backendPort)},
		{frontendTier, wantedFrontend(p.app), wantedService(p.app, frontendTier, frontendPort)},
	} {
		deployment := p.deployments[t.tier]
		if err := r.read(ctx, t.deployment, deployment); err != nil {
			return err
		}
		if deployment.UID == "" && !before {
			return nil // the event of the tier before it brings the next pass
		}
		if err := errors.Join(r.ensure(ctx, p, deployment, t.deployment), r.keep(ctx, p, &corev1.Service{}, t.service)); err != nil {
			return err
		}
		before = before && p.ready(t.tier)
	}
	return nil
}

// keep reads an object into current, and makes it as it should be.
func (r *hardened) keep(ctx context.Context, p *pass, current client.Object, want *unstructured.Unstructured) error {
	if err := r.read(ctx, want, current); err != nil {
		return err
	}
	return r.ensure(ctx, p, current, want)
}

// read reads an object by its name. One that is not there is left without a UID.
func (r *hardened) read(ctx context.Context, want *unstructured.Unstructured, into client.Object) error {
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(want), into); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	return nil
}

// ensure makes an object as it should be. One of somebody else is left alone, and noted.
func (r *hardened) ensure(ctx context.Context, p *pass, current client.Object, want *unstructured.Unstructured) error {
	change, err := r.writer.Ensure(ctx, current, want, p.mine)
	if change == kit.Taken {
		p.taken = append(p.taken, want.GetKind()+" "+want.GetName())
	}
	return err
}

// keepSecret keeps the user and password. They are read back from the Secret, where somebody may have changed them; what
// is missing there is made.
func (r *hardened) keepSecret(ctx context.Context, p *pass) error {
	want := wantedSecret(p.app, nil)
	if err := r.read(ctx, want, &p.secret); err != nil {
		return err
	}
	if p.secret.UID != "" {
		for key, value := range p.secret.Data {
			if strings.ContainsFunc(string(value), unquotable) && key != initFile {
				p.rejected = fmt.Sprintf("Secret %s: the %s has a quote, a backslash or a character that cannot be printed", p.secret.Name, key)
				return nil
			}
		}
		want = wantedSecret(p.app, p.secret.Data)
		want.SetResourceVersion(p.secret.ResourceVersion) // so that a password that was written meanwhile is not written over
	}
	return r.ensure(ctx, p, &p.secret, want)
}

// mine tells whether this VisitorsApp, and not an earlier one of its name, controls an object.
func (p *pass) mine(obj client.Object) bool {
	return obj.GetUID() != "" && metav1.IsControlledBy(obj, p.app)
}

// ready tells whether a tier can do its work, as the spec says.
func (p *pass) ready(t tier) bool {
	d := p.deployments[t]
	return p.mine(d) && kit.RolledOut(d) && d.Spec.Replicas != nil && d.Status.AvailableReplicas == *d.Spec.Replicas
}
