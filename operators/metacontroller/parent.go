package metacontroller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/operators/kit"
	"github.com/operator-lab/operator-lab/operators/metacontroller/v1alpha1"
)

type request = reconcile.Request

// compositeRequest is what a sync or finalize hook of a CompositeController is given.
type compositeRequest struct {
	Controller *v1alpha1.CompositeController `json:"controller"`
	Parent     *unstructured.Unstructured    `json:"parent"`
	Children   written                       `json:"children"`
	Related    written                       `json:"related"`
	Finalizing bool                          `json:"finalizing"`
}

// compositeAnswer is what it answers.
type compositeAnswer struct {
	Status             map[string]any               `json:"status"`
	Children           []*unstructured.Unstructured `json:"children"`
	ResyncAfterSeconds float64                      `json:"resyncAfterSeconds"`
	Finalized          bool                         `json:"finalized"`

	of     *unstructured.Unstructured
	kinds  kinds
	wanted objects
}

func (a *compositeAnswer) check() (err error) {
	a.wanted, err = a.kinds.wanted(a.Children, a.of)
	return err
}

func (a *compositeAnswer) objects() []*unstructured.Unstructured { return a.wanted.list() }

func (a *compositeAnswer) status() map[string]any {
	if a.Status == nil {
		return map[string]any{}
	}
	return a.Status
}

