package sandboxtest_test

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// cluster is shared by the tests of this package. This file is the example of how to test an operator of your own.
var cluster = sandboxtest.ShareSandbox(func() (sandbox.Options, error) { return sandbox.Options{}, nil })

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m, cluster)) }

// setup is the operator under test: it makes a Secret of the name of each ConfigMap, and owned by it.
func setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
		func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			owner := &corev1.ConfigMap{}
			if err := mgr.GetClient().Get(ctx, req.NamespacedName, owner); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name}}
			if err := ctrl.SetControllerReference(owner, child, mgr.GetScheme()); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, client.IgnoreAlreadyExists(mgr.GetClient().Create(ctx, child))
		}))
}

// The sandbox has Kubernetes' own controllers: a child is collected after its owner was deleted, which a bare API server
// never does.
func TestChildGoesWithItsOwner(t *testing.T) {
	n := sandboxtest.NewNamespace(t, cluster.Get(t).Config(), clientgoscheme.Scheme)
	stop := n.Run(n.Config, ctrl.Options{}, setup)
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Name, Name: "owner"}}
	child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: n.Name, Name: "owner"}}

	n.MustCreate(owner)
	sandboxtest.Eventually(t, "the operator makes a child", func() bool { return n.Exists(child) })
	stop() // or it would make another one
	n.MustDelete(owner)
	sandboxtest.Eventually(t, "the child is collected", func() bool { return !n.Exists(child) })
}
