package metacontroller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/operator-lab/operator-lab/operators/kit"
	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
)

// The names of the two controllers that start the others.
const (
	compositeName = "compositecontroller"
	decoratorName = "decoratorcontroller"
)

// The reasons of events.
const (
	reasonStarted     = "Started"
	reasonStopped     = "Stopped"
	reasonCreateError = "CreateError" // a controller could not be started
	reasonSyncError   = "SyncError"   // an object could not be synced
)

// meta has what all controllers of a manager share.
type meta struct {
	options   Options
	mgr       ctrl.Manager
	client    client.Client
	live      client.Reader // past the cache
	events    events.EventRecorder
	discovery discovery.DiscoveryInterface
	running   *running
}

func newMeta(mgr ctrl.Manager, o Options) (*meta, error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	return &meta{
		options: o, mgr: mgr, client: mgr.GetClient(), live: mgr.GetAPIReader(), events: mgr.GetEventRecorder("metacontroller"),
		discovery: d, running: &running{ends: map[string]*life{}},
	}, nil
}

// resolve finds the kind of a resource. An error that is a problem says that it is not served.
func (m *meta) resolve(ctx context.Context, rule v1alpha1.ResourceRule) (kind, error) {
	gv, err := schema.ParseGroupVersion(rule.APIVersion)
	if err != nil {
		return kind{}, invalid("the apiVersion %q is none: %v", rule.APIVersion, err)
	}
	if rule.Resource != strings.ToLower(rule.Resource) || rule.Resource == "" {
		return kind{}, invalid("the resource %q is no plural in lower case, such as deployments", rule.Resource)
	}
	// The definition of a custom resource is known sooner than the API server's list of resources has it.
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err = m.client.Get(ctx, client.ObjectKey{Name: rule.Resource + "." + gv.Group}, crd)
	switch {
	case err == nil:
		return kindOf(crd, gv)
	case !apierrors.IsNotFound(err):
		return kind{}, err
	}
	served, err := m.discovery.ServerResourcesForGroupVersion(gv.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return kind{}, fmt.Errorf("list the resources of %s: %w", gv, err)
	}
	k := kind{resource: rule.Resource}
	if served != nil {
		for _, r := range served.APIResources {
			switch r.Name {
			case rule.Resource:
				k.GroupVersionKind, k.namespaced = gv.WithKind(r.Kind), r.Namespaced
			case rule.Resource + "/status":
				k.status = true
			}
		}
	}
	if k.Kind == "" {
		return k, noSuchResource(rule)
	}
	return k, nil
}

func noSuchResource(rule v1alpha1.ResourceRule) error {
	return &problem{v1alpha1.ReasonNoSuchResource, fmt.Sprintf("the resource %s of %s is not served", rule.Resource, rule.APIVersion)}
}

// kindOf returns the kind that a definition defines, if its version is served.
func kindOf(crd *apiextensionsv1.CustomResourceDefinition, gv schema.GroupVersion) (kind, error) {
	established := false
	for _, c := range crd.Status.Conditions {
		established = established || c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == gv.Version && v.Served && established {
			return kind{
				GroupVersionKind: gv.WithKind(crd.Spec.Names.Kind), resource: crd.Spec.Names.Plural,
				namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
				status:     v.Subresources != nil && v.Subresources.Status != nil,
			}, nil
		}
	}
	return kind{}, noSuchResource(v1alpha1.ResourceRule{APIVersion: gv.String(), Resource: crd.Spec.Names.Plural})
}

// resolveChild finds a kind that a hook may answer.
func (m *meta) resolveChild(ctx context.Context, rule v1alpha1.ResourceRule, strategy v1alpha1.UpdateStrategy) (childKind, error) {
	switch strategy.Method {
	case "":
		strategy.Method = v1alpha1.OnDelete
	case v1alpha1.OnDelete, v1alpha1.Recreate, v1alpha1.InPlace, v1alpha1.RollingRecreate, v1alpha1.RollingInPlace:
	default:
		return childKind{}, invalid("the update method of %s is %q, and can be OnDelete, Recreate, InPlace, RollingRecreate or RollingInPlace",
			rule.Resource, strategy.Method)
	}
	k, err := m.resolve(ctx, rule)
	return childKind{kind: k, strategy: strategy}, err
}

// spawn starts a controller of a name for kinds of parents and children.
type spawn struct {
	id, name string
	// reconciler syncs a parent.
	reconciler reconcile.Reconciler
	parents    []watched
	children   []watched
	// related is given the function that lets the controller watch another kind; nil: nobody is.
	related *customizer
}

// watched is a kind to watch, with what a change of an object means.
type watched struct {
	kind kind
	// object is one of that kind. The default has no type.
	object  client.Object
	keys    handler.MapFunc
	changes predicate.Predicate
}

// start starts a controller, which ends when running.stop is called with its id.
func (m *meta) start(s spawn, failed func(error)) error {
	o := m.options.Controller
	o.DefaultFromConfig(m.mgr.GetControllerOptions())
	o.Reconciler, o.MaxConcurrentReconciles = s.reconciler, m.options.Workers
	o.SkipNameValidation = new(true) // the name comes again whenever the object is changed
	if o.Logger.GetSink() == nil {
		o.Logger = m.mgr.GetLogger()
	}
	c, err := controller.NewUnmanaged(s.name, o)
	if err != nil {
		return err
	}
	h := &handlers{Cache: m.mgr.GetCache()}
	watch := func(w watched) error {
		if w.changes == nil {
			w.changes = predicate.ResourceVersionChangedPredicate{}
		}
		if w.object == nil {
			w.object = w.kind.object()
		}
		return c.Watch(source.Kind(h, w.object, handler.EnqueueRequestsFromMapFunc(w.keys), w.changes))
	}
	for _, w := range append(s.parents, s.children...) {
		if err := watch(w); err != nil {
			return err
		}
	}
	if s.related != nil {
		s.related.watch = watch
	}
	m.running.start(s.id, c, h, failed)
	return nil
}

