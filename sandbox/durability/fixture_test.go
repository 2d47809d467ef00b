package durability_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/node"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

const (
	// patience is the time limit for the cluster to recover. It only matters in a test that fails.
	patience = 3 * time.Minute
	// operator is the name of the operator under test.
	operator = "etcd"
	// size of the cluster, and how many nodes there are.
	size = 3
)

// fixture is a sandbox with the operator at work, and one cluster of its own.
type fixture struct {
	testing.TB
	client.Client
	box     *sandbox.Sandbox
	lab     *lab.Lab
	cluster client.ObjectKey
}

// newFixture starts all of it. Each fixture has a sandbox of its own, since all of that is broken.
func newFixture(tb testing.TB) *fixture {
	tb.Helper()
	if _, err := sandbox.FindBinary(); err != nil {
		tb.Skipf("%v; 'make test' builds it", err)
	}
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	w := &fixture{TB: tb, cluster: client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kept"}}
	crds, err := etcd.CRDs(etcd.Hardened)
	w.must(err)
	o := sandbox.Options{Ephemeral: true, CRDs: crds, Operators: []string{operator}, Nodes: size}
	var listener lab.Listener
	listener.Listen(&o)
	w.box, err = sandbox.Start(tb.Context(), o)
	w.must(err)
	tb.Cleanup(func() { w.check(w.box.Stop()) })
	w.lab, err = lab.Open(tb.Context(), lab.Options{
		Cluster: w.box, Kill: w.box.Kill, Machines: w.box.Nodes(), Installed: map[string]string{operator: string(etcd.Hardened)},
	})
	w.must(err)
	sandboxtest.LogPods(tb, w.box.Config(), w.cluster.Namespace)
	listener.Set(w.lab)
	tb.Cleanup(func() { w.check(w.lab.Close(context.WithoutCancel(tb.Context()))) })
	_, err = w.lab.Load(tb.Context(), operator, v1alpha1.OperatorSpec{Variant: string(etcd.Hardened)})
	w.must(err)
	w.Client = newClient(w)
	return w
}

func newClient(w *fixture) client.Client {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1beta2.AddToScheme} {
		w.must(add(scheme))
	}
	config := w.box.Config()
	config.QPS, config.Timeout = -1, 5*time.Second
	c, err := client.New(config, client.Options{Scheme: scheme})
	w.must(err)
	return c
}

func (w *fixture) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *fixture) check(err error) {
	w.Helper()
	if err != nil {
		w.Error(err)
	}
}

// eventually tries until there is no error, or fails the test with the last one.
func (w *fixture) eventually(what string, try func() error) {
	w.Helper()
	sandboxtest.EventuallyWithin(w, patience, what, try)
}

// create makes the cluster and waits for all of its members.
func (w *fixture) create(pod *v1beta2.PodPolicy) {
	w.Helper()
	w.createSize(size, pod)
}

func (w *fixture) createSize(size int, pod *v1beta2.PodPolicy) {
	w.Helper()
	w.must(w.Create(w.Context(), &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster.Namespace, Name: w.cluster.Name},
		Spec:       v1beta2.EtcdClusterSpec{Size: size, Version: "3.6.8", Pod: pod},
	}))
	w.eventually("a whole cluster", func() error { return w.wholeOf(size) })
}

// errNotWhole is that the cluster is not as it should be.
var errNotWhole = errors.New("the cluster is not whole")

// whole is nil when the operator says so of every member, in its latest status.
func (w *fixture) whole() error { return w.wholeOf(size) }

func (w *fixture) wholeOf(size int) error {
	var c v1beta2.EtcdCluster
	if err := w.Get(w.Context(), w.cluster, &c); err != nil {
		return err
	}
	healthy := 0
	for _, m := range c.Status.MemberStatus {
		if m.Healthy && !m.Learner {
			healthy++
		}
	}
	if healthy != size || len(c.Status.MemberStatus) != size || c.Status.ObservedGeneration != c.Generation {
		return fmt.Errorf("%w: %+v", errNotWhole, c.Status)
	}
	return nil
}

// well is nil when etcd itself, and not only a status that may be old, has all its members, in pods that stay.
func (w *fixture) well(ctx context.Context) error {
	pods, err := w.pods(ctx)
	if err != nil {
		return err
	}
	voters, err := votersOf(ctx, w.url(), w.box.DialContext)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || !slices.ContainsFunc(pod.Status.Conditions, isReady) || !slices.Contains(voters, pod.Name) {
			return fmt.Errorf("%w: pod %s", errNotWhole, pod.Name)
		}
	}
	if len(pods) != size || len(voters) != size {
		return fmt.Errorf("%w: %d pods of members %v", errNotWhole, len(pods), voters)
	}
	return nil
}

func isReady(c corev1.PodCondition) bool {
	return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
}

// pods are the members' pods.
func (w *fixture) pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := w.List(ctx, &list, client.InNamespace(w.cluster.Namespace), client.MatchingLabels{etcd.ClusterLabel: w.cluster.Name})
	return list.Items, err
}

// clients are applications that use the cluster through its Service.
func (w *fixture) clients(seed uint64, h *history) clients {
	return clients{URL: w.url(), Dial: w.box.DialContext, Seed: seed, History: h}
}

func (w *fixture) url() string {
	return fmt.Sprintf("http://%s-client.%s.svc:2379", w.cluster.Name, w.cluster.Namespace)
}

// match chooses the containers of a member.
func (w *fixture) match(pod string) node.Match {
	return node.Match{Namespace: w.cluster.Namespace, Pod: pod}
}

// setting is a number of the environment.
func setting[T any](tb testing.TB, name string, parse func(string) (T, error), otherwise T) T {
	tb.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	value, err := parse(text)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return value
}

func parseSeed(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }
