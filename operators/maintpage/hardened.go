package maintpage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/kit"
	"github.com/operator-lab/operator-lab/operators/maintpage/v1alpha1"
)

// +kubebuilder:rbac:groups=maintpage.example.com,resources=maintpages,verbs=get;list;watch
// +kubebuilder:rbac:groups=maintpage.example.com,resources=maintpages/status,verbs=patch
// +kubebuilder:rbac:groups=maintpage.example.com,resources=maintpages/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods;services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=maintpage-operator,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=maintpage-operator,resources=events,verbs=create;patch

// These are all the operator may do, and all it does: config/rbac/hardened is generated from them. Of
// maintpages/finalizers it uses nothing, but where OwnerReferencesPermissionEnforcement is on, only who
// may update them may make objects that hold up their owner's deletion. The leases and the events in the
// operator's own namespace are those of leader election.

const (
	// fieldOwner owns the fields the operator writes.
	fieldOwner = client.FieldOwner("maintpage-operator")

	// retryAfter is the time to wait before trying again what somebody else has to make possible, such as
	// by deleting an object whose name is needed. Nothing wakes us when they do; a few seconds cost
	// nothing while a person reads the event.
	retryAfter = 5 * time.Second
)

// hardened compares what there is with what should be, and writes the difference and nothing else, so a
// pass over a MaintPage that is as it should be writes nothing.
//
// It never takes requests from a page that answers to give them to one that does not: the Service is
// turned only when the page that is asked for is Ready. The other way round, when that page stops being
// Ready later, the Service stays: somebody in maintenance does not want the application back by accident.
//
// It needs no finalizer: all it makes is in the namespace of the MaintPage and has it as its owner, so
// the garbage collector cleans up.
type hardened struct {
	client  client.Client
	writer  kit.Writer
	events  events.EventRecorder
	written kit.LastWritten[*v1alpha1.MaintPage]
}

// setupHardened watches all kinds it makes. Changes of a MaintPage other than to its spec are left out,
// most of them being the operator's own to the status.
func setupHardened(mgr ctrl.Manager, o Options) error {
	// To find those of an earlier name of the application.
	if err := kit.IndexByController(mgr, &appsv1.Deployment{}, &corev1.Service{}); err != nil {
		return err
	}
	r := &hardened{
		client: mgr.GetClient(),
		writer: kit.Writer{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Owner: fieldOwner},
		events: mgr.GetEventRecorder(string(fieldOwner)),
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1alpha1.MaintPage{}, builder.WithPredicates(kit.SpecChanged())).
		Owns(&corev1.Pod{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		WithOptions(o.Controller).
		Complete(r)
}

// step is one part of a pass. A failing one does not keep the next from its turn.
type step func(context.Context, *pass) error

// Reconcile makes the objects of a MaintPage what they should be, then says how that went.
func (r *hardened) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	page := &v1alpha1.MaintPage{}
	if err := r.client.Get(ctx, req.NamespacedName, page); err != nil {
		if apierrors.IsNotFound(err) {
			r.written.Forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("get the MaintPage: %w", err)
	}
	if !page.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector takes everything away
	}

	p := &pass{page: page, known: r.written.Latest(page).Status}
	if err := r.look(ctx, p); err != nil {
		return ctrl.Result{}, err // without knowing what there is there is no status to write
	}
	var errs []error
	for _, step := range []step{r.keepPod, r.keepDeployment, r.keepService, r.prune} {
		errs = append(errs, p.heed(ctx, step(ctx, p)))
	}
	errs = append(errs, r.writeStatus(ctx, p))
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, err
	}
	if p.stuck() {
		return ctrl.Result{RequeueAfter: retryAfter}, nil
	}
	return ctrl.Result{}, nil
}

// look reads what there is. It writes nothing.
func (r *hardened) look(ctx context.Context, p *pass) error {
	app := p.page.Spec.AppConfig.AppName
	return errors.Join(
		r.read(ctx, p, podName(p.page), &p.pod),
		r.read(ctx, p, app, &p.deployment),
		r.read(ctx, p, app, &p.service),
	)
}

// read reads an object of the namespace. One that is not there is left without a UID.
func (r *hardened) read(ctx context.Context, p *pass, name string, into client.Object) error {
	err := r.client.Get(ctx, client.ObjectKey{Namespace: p.page.Namespace, Name: name}, into)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get %T %s: %w", into, name, err)
	}
	return nil
}