// spawner starts and stops the controllers that objects of one type describe.
type spawner[T client.Object] struct {
	*meta
	name string
	// described are the specs of the controllers that run, by name. Only its one worker uses it.
	described map[string]any
	empty     func() T
	spec      func(T) any
	rules     func(T) []v1alpha1.ResourceRule
	// status returns the status of an object, and its conditions.
	status func(T) (any, *[]metav1.Condition)
	begin  func(context.Context, T) error
}

// setup adds the controller of the type.
func (s *spawner[T]) setup(list client.ObjectList) error {
	o := s.options.Controller
	o.MaxConcurrentReconciles = 1
	named := func(ctx context.Context, crd client.Object) []ctrl.Request {
		all := list.DeepCopyObject().(client.ObjectList)
		if err := s.mgr.GetCache().List(ctx, all); err != nil {
			return nil
		}
		var out []ctrl.Request
		_ = apimeta.EachListItem(all, func(item runtime.Object) error {
			for _, rule := range s.rules(item.(T)) {
				if gv, err := schema.ParseGroupVersion(rule.APIVersion); err == nil && rule.Resource+"."+gv.Group == crd.GetName() {
					out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(item.(T))})
					break
				}
			}
			return nil
		})
		return out
	}
	return ctrl.NewControllerManagedBy(s.mgr).Named(s.name).
		For(s.empty(), builder.WithPredicates(kit.SpecChanged())).
		Watches(&apiextensionsv1.CustomResourceDefinition{}, handler.EnqueueRequestsFromMapFunc(named)).
		WithOptions(o).
		Complete(reconcile.Func(s.reconcile))
}

// reconcile starts, restarts or stops the controller that an object describes.
func (s *spawner[T]) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	id := s.name + "/" + req.Name
	object := s.empty()
	if err := s.client.Get(ctx, req.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			s.running.stop(id)
			delete(s.described, id)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	described, err := s.describe(ctx, object)
	if err == nil && reflect.DeepEqual(s.described[id], described) {
		return ctrl.Result{}, s.tell(ctx, object, nil)
	}
	if s.described[id] != nil {
		s.running.stop(id)
		delete(s.described, id)
		s.events.Eventf(object, nil, corev1.EventTypeNormal, reasonStopped, "Stop", "Stopped controller: %s", object.GetName())
	}
	if err == nil {
		err = s.begin(ctx, object)
	}
	wrong, is := errors.AsType[*problem](err)
	switch {
	case is: // an event comes when what is wrong was mended
		return ctrl.Result{}, s.tell(ctx, object, wrong)
	case err != nil:
		return ctrl.Result{}, err
	}
	s.described[id] = described
	s.events.Eventf(object, nil, corev1.EventTypeNormal, reasonStarted, "Start", "Started controller: %s", object.GetName())
	return ctrl.Result{}, s.tell(ctx, object, nil)
}

// description is what a controller was started with: if it changes, the controller is started again.
type description struct {
	spec  any
	kinds []kind
}

func (s *spawner[T]) describe(ctx context.Context, object T) (*description, error) {
	d := &description{spec: s.spec(object)}
	for _, rule := range s.rules(object) {
		k, err := s.resolve(ctx, rule)
		if err != nil {
			return nil, err
		}
		d.kinds = append(d.kinds, k)
	}
	return d, nil
}

// tell writes the condition Ready, and an event if it is not.
func (s *spawner[T]) tell(ctx context.Context, object T, wrong *problem) error {
	status, conditions := s.status(object)
	ready := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonStarted,
		Message: "the controller runs", ObservedGeneration: object.GetGeneration(),
	}
	if wrong != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, wrong.reason, wrong.message
	}
	if !apimeta.SetStatusCondition(conditions, ready) {
		return nil
	}
	if wrong != nil {
		s.events.Eventf(object, nil, corev1.EventTypeWarning, reasonCreateError, "Start", "Cannot start controller %s: %s", object.GetName(), wrong.message)
	}
	_, err := kit.ApplyStatus(ctx, s.client, FieldOwner, object, status)
	return err
}

// failed returns what to do when a controller ends by itself.
func (m *meta) failed(object client.Object) func(error) {
	return func(err error) {
		m.mgr.GetLogger().Error(err, "A controller has ended", "name", object.GetName())
		m.events.Eventf(object, nil, corev1.EventTypeWarning, reasonCreateError, "Start", "Controller %s has ended: %v", object.GetName(), err)
	}
}

// ownerOf returns the key of the parent of a kind that a child is controlled by; false if that is another kind.
func ownerOf(child client.Object, parent kind) (client.ObjectKey, bool) {
	ref := metav1.GetControllerOf(child)
	if ref == nil || ref.Kind != parent.Kind {
		return client.ObjectKey{}, false
	}
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Group != parent.Group {
		return client.ObjectKey{}, false
	}
	key := client.ObjectKey{Name: ref.Name}
	if parent.namespaced {
		key.Namespace = child.GetNamespace()
	}
	return key, true
}

// cached returns the parent that a child is controlled by, from the cache; nil if there is none with that UID.
func (m *meta) cached(ctx context.Context, child client.Object, parent kind) *unstructured.Unstructured {
	key, is := ownerOf(child, parent)
	if !is {
		return nil
	}
	u := parent.object()
	if err := m.mgr.GetCache().Get(ctx, key, u); err != nil || u.GetUID() != metav1.GetControllerOf(child).UID {
		return nil
	}
	return u
}
