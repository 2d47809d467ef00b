package metacontroller

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
)

// annotationDecorator is on each attachment, with the name of the DecoratorController.
const annotationDecorator = "metacontroller.k8s.io/decorator-controller"

// setupDecorator adds the controller that starts those of DecoratorControllers.
func (m *meta) setupDecorator() error {
	s := &spawner[*v1alpha1.DecoratorController]{
		meta: m, name: decoratorName, described: map[string]any{},
		empty: func() *v1alpha1.DecoratorController { return &v1alpha1.DecoratorController{} },
		spec:  func(dc *v1alpha1.DecoratorController) any { return dc.Spec },
		rules: func(dc *v1alpha1.DecoratorController) []v1alpha1.ResourceRule {
			var rules []v1alpha1.ResourceRule
			for _, r := range dc.Spec.Resources {
				rules = append(rules, r.ResourceRule)
			}
			for _, a := range dc.Spec.Attachments {
				rules = append(rules, a.ResourceRule)
			}
			return rules
		},
		status: func(dc *v1alpha1.DecoratorController) (any, *[]metav1.Condition) {
			dc.Status.ObservedGeneration = dc.Generation
			return &dc.Status, &dc.Status.Conditions
		},
		begin: m.beginDecorator,
	}
	return s.setup(&v1alpha1.DecoratorControllerList{})
}

// decorator is the controller that a DecoratorController describes.
type decorator struct {
	*meta
	dc          *v1alpha1.DecoratorController
	decorated   []decoratedKind
	attachments kinds
	sync        *hook
	finalize    *hook
	related     *customizer
	applied     applied
	finalizer   string
}

// decoratedKind is a kind of objects that are decorated, and which of them are.
type decoratedKind struct {
	kind
	labels, annotations labels.Selector
}

func (d *decoratedKind) matches(object client.Object) bool {
	return d.labels.Matches(labels.Set(object.GetLabels())) && d.annotations.Matches(labels.Set(object.GetAnnotations()))
}

// beginDecorator starts the controller of a DecoratorController. An error that is a problem says what is wrong with it.
func (m *meta) beginDecorator(ctx context.Context, dc *v1alpha1.DecoratorController) error {
	d := &decorator{meta: m, dc: dc, finalizer: "metacontroller.io/decoratorcontroller-" + dc.Name}
	s := spawn{id: decoratorName + "/" + dc.Name, name: dc.Name, reconciler: d}
	for i, rule := range dc.Spec.Resources {
		k, err := m.resolve(ctx, rule.ResourceRule)
		if err != nil {
			return err
		}
		decorated := decoratedKind{kind: k, labels: labels.Everything(), annotations: labels.Everything()}
		if rule.LabelSelector != nil {
			if decorated.labels, err = metav1.LabelSelectorAsSelector(rule.LabelSelector); err != nil {
				return invalid("spec.resources[%d].labelSelector: %v", i, err)
			}
		}
		if a := rule.AnnotationSelector; a != nil {
			decorated.annotations, err = metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: a.MatchAnnotations, MatchExpressions: a.MatchExpressions})
			if err != nil {
				return invalid("spec.resources[%d].annotationSelector: %v", i, err)
			}
		}
		if slices.ContainsFunc(d.decorated, func(other decoratedKind) bool { return other.GroupVersionKind == k.GroupVersionKind }) {
			return invalid("spec.resources has %s of %s twice", rule.Resource, rule.APIVersion)
		}
		d.decorated = append(d.decorated, decorated)
		s.parents = append(s.parents, watched{
			kind: k, changes: parentChanges(isTrue(rule.IgnoreStatusChanges)), keys: func(_ context.Context, object client.Object) []request {
				if d.ignored(object) {
					return nil
				}
				return []request{keyFor(d.kinds(), parentKey{k.GroupVersionKind, client.ObjectKeyFromObject(object)})}
			},
		})
	}
	if len(d.decorated) == 0 {
		return invalid("spec.resources is empty")
	}
	for _, rule := range dc.Spec.Attachments {
		strategy := v1alpha1.UpdateStrategy{}
		if rule.UpdateStrategy != nil {
			strategy.Method = rule.UpdateStrategy.Method
		}
		if rolls(strategy.Method) {
			return invalid("the update method of %s is %s, which attachments do not have", rule.Resource, strategy.Method)
		}
		child, err := m.resolveChild(ctx, rule.ResourceRule, strategy)
		if err != nil {
			return err
		}
		if d.attachments.find(child.GroupVersionKind) != nil {
			return invalid("spec.attachments has %s of %s twice", rule.Resource, rule.APIVersion)
		}
		d.attachments = append(d.attachments, child)
		s.children = append(s.children, watched{kind: child.kind, keys: d.ownersOf})
	}
	if err := d.setHooks(); err != nil {
		return err
	}
	s.related = d.related
	return m.start(s, m.failed(dc))
}