// keepPod ensures that there is a Pod with the maintenance page that has not ended. Another image takes another Pod:
// changed in place, the old page would go on being Ready for a moment, with nothing about it to say that it is the old
// one. A Pod that classic made has no probe, and none can be added: it makes way for a new one, which the event of its
// end lets us make. One that we made and cannot change was changed by somebody's webhook on its way in; the next would be
// too.
func (r *hardened) keepPod(ctx context.Context, p *pass) error {
	over := p.pod.Status.Phase == corev1.PodFailed || p.pod.Status.Phase == corev1.PodSucceeded
	image := p.pod.Annotations[ImageAnnotation]
	switch {
	case !p.mine(&p.pod):
	case over:
		return r.replacePod(ctx, p, "it is "+string(p.pod.Status.Phase))
	case image != "" && image != p.page.Spec.MaintPageConfig.MaintPageImage:
		return r.replacePod(ctx, p, "another image is asked for")
	}
	classics := p.mine(&p.pod) && p.pod.Labels[PageLabel] == ""
	err := r.keep(ctx, p, &p.pod, wantedPod(p.page))
	if classics && apierrors.IsInvalid(err) {
		return r.replacePod(ctx, p, "it cannot be changed")
	}
	return err
}

func (r *hardened) replacePod(ctx context.Context, p *pass, because string) error {
	if !p.pod.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := r.writer.Delete(ctx, &p.pod); err != nil {
		return err
	}
	r.note(p, &p.pod, corev1.EventTypeNormal, "Replaced", "Replace", "Replaced Pod %s: %s", p.pod.Name, because)
	p.pod = corev1.Pod{}
	return nil
}

// keepDeployment ensures that the application is there as the spec says, replicas and all.
func (r *hardened) keepDeployment(ctx context.Context, p *pass) error {
	return r.keep(ctx, p, &p.deployment, wantedDeployment(p.page))
}

// keepService ensures that the Service is there, and turned to the page that should get the requests.
// Where the application has no Deployment because somebody else has its name, the Service would have
// that one's pods, so there is none.
func (r *hardened) keepService(ctx context.Context, p *pass) error {
	if p.deployment.UID != "" && !p.mine(&p.deployment) && p.service.UID == "" {
		return nil
	}
	before := p.served()
	next := p.nextSelector()
	p.moving = before != "" && !maps.Equal(next, p.service.Spec.Selector)
	want := wantedService(p.page, next)
	err := r.keep(ctx, p, &p.service, want)
	if apierrors.IsInvalid(err) && p.mine(&p.service) {
		// Applying adds to the ports what somebody else left there; both together are not valid.
		err = r.replacePorts(ctx, p, want)
	}
	if now := p.served(); err == nil && before != "" && now != before {
		r.note(p, &p.service, corev1.EventTypeNormal, "Switched", "Switch", "Requests go to the %s page now", now)
	}
	return err
}

// prune deletes what went by an earlier name of the application, once that of the new name is Ready.
func (r *hardened) prune(ctx context.Context, p *pass) error {
	if len(p.taken) > 0 || !p.answers(production) {
		return nil
	}
	var services corev1.ServiceList
	var deployments appsv1.DeploymentList
	for _, list := range []client.ObjectList{&services, &deployments} {
		err := r.client.List(ctx, list, client.InNamespace(p.page.Namespace), kit.ControlledBy(p.page.UID))
		if err != nil {
			return fmt.Errorf("list what there is: %w", err)
		}
	}
	var ours []client.Object
	for i := range services.Items {
		ours = append(ours, &services.Items[i])
	}
	for i := range deployments.Items {
		ours = append(ours, &deployments.Items[i])
	}
	for _, obj := range ours {
		if obj.GetName() == p.page.Spec.AppConfig.AppName || obj.GetDeletionTimestamp() != nil {
			continue
		}
		if err := r.writer.Delete(ctx, obj); err != nil {
			return err
		}
		r.note(p, obj, corev1.EventTypeNormal, "Pruned", "Prune",
			"Deleted %s %s, of an earlier name of the application", kit.Kind(obj), obj.GetName())
	}
	return nil
}
