package load_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/scenarios/load"
	"github.com/operator-lab/operator-lab/scenarios/zoo"
)

// planted are what operators do that does not scale, with what is to be found.
var planted = []struct {
	bug  string
	sort load.Sort
	says string
}{
	{"lists all, cached", load.NoIndex, "lists all of kind Secret from its cache at each reconcile (scenarios/load_test/zoo_test.go:"},
	{"ping-pong", load.Restless, "they write data.state of ConfigMap again and again: … "},
	{"lists all, live", load.ListsAll, "lists all of kind Secret at the API server at each reconcile (scenarios/load_test/zoo_test.go:"},
	{"wakes all", load.WakesAll, "an event of a Secret puts all objects into the queue of controller crowd: 64 × 64 = 4,096 keys when all is listed anew with 64 ConfigMaps"},
	{"writes each time", load.WritesAgain, "of update Secret (scenarios/load_test/zoo_test.go:"},
}

// mended are operators that do it otherwise: the first one lists from its cache by an index, its only controller writes what differs,
// and an event wakes the object that it concerns. The second one lists at the API server, by a label.
var mended = []string{"mended", "lists its own, live"}

// crowd is an operator that makes a Secret for each ConfigMap with a label, and says so in the ConfigMap.
type crowd struct {
	client.Client
	live client.Reader
	how  string // one of planted
}

const label, field = "crowd", "of"

func (c *crowd) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	parent := &corev1.ConfigMap{}
	if err := c.Get(ctx, req.NamespacedName, parent); err != nil || parent.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	child, err := c.child(ctx, parent)
	if err != nil {
		return ctrl.Result{}, err
	}
	if child == nil {
		child = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: parent.Namespace, Name: parent.Name + "-s", Labels: map[string]string{field: parent.Name},
		}}
		if err := ctrl.SetControllerReference(parent, child, c.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, child))
	}
	if c.how == "writes each time" {
		if err := c.Update(ctx, child); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, c.say(ctx, parent, "made")
}

// say writes the state of an object, unless it is that already.
func (c *crowd) say(ctx context.Context, parent *corev1.ConfigMap, state string) error {
	if parent.Data["state"] == state {
		return nil
	}
	parent = parent.DeepCopy()
	parent.Data = map[string]string{"state": state}
	return c.Update(ctx, parent)
}

// child returns the Secret of an object; nil if there is none.
func (c *crowd) child(ctx context.Context, parent *corev1.ConfigMap) (*corev1.Secret, error) {
	var all corev1.SecretList
	var reader client.Reader = c.Client
	options := []client.ListOption{client.InNamespace(parent.Namespace)}
	switch c.how {
	case "lists all, live":
		reader = c.live
	case "lists its own, live":
		reader, options = c.live, append(options, client.MatchingLabels{field: parent.Name})
	case "lists all, cached":
	default:
		options = append(options, client.MatchingFields{field: parent.Name})
	}
	if err := reader.List(ctx, &all, options...); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if all.Items[i].Labels[field] == parent.Name {
			return &all.Items[i], nil
		}
	}
	return nil, nil
}

// all returns all objects of a namespace.
func (c *crowd) all(ctx context.Context, o client.Object) (out []reconcile.Request) {
	var list corev1.ConfigMapList
	if c.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.MatchingLabels{label: c.label()}) != nil {
		return nil
	}
	for _, parent := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&parent)})
	}
	return out
}

func (c *crowd) label() string { return labelOf(c.how) }

// labelOf returns the value of the label of the objects of an operator: none has to do with those of another one.
func labelOf(how string) string {
	var out []rune
	for _, r := range how {
		if r >= 'a' && r <= 'z' {
			out = append(out, r)
		}
	}
	return string(out)
}

// contrary is a second controller that wants another state.
type contrary struct{ *crowd }

func (c contrary) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	parent := &corev1.ConfigMap{}
	if err := c.Get(ctx, req.NamespacedName, parent); err != nil || parent.Data["state"] == "" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{}, c.say(ctx, parent, "checked")
}

// crowdThat returns crowd as an operator of the lab.
func crowdThat(how string) operators.Operator {
	return zoo.Operator("crowd", func(mgr ctrl.Manager, o controller.Options) error {
		c := &crowd{Client: mgr.GetClient(), live: mgr.GetAPIReader(), how: how}
		err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Secret{}, field, func(o client.Object) []string { //nolint:forbidigo // it has none
			return []string{o.GetLabels()[field]}
		})
		if err != nil {
			return err
		}
		mine := builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetLabels()[label] == c.label() }))
		b := ctrl.NewControllerManagedBy(mgr).WithOptions(o).Named("crowd").For(&corev1.ConfigMap{}, mine)
		if c.how == "wakes all" {
			b.Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.all))
		} else {
			b.Owns(&corev1.Secret{})
		}
		if err := b.Complete(c); err != nil || c.how != "ping-pong" {
			return err
		}
		return ctrl.NewControllerManagedBy(mgr).WithOptions(o).Named("contrary").For(&corev1.ConfigMap{}, mine).Complete(contrary{c})
	})
}