func (d *decorator) setHooks() error {
	hooks := d.dc.Spec.Hooks
	switch {
	case hooks == nil || hooks.Sync == nil:
		return invalid("spec.hooks has no sync")
	case len(d.dc.Spec.EndpointConfigs) > 0:
		return notSupported("spec.endpointConfigs")
	}
	var err error
	if d.sync, err = d.newHook(d.dc.Name, hookSync, hooks.Sync); err != nil {
		return err
	}
	if d.finalize, err = d.newHook(d.dc.Name, hookFinalize, hooks.Finalize); err != nil {
		return err
	}
	customize, err := d.newHook(d.dc.Name, hookCustomize, hooks.Customize)
	if customize != nil {
		d.related = newCustomizer(d.meta, customize, d.dc, d.kinds())
	}
	return err
}

func (d *decorator) kinds() []kind {
	var out []kind
	for _, k := range d.decorated {
		out = append(out, k.kind)
	}
	return out
}

// find returns the decorated kind of an object; nil if it is none.
func (d *decorator) find(object client.Object) *decoratedKind {
	i := slices.IndexFunc(d.decorated, func(k decoratedKind) bool {
		return k.GroupVersionKind == object.GetObjectKind().GroupVersionKind()
	})
	if i < 0 {
		return nil
	}
	return &d.decorated[i]
}

// selected reports whether an object is decorated.
func (d *decorator) selected(object client.Object) bool {
	k := d.find(object)
	return k != nil && k.matches(object)
}

func (d *decorator) ignored(object client.Object) bool {
	return !d.selected(object) && !hasFinalizer(object, d.finalizer)
}

// ownersOf returns the keys of the decorated objects that an attachment belongs to.
func (d *decorator) ownersOf(ctx context.Context, attachment client.Object) []request {
	for _, k := range d.decorated {
		if parent := d.cached(ctx, attachment, k.kind); parent != nil && !d.ignored(parent) {
			return []request{keyFor(d.kinds(), parentKey{k.GroupVersionKind, client.ObjectKeyFromObject(parent)})}
		}
	}
	return nil
}

// keyFor returns the key of a parent in the work queue. Of a controller with parents of several kinds the name begins with
// the kind, as in Deployment.apps:web: a colon is in no name.
func keyFor(parents []kind, key parentKey) request {
	if len(parents) > 1 {
		key.Name = key.GroupKind().String() + ":" + key.Name
	}
	return request{NamespacedName: key.NamespacedName}
}

// parentFor is the inverse of keyFor.
func parentFor(parents []kind, req request) (kind, client.ObjectKey) {
	if len(parents) == 1 {
		return parents[0], req.NamespacedName
	}
	prefix, name, _ := strings.Cut(req.Name, ":")
	for _, k := range parents {
		if k.GroupKind().String() == prefix {
			return k, client.ObjectKey{Namespace: req.Namespace, Name: name}
		}
	}
	return kind{}, client.ObjectKey{}
}

// decoratorRequest is what a sync or finalize hook of a DecoratorController is given.
type decoratorRequest struct {
	Controller  *v1alpha1.DecoratorController `json:"controller"`
	Object      *unstructured.Unstructured    `json:"object"`
	Attachments written                       `json:"attachments"`
	Related     written                       `json:"related"`
	Finalizing  bool                          `json:"finalizing"`
}

// decoratorAnswer is what it answers.
type decoratorAnswer struct {
	Labels             map[string]*string           `json:"labels"`
	Annotations        map[string]*string           `json:"annotations"`
	Status             map[string]any               `json:"status"`
	Attachments        []*unstructured.Unstructured `json:"attachments"`
	ResyncAfterSeconds float64                      `json:"resyncAfterSeconds"`
	Finalized          bool                         `json:"finalized"`

	of     *unstructured.Unstructured
	kinds  kinds
	wanted objects
}

func (a *decoratorAnswer) check() (err error) {
	a.wanted, err = a.kinds.wanted(a.Attachments, a.of)
	return err
}

func (a *decoratorAnswer) objects() []*unstructured.Unstructured { return a.wanted.list() }

func (a *decoratorAnswer) status() map[string]any { return a.Status }

