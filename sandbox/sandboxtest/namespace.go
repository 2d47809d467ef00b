package sandboxtest

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Namespace is a namespace of a test's own, with a client. The methods that begin with Must, and Exists, fail the test
// when the API server refuses.
type Namespace struct {
	client.Client
	// Name of the namespace.
	Name string
	// Config is that of the client.
	Config *rest.Config

	tb testing.TB
}

// NewNamespace creates a namespace, and deletes it when the test has ended. The scheme has to know Namespaces.
func NewNamespace(tb testing.TB, config *rest.Config, scheme *runtime.Scheme) *Namespace {
	tb.Helper()
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		tb.Fatal(err)
	}
	n := &Namespace{Client: c, Config: config, tb: tb}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	n.MustCreate(namespace)
	n.Name = namespace.Name
	tb.Cleanup(func() {
		// What nobody needs any more would keep the processors busy.
		if err := c.Delete(context.WithoutCancel(tb.Context()), namespace); err != nil {
			tb.Errorf("delete the namespace: %v", err)
		}
	})
	return n
}

// Run runs a manager, whose controllers setup adds, in the process of the test and for this namespace only, until stop is
// called or the test ends. stop waits until it has ended. Of the options, the zero values of Scheme, Metrics, the
// namespaces of Cache and Controller are set to what a test needs.
func (n *Namespace) Run(config *rest.Config, o ctrl.Options, setup func(ctrl.Manager) error) (stop func()) {
	n.tb.Helper()
	if o.Scheme == nil {
		o.Scheme = n.Scheme()
	}
	if o.Cache.DefaultNamespaces == nil {
		o.Cache.DefaultNamespaces = map[string]cache.Config{n.Name: {}}
	}
	if o.Metrics.BindAddress == "" {
		o.Metrics = metricsserver.Options{BindAddress: "0"}
	}
	if o.Controller.SkipNameValidation == nil {
		o.Controller.SkipNameValidation = new(true) // other tests have controllers of the same names
	}
	mgr, err := ctrl.NewManager(config, o)
	if err != nil {
		n.tb.Fatal(err)
	}
	if err := setup(mgr); err != nil {
		n.tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(n.tb.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			n.tb.Errorf("the manager ended with: %v", err)
		}
	})
	n.tb.Cleanup(stop)
	return stop
}

// MustCreate creates an object.
func (n *Namespace) MustCreate(obj client.Object) {
	n.tb.Helper()
	if err := n.Create(n.tb.Context(), obj); err != nil {
		n.tb.Fatalf("create: %v", err)
	}
}

// MustGet brings an object up to date.
func (n *Namespace) MustGet(obj client.Object) {
	n.tb.Helper()
	if err := n.Get(n.tb.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		n.tb.Fatalf("get: %v", err)
	}
}

// Exists tells whether an object does, and brings it up to date.
func (n *Namespace) Exists(obj client.Object) bool {
	n.tb.Helper()
	err := n.Get(n.tb.Context(), client.ObjectKeyFromObject(obj), obj)
	if client.IgnoreNotFound(err) != nil {
		n.tb.Fatalf("get: %v", err)
	}
	return err == nil
}

// MustUpdate changes an object as it is now, again if somebody else was faster.
func (n *Namespace) MustUpdate(obj client.Object, change func()) {
	n.tb.Helper()
	n.retry(obj, change, func(ctx context.Context) error { return n.Update(ctx, obj) })
}

// MustUpdateStatus is MustUpdate for the status of an object.
func (n *Namespace) MustUpdateStatus(obj client.Object, change func()) {
	n.tb.Helper()
	n.retry(obj, change, func(ctx context.Context) error { return n.Status().Update(ctx, obj) })
}

func (n *Namespace) retry(obj client.Object, change func(), update func(context.Context) error) {
	n.tb.Helper()
	Eventually(n.tb, "update without a conflict", func(ctx context.Context) error {
		n.MustGet(obj)
		change()
		err := update(ctx)
		if err != nil && !apierrors.IsConflict(err) {
			n.tb.Fatalf("update: %v", err)
		}
		return err
	})
}

// MustDelete deletes an object.
func (n *Namespace) MustDelete(obj client.Object) {
	n.tb.Helper()
	if err := n.Delete(n.tb.Context(), obj); err != nil {
		n.tb.Fatalf("delete: %v", err)
	}
}