// Reconcile syncs a parent.
func (c *composite) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	parent := c.parent.object()
	if err := c.client.Get(ctx, req.NamespacedName, parent); err != nil {
		if apierrors.IsNotFound(err) {
			c.applied.forget(req.NamespacedName)
			c.related.forget(parent.GroupVersionKind(), req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	after, err := c.syncParent(ctx, parent)
	return c.ended(parent, after, c.cc.Spec.ResyncPeriodSeconds, err)
}

// ended returns the result of a sync, with an event if it failed.
func (m *meta) ended(parent *unstructured.Unstructured, after time.Duration, period *int32, err error) (ctrl.Result, error) {
	if busy, is := errors.AsType[*tooMany](err); is {
		return ctrl.Result{RequeueAfter: busy.after}, nil
	}
	if err != nil {
		if apierrors.IsConflict(err) { // the object, or a child, has changed meanwhile, and that comes as an event
			return ctrl.Result{}, err
		}
		m.events.Eventf(parent, nil, corev1.EventTypeWarning, reasonSyncError, "Sync", "Sync error: %v", err)
		return ctrl.Result{}, err
	}
	if period != nil {
		if each := max(time.Second, time.Duration(*period)*time.Second); after == 0 || each < after {
			after = each
		}
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// syncParent asks the hook about a parent and does what it answers. It returns when the hook wants to be asked again; 0
// if it does not say.
func (c *composite) syncParent(ctx context.Context, parent *unstructured.Unstructured) (after time.Duration, err error) {
	if c.ignored(parent) {
		return 0, nil
	}
	if err := c.keepFinalizer(ctx, parent, c.finalizer, c.finalize != nil); err != nil || c.ignored(parent) {
		return 0, err
	}
	observed, err := c.claim(ctx, parent)
	if err != nil {
		return 0, err
	}
	answer, err := c.ask(ctx, parent, observed)
	if err != nil || answer == nil {
		return 0, err
	}
	after = time.Duration(answer.ResyncAfterSeconds * float64(time.Second))
	if answer.Finalized && hasFinalizer(parent, c.finalizer) {
		if err := c.keepFinalizer(ctx, parent, c.finalizer, false); err != nil {
			return 0, err
		}
	}
	if err := c.label(parent, answer.wanted); err != nil {
		return 0, err
	}
	var failed error
	if parent.GetDeletionTimestamp() == nil || finalizes(parent, c.finalizer, c.finalize != nil) {
		failed = c.manage(ctx, &c.applied, c.children, parent, observed, answer.wanted)
	}
	// The status is written also if a child could not be, and last: it is about what was observed.
	return after, errors.Join(failed, c.writeStatus(ctx, parent, answer.Status))
}

// ask asks the hook that is due about a parent, once for each of its revisions if updates roll; nil if none is.
func (c *composite) ask(ctx context.Context, parent *unstructured.Unstructured, observed objects) (*compositeAnswer, error) {
	due, finalizing := c.sync, false
	if c.finalize != nil && (parent.GetDeletionTimestamp() != nil || !c.selector.Matches(labels.Set(parent.GetLabels()))) {
		due, finalizing = c.finalize, true
	}
	if due == nil {
		return nil, nil
	}
	one := func(ctx context.Context, parent *unstructured.Unstructured) (*compositeAnswer, error) {
		related, err := c.related.of(ctx, parent)
		if err != nil {
			return nil, err
		}
		answer := &compositeAnswer{of: parent, kinds: c.children}
		return answer, due.ask(ctx, parent, &compositeRequest{
			Controller: c.cc, Parent: parent, Finalizing: finalizing,
			Children: observed.write(due.version, parent), Related: related.write(due.version, parent),
		}, observed, answer)
	}
	if !c.children.roll() || parent.GetDeletionTimestamp() != nil && !finalizes(parent, c.finalizer, c.finalize != nil) {
		return one(ctx, parent)
	}
	return c.askRevisions(ctx, parent, observed, one)
}

// writeStatus replaces the status of a parent as a whole, with the generation that it is about.
func (c *composite) writeStatus(ctx context.Context, parent *unstructured.Unstructured, status map[string]any) error {
	if status == nil {
		status = map[string]any{}
	}
	status["observedGeneration"] = parent.GetGeneration()
	if reflect.DeepEqual(normal(parent.Object["status"]), normal(status)) {
		return nil
	}
	parent.Object["status"] = status
	err := c.client.Status().Update(ctx, parent, FieldOwner)
	if err != nil && client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("update the status of %s %s: %w", parent.GetKind(), parent.GetName(), err)
	}
	if err == nil {
		c.seen(ctx, parent, asNewAs(parent))
	}
	return nil
}

// keepFinalizer adds a finalizer to an object or removes it, unless that is so already. It is not added to one that is
// being deleted.
func (m *meta) keepFinalizer(ctx context.Context, object *unstructured.Unstructured, name string, wanted bool) error {
	if hasFinalizer(object, name) == wanted || wanted && object.GetDeletionTimestamp() != nil {
		return nil
	}
	before := object.DeepCopy()
	if wanted {
		controllerutil.AddFinalizer(object, name)
	} else {
		controllerutil.RemoveFinalizer(object, name)
	}
	err := m.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), FieldOwner)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the finalizer of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if err == nil {
		m.seen(ctx, object, goneOrAsNewAs(object))
	}
	return nil
}

func hasFinalizer(object client.Object, name string) bool {
	return slices.Contains(object.GetFinalizers(), name)
}

// finalizes reports whether the children of an object that is being deleted are still managed: not when the garbage
// collector does so.
func finalizes(object client.Object, finalizer string, enabled bool) bool {
	return enabled && hasFinalizer(object, finalizer) &&
		!hasFinalizer(object, metav1.FinalizerDeleteDependents) && !hasFinalizer(object, metav1.FinalizerOrphanDependents)
}

// selfUnless maps an object to its own key, unless it is ignored.
func selfUnless(ignored func(client.Object) bool) handler.MapFunc {
	return func(_ context.Context, object client.Object) []request {
		if ignored(object) {
			return nil
		}
		return []request{{NamespacedName: client.ObjectKeyFromObject(object)}}
	}
}

// parentChanges passes the changes of a parent for which it is synced.
func parentChanges(ignoreStatus bool) predicate.Predicate {
	if !ignoreStatus {
		return predicate.ResourceVersionChangedPredicate{}
	}
	return predicate.Or[client.Object](kit.SpecChanged(), predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectNew.GetDeletionTimestamp() != nil }})
}

func isTrue(b *bool) bool { return b != nil && *b }

// fromFields decodes fields of an object.
func fromFields(fields map[string]any, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, into)
}

// normal returns fields with each number in one form and without null, as an API server answers them.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			if value != nil {
				out[key] = normal(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = normal(value)
		}
		return out
	case int64:
		return float64(v)
	}
	return v
}
