package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"testing/fstest"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/operators"
)

// keeper is an operator with at most one bug. For each ConfigMap with the label keep it makes two more, and says in the
// first one that it is ready.
type keeper struct {
	client.Client
	live client.Reader
	bug  string
	// made is progress kept in memory.
	made map[client.ObjectKey]bool
}

// The bugs of keeper; each is of a class of its own.
const (
	mended = ""
	// madeInTheMiddle makes the second object only right after it has made the first one.
	madeInTheMiddle = "made in the middle"
	// statusFirst says that all is ready before it is.
	statusFirst = "status before the deed"
	// existsIsFatal takes an object that is there already for a failure for ever.
	existsIsFatal = "already exists is fatal"
	// inMemory remembers in its memory what it has made.
	inMemory = "progress in memory"
	// swallowed ignores errors, and says that all is ready.
	swallowed = "error swallowed"
	// counted makes an object with a generated name unless its cache has one already.
	counted = "generated name, counted in the cache"
	// countedLive asks the API server instead.
	countedLive = "generated name, counted live"
	// unwatched does not hear of what happens to the objects that it makes.
	unwatched = "child not restored"
	// notCompared takes an object that is there for the one that it wants.
	notCompared = "child not compared"
	// stamped writes the time of its first reconcile in each of its lives.
	stamped = "time of the start written"
)

// bugs are the bugs, each with the fault that finds it, and without the bug.
var bugs = []struct{ name, by, mended string }{
	{counted, "stale-restart", countedLive},
	{madeInTheMiddle, "crash-after", mended},
	{statusFirst, "crash-after", mended},
	{existsIsFatal, "lost-reply", mended},
	{inMemory, "error", mended},
	{inMemory, "remake", mended},
	{swallowed, "timeout", mended},
	{unwatched, "delete-child", mended},
	{notCompared, "change-child", mended},
	{stamped, "restart", mended},
}

// reader reads past the cache, which is behind at times, unless the bug is about that: what an operator does next is to
// depend on the fault alone.
func (k *keeper) reader() client.Reader {
	if k.bug == counted {
		return k.Client
	}
	return k.live
}

func (k *keeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	parent := &corev1.ConfigMap{}
	if err := k.reader().Get(ctx, req.NamespacedName, parent); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if parent.Labels["keep"] == "" || parent.Data["failed"] != "" || (k.bug == statusFirst || k.bug == swallowed) && parent.Data["ready"] != "" {
		return ctrl.Result{}, nil
	}
	if k.bug == counted || k.bug == countedLive {
		return ctrl.Result{}, k.atLeastOne(ctx, parent)
	}
	if k.bug == statusFirst {
		if err := k.say(ctx, parent, "ready"); err != nil {
			return ctrl.Result{}, err
		}
	}
	if k.bug == inMemory && k.made[req.NamespacedName] {
		return ctrl.Result{}, k.say(ctx, parent, "ready")
	}
	if k.bug == stamped && !k.made[req.NamespacedName] {
		if err := k.stamp(ctx, parent); err != nil {
			return ctrl.Result{}, err
		}
	}
	k.made[req.NamespacedName] = true
	fresh, err := k.child(ctx, parent, "-a")
	if err == nil && (fresh || k.bug != madeInTheMiddle) {
		_, err = k.child(ctx, parent, "-b")
	}
	switch {
	case k.bug == existsIsFatal && apierrors.IsAlreadyExists(err):
		return ctrl.Result{}, k.say(ctx, parent, "failed")
	case err != nil && k.bug != swallowed:
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, k.say(ctx, parent, "ready")
}

// atLeastOne makes an object with a generated name unless the parent has one.
func (k *keeper) atLeastOne(ctx context.Context, parent *corev1.ConfigMap) error {
	of := client.MatchingLabels{"of": parent.Name}
	var have corev1.ConfigMapList
	if err := k.reader().List(ctx, &have, client.InNamespace(parent.Namespace), of); err != nil {
		return err
	}
	if len(have.Items) == 0 {
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, GenerateName: parent.Name + "-", Labels: of}}
		if err := errors.Join(ctrl.SetControllerReference(parent, child, k.Scheme()), k.Create(ctx, child)); err != nil {
			return err
		}
	}
	return k.say(ctx, parent, "ready")
}

// say sets a key of the object.
func (k *keeper) say(ctx context.Context, parent *corev1.ConfigMap, key string) error {
	if parent.Data == nil {
		parent.Data = map[string]string{}
	}
	if parent.Data[key] != "" {
		return nil
	}
	parent.Data[key] = "true"
	return k.Update(ctx, parent)
}

// stamp writes the time into a Secret, which nobody watches.
func (k *keeper) stamp(ctx context.Context, parent *corev1.ConfigMap) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name + "-seen"}}
	err := k.live.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	secret.Data = map[string][]byte{"at": []byte(time.Now().Format(time.RFC3339Nano))}
	if apierrors.IsNotFound(err) {
		return errors.Join(ctrl.SetControllerReference(parent, secret, k.Scheme()), k.Create(ctx, secret))
	}
	return errors.Join(err, k.Update(ctx, secret))
}

// child makes an object that belongs to the parent, unless it is there.
func (k *keeper) child(ctx context.Context, parent *corev1.ConfigMap, suffix string) (fresh bool, err error) {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name + suffix}}
	if k.bug != existsIsFatal {
		if err := k.reader().Get(ctx, client.ObjectKeyFromObject(child), child); err == nil && child.Data["of"] != parent.Name && k.bug != notCompared {
			child.Data = map[string]string{"of": parent.Name}
			return false, k.Update(ctx, child)
		} else if !apierrors.IsNotFound(err) {
			return false, err
		}
	} else if parent.Data["ready"] != "" {
		return false, nil
	}
	child = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name + suffix}, Data: map[string]string{"of": parent.Name},
	}
	if err := ctrl.SetControllerReference(parent, child, k.Scheme()); err != nil {
		return false, err
	}
	err = k.Create(ctx, child)
	if apierrors.IsAlreadyExists(err) && k.bug != existsIsFatal {
		return false, nil
	}
	return err == nil, err
}

// zoo returns keeper as an operator of the lab.
func zoo(bug string) operators.Operator {
	const role = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: keeper}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: keeper, namespace: keeper}]
`
	return operators.Operator{
		Name: "keeper", Namespace: "keeper", ServiceAccount: "keeper",
		AddToScheme: func(*runtime.Scheme) error { return nil },
		Manifests:   fstest.MapFS{"rbac/role.yaml": {Data: []byte(role)}, "rbac/only": {Mode: fs.ModeDir}},
		New:         func() operators.Instance { return instance(bug) },
	}
}

type instance string

func (instance) Flags(f *pflag.FlagSet)                                     { f.String("variant", "only", "there is one") }
func (instance) Variant() string                                            { return "only" }
func (instance) CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) { return nil, nil }
func (instance) Demo() operators.Demo                                       { return demo{} }
func (i instance) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	b := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).WithOptions(o).Named("keeper")
	if i != unwatched {
		b.Owns(&corev1.ConfigMap{})
	}
	return b.Complete(&keeper{Client: mgr.GetClient(), live: mgr.GetAPIReader(), bug: string(i), made: map[client.ObjectKey]bool{}})
}

type demo struct{}

func (demo) Flags(*pflag.FlagSet)                   {}
func (demo) Values() (map[string]any, error)        { return nil, nil }
func (demo) Caption(string, json.RawMessage) string { return "" }
func (demo) Summary(context.Context, client.Reader) ([][2]string, error) {
	return nil, fmt.Errorf("unused")
}