// Reconcile syncs an object.
func (d *decorator) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	k, key := parentFor(d.kinds(), req)
	object := k.object()
	if err := d.client.Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			d.applied.forget(req.NamespacedName)
			d.related.forget(k.GroupVersionKind, key)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	after, err := d.syncObject(ctx, object)
	return d.ended(object, after, d.dc.Spec.ResyncPeriodSeconds, err)
}

func (d *decorator) syncObject(ctx context.Context, object *unstructured.Unstructured) (after time.Duration, err error) {
	if d.ignored(object) {
		return 0, nil
	}
	if err := d.keepFinalizer(ctx, object, d.finalizer, d.finalize != nil); err != nil || d.ignored(object) {
		return 0, err
	}
	observed, err := d.observe(ctx, object)
	if err != nil {
		return 0, err
	}
	related, err := d.related.of(ctx, object)
	if err != nil {
		return 0, err
	}
	due, finalizing := d.sync, false
	if d.finalize != nil && (object.GetDeletionTimestamp() != nil || !d.selected(object)) {
		due, finalizing = d.finalize, true
	}
	answer := &decoratorAnswer{of: object, kinds: d.attachments}
	err = due.ask(ctx, object, &decoratorRequest{
		Controller: d.dc, Object: object, Finalizing: finalizing,
		Attachments: observed.write(due.version, object), Related: related.write(due.version, object),
	}, observed, answer)
	if err != nil {
		return 0, err
	}
	after = time.Duration(answer.ResyncAfterSeconds * float64(time.Second))
	manages := object.GetDeletionTimestamp() == nil || finalizes(object, d.finalizer, d.finalize != nil)
	if err := d.decorate(ctx, object, answer); err != nil {
		return 0, err
	}
	for _, attachment := range answer.wanted.list() {
		annotations := attachment.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationDecorator] = d.dc.Name
		attachment.SetAnnotations(annotations)
	}
	if !manages {
		return after, nil
	}
	return after, d.manage(ctx, &d.applied, d.attachments, object, observed, answer.wanted)
}

// observe returns the attachments that this controller gave an object.
func (d *decorator) observe(ctx context.Context, object *unstructured.Unstructured) (objects, error) {
	out := objects{}
	for _, k := range d.attachments {
		out.add(k.GroupVersionKind)
		list := k.list()
		if err := d.client.List(ctx, list, client.InNamespace(object.GetNamespace())); err != nil {
			return nil, fmt.Errorf("list %s: %w", k.Kind, err)
		}
		for i := range list.Items {
			u := &list.Items[i]
			if metav1.IsControlledBy(u, object) && u.GetAnnotations()[annotationDecorator] == d.dc.Name {
				out.add(k.GroupVersionKind, u)
			}
		}
	}
	return out, nil
}

// decorate gives an object the labels, annotations and status of an answer, and takes the finalizer away when the hook
// says so. A status that is not answered stays.
func (d *decorator) decorate(ctx context.Context, object *unstructured.Unstructured, answer *decoratorAnswer) error {
	k := d.find(object)
	if answer.Status != nil && !reflect.DeepEqual(normal(object.Object["status"]), normal(answer.Status)) {
		if !k.status {
			return fmt.Errorf("its answer has a status, and %s have no subresource status", k.resource)
		}
		object.Object["status"] = answer.Status
		if err := d.client.Status().Update(ctx, object, FieldOwner); err != nil {
			return gone(fmt.Errorf("update the status of %s %s: %w", object.GetKind(), object.GetName(), err), err)
		}
	}
	before := object.DeepCopy()
	object.SetLabels(changed(object.GetLabels(), answer.Labels))
	object.SetAnnotations(changed(object.GetAnnotations(), answer.Annotations))
	if answer.Finalized {
		controllerutil.RemoveFinalizer(object, d.finalizer)
	}
	if reflect.DeepEqual(before.Object["metadata"], object.Object["metadata"]) {
		return nil
	}
	err := d.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), FieldOwner)
	if err != nil {
		return gone(fmt.Errorf("decorate %s %s: %w", object.GetKind(), object.GetName(), err), err)
	}
	d.seen(ctx, object, goneOrAsNewAs(object))
	return nil
}

// gone returns no error if the object of a write is gone.
func gone(err, cause error) error {
	if apierrors.IsNotFound(cause) {
		return nil
	}
	return err
}

// changed returns labels or annotations with the answered ones; those that are null are taken away.
func changed(now map[string]string, answered map[string]*string) map[string]string {
	out := maps.Clone(now)
	for key, value := range answered {
		switch {
		case value == nil:
			delete(out, key)
		case out == nil:
			out = map[string]string{key: *value}
		default:
			out[key] = *value
		}
	}
	return out
}
