package taps_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// patience limits every wait of a test; only a failing test uses it up.
const patience = 60 * time.Second

var apiServer *rest.Config

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run starts one API server for all tests.
func run(m *testing.M) int {
	ctrllog.SetLogger(logr.Discard())
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		return m.Run()
	}
	env := &envtest.Environment{BinaryAssetsDirectory: dir, ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: 2 * time.Minute}
	cfg, err := env.Start()
	defer func() {
		if err := env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the API server:", err)
		}
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "start an API server:", err)
		return 1
	}
	cfg.QPS = -1
	apiServer = cfg
	return m.Run()
}

// config returns a config for the API server, or skips the test.
func config(tb testing.TB) *rest.Config {
	tb.Helper()
	if apiServer == nil {
		tb.Skip("KUBEBUILDER_ASSETS is not set: this test needs the binaries etcd and kube-apiserver")
	}
	return rest.CopyConfig(apiServer)
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(s) // it cannot fail on an empty scheme
	return s
}

// lab is a namespace, a journal, and the operators run in it.
type lab struct {
	*testing.T
	namespace string
	journal   *trace.Journal
	timeline  *trace.Timeline
	you       client.Client // its calls are recorded as a person's
}

func newLab(t *testing.T) *lab {
	t.Helper()
	cfg := config(t)
	l := &lab{T: t, journal: trace.New(trace.Options{})}
	l.timeline = trace.NewTimeline(l.journal)
	raw, err := client.New(cfg, client.Options{Scheme: scheme()})
	l.must(err)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "taps-"}}
	l.must(raw.Create(t.Context(), ns))
	l.namespace = ns.Name
	yours := taps.New(l.journal, taps.Options{Operator: "you"})
	c, err := client.New(yours.RESTConfig(cfg), client.Options{Scheme: scheme()})
	l.must(err)
	l.you = yours.Client(c)
	return l
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// await folds the journal until a condition holds.
func (l *lab) await(what string, done func(*trace.State) bool) {
	l.Helper()
	changed, cancel := l.journal.Subscribe()
	defer cancel()
	timeout := time.After(patience)
	for {
		l.timeline.Update()
		if done(l.timeline.Tip()) {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			l.dump()
			l.Fatalf("waited in vain for: %s", what)
		}
	}
}

// dump prints the journal, for a failed test.
func (l *lab) dump() {
	for _, e := range l.journal.Since(0) {
		l.Logf("%4d %-8s #%-3d %-10s %-20s cause %-4d %s %s rv=%s %s %s %s", e.Seq, e.Kind, e.Reconcile,
			e.Controller, e.Key, e.Cause, e.Verb, e.Object, e.ResourceVersion, e.Reason, e.Error, e.Message)
	}
}

// find returns the first event that matches, or nil.
func (l *lab) find(match func(*trace.Event) bool) *trace.Event {
	for _, e := range l.journal.Since(0) {
		if match(e) {
			return e
		}
	}
	return nil
}

// ended returns a condition: n reconciles of a key ended.
func ended(name string, n int) func(*trace.State) bool {
	return func(s *trace.State) bool { return len(reconcilesOf(s, name)) >= n && len(s.Running()) == 0 }
}

// reconcilesOf returns the finished reconciles of a key, by its name.
func reconcilesOf(s *trace.State, name string) []*trace.Reconcile {
	var out []*trace.Reconcile
	for _, reconcile := range s.Reconciles() {
		if reconcile.Key.Name == name && !reconcile.Running() {
			out = append(out, reconcile)
		}
	}
	return out
}

func (l *lab) configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name}, Data: data}
}

// setup adds controllers to a manager, with options that the taps have set.
type setup func(ctrl.Manager, controller.Options) error

// operator is a running operator.
type operator struct {
	taps *taps.Taps
	mgr  ctrl.Manager
	stop func()
}

// start runs an operator until the test ends or stop is called.
func (l *lab) start(t *taps.Taps, o ctrl.Options, add setup) *operator {
	l.Helper()
	o.Scheme = scheme()
	o.Metrics = metricsserver.Options{BindAddress: "0"}
	o.Cache.DefaultNamespaces = map[string]cache.Config{l.namespace: {}}
	mgr, err := ctrl.NewManager(t.RESTConfig(config(l)), t.ManagerOptions(o))
	l.must(err)
	l.must(add(mgr, t.ControllerOptions(controller.Options{})))
	ctx, cancel := context.WithCancel(l.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	op := &operator{taps: t, mgr: mgr}
	op.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil && !errors.Is(err, context.Canceled) {
				l.Errorf("manager: %v", err)
			}
		case <-time.After(patience):
			l.Error("the manager did not stop")
		}
	}
	l.Cleanup(op.stop)
	return op
}

// startKeeper runs a keeper and waits until its watches are established, so that later creations are changes and not
// part of the first list.
func (l *lab) startKeeper(t *taps.Taps, k *keeper) *operator {
	l.Helper()
	op := l.start(t, ctrl.Options{}, k.setup)
	l.must(l.you.Create(l.Context(), l.configMap("warm-up", nil)))
	l.await("the warm-up", ended("warm-up", 2))
	return op
}

func (l *lab) newTaps(name string) *taps.Taps {
	return taps.New(l.journal, taps.Options{Operator: name})
}

// keeper is the operator under test: it keeps a Secret for each ConfigMap and counts in the ConfigMap how often it did.
type keeper struct {
	client.Client
	// then is called once the Secret exists; may be nil.
	then func(context.Context, *corev1.ConfigMap) (reconcile.Result, error)
}

func (k *keeper) setup(mgr ctrl.Manager, o controller.Options) error {
	k.Client = mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).WithOptions(o).Complete(k)
}

func (k *keeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name == "kube-root-ca.crt" {
		return ctrl.Result{}, nil
	}
	var cm corev1.ConfigMap
	if err := k.Get(ctx, req.NamespacedName, &cm); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var secrets corev1.SecretList
	if err := k.List(ctx, &secrets, client.InNamespace(req.Namespace)); err != nil {
		return ctrl.Result{}, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	if err := k.Get(ctx, req.NamespacedName, secret); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	} else if err != nil {
		ctrllog.FromContext(ctx).Info("making a secret", "of", cm.Data["word"])
		secret.StringData = map[string]string{"word": cm.Data["word"]}
		if err := ctrl.SetControllerReference(&cm, secret, k.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, k.Create(ctx, secret)
	}
	if k.then != nil && req.Name != "warm-up" {
		return k.then(ctx, &cm)
	}
	return ctrl.Result{}, nil
}

// deployer watches Deployments through a predicate that drops status changes, and writes the status.
type deployer struct{ client.Client }

func (d *deployer) setup(mgr ctrl.Manager, o controller.Options) error {
	d.Client = mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).Named("deployer").
		For(&appsv1.Deployment{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(o).Complete(d)
}

func (d *deployer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var dep appsv1.Deployment
	if err := d.Get(ctx, req.NamespacedName, &dep); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	dep.Status.ObservedGeneration = dep.Generation
	return ctrl.Result{}, d.Status().Update(ctx, &dep)
}

func (l *lab) deployment() *appsv1.Deployment {
	const name = "web"
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
}
