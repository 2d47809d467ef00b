package etcd_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// classicPeriod is the time between two passes in these tests.
const classicPeriod = 300 * time.Millisecond

const (
	// What the operator says when it cannot do anything.
	saysPending = "waiting for pods"
	saysPaused  = "paused: nothing is done"
	saysFailed  = `"error"=`
)

// classicEnv is a testEnv for classic.
type classicEnv struct {
	*testEnv
	lines *classicLines
}

func newClassic(t *testing.T) *classicEnv {
	t.Helper()
	return &classicEnv{newTestEnv(t, etcd.Classic), &classicLines{}}
}

// run runs the operator.
func (env *classicEnv) run(t *testing.T, changes ...func(*etcd.Options)) (stop func()) {
	t.Helper()
	return env.operate(t, env.options(changes...))
}

func (env *classicEnv) options(changes ...func(*etcd.Options)) etcd.Options {
	o := etcd.Options{Variant: etcd.Classic, Period: classicPeriod}
	o.Controller.LogConstructor = func(*reconcile.Request) logr.Logger {
		return funcr.New(env.lines.add, funcr.Options{})
	}
	for _, change := range changes {
		change(&o)
	}
	return o
}

// cluster creates an EtcdCluster of one member.
func (env *classicEnv) cluster(t *testing.T, changes ...func(*v1beta2.EtcdCluster)) *v1beta2.EtcdCluster {
	t.Helper()
	cluster := &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: "example"},
		Spec:       v1beta2.EtcdClusterSpec{Size: 1, Version: "3.1.10"},
	}
	for _, change := range changes {
		change(cluster)
	}
	env.MustCreate(cluster)
	return cluster
}

func (env *classicEnv) resize(cluster *v1beta2.EtcdCluster, size int) {
	env.t.Helper()
	env.MustUpdate(cluster, func() { cluster.Spec.Size = size })
}

// pods are the members' pods that are not being deleted, by name.
func (env *classicEnv) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	err := env.List(t.Context(), list, client.InNamespace(env.Name), client.MatchingLabels{etcd.AppLabel: etcd.AppName})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !pod.DeletionTimestamp.IsZero() })
}

// describePods says which of them are Ready.
func describePods(pods []corev1.Pod) (all []string) {
	for i := range pods {
		all = append(all, fmt.Sprintf("%s %s ready=%t", pods[i].Name, pods[i].Status.Phase, podIsReady(&pods[i])))
	}
	return all
}

func podNames(pods []corev1.Pod) []string {
	names := make([]string, len(pods))
	for i := range pods {
		names[i] = pods[i].Name
	}
	return names
}

func podIsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// becomes waits until a cluster has a number of members, all Ready, and says so.
func (env *classicEnv) becomes(t *testing.T, cluster *v1beta2.EtcdCluster, size int) []corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	sandboxtest.Eventually(t, fmt.Sprintf("there are %d ready members", size), func() error {
		pods = env.pods(t)
		env.MustGet(cluster)
		ready := len(pods) == size && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !podIsReady(&pod) })
		if !ready || len(cluster.Status.Members.Ready) != size || len(cluster.Status.Members.Unready) > 0 {
			return fmt.Errorf("%v, and the status is %+v; the last lines are\n%s", describePods(pods), cluster.Status, env.lines.tail(4))
		}
		return nil
	})
	return pods
}

// kill deletes a pod as a power cut would: nothing is said to anybody.
func (env *classicEnv) kill(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if err := env.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
}

// passes waits until the operator has said something a number of times from now on: what it has not done about anything
// else by then, it is not going to do.
func (env *classicEnv) passes(t *testing.T, text string, times int) {
	t.Helper()
	before := env.lines.number(text)
	sandboxtest.Eventually(t, fmt.Sprintf("the operator says %d times %q", times, text), func() error {
		if n := env.lines.number(text) - before; n < times {
			return fmt.Errorf("it said so %d times; the last lines are\n%s", n, env.lines.tail(8))
		}
		return nil
	})
}

// says waits until the operator has said something at all.
func (env *classicEnv) says(t *testing.T, text string) {
	t.Helper()
	sandboxtest.Eventually(t, fmt.Sprintf("the operator says %q", text), func() error {
		if env.lines.number(text) == 0 {
			return fmt.Errorf("the last lines are\n%s", env.lines.tail(8))
		}
		return nil
	})
}

// reasons are those of the events, with how often they came.
func (env *classicEnv) reasons(t *testing.T) map[string]int {
	t.Helper()
	list := &corev1.EventList{}
	if err := env.List(t.Context(), list, client.InNamespace(env.Name)); err != nil {
		t.Fatal(err)
	}
	reasons := map[string]int{}
	for _, event := range list.Items {
		if event.InvolvedObject.Kind == v1beta2.EtcdClusterKind {
			reasons[event.Reason]++
			if event.Source.Component != "etcd-operator" || event.ReportingController != "etcd-operator" {
				t.Errorf("the event %s is of %q, and %q", event.Reason, event.Source.Component, event.ReportingController)
			}
		}
	}
	return reasons
}

// condition is the status of a condition; empty: there is none.
func condition(cluster *v1beta2.EtcdCluster, kind string) metav1.ConditionStatus {
	for _, c := range cluster.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// classicLines are what the operator logs.
type classicLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *classicLines) add(_, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *classicLines) number(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (l *classicLines) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines[max(0, len(l.lines)-n):], "\n")
}

// TestClassicLife is the life of a cluster as the articles tell it.
func TestClassicLife(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	stop := env.run(t)
	cluster := env.cluster(t)
	first := env.becomes(t, cluster, 1)[0].Name

	env.resize(cluster, 3)
	pods := env.becomes(t, cluster, 3)
	if !slices.Contains(podNames(pods), first) {
		t.Errorf("the first member %s is not among %v", first, podNames(pods))
	}
	store := env.store(t, cluster)
	if _, err := store.Put(patient(t), "greeting", "hello"); err != nil {
		t.Fatal(err)
	}

	env.MustUpdate(cluster, func() { cluster.Spec.Paused = true })
	env.passes(t, saysPaused, 1)
	env.kill(t, &pods[0])
	env.passes(t, saysPaused, 3)
	if left := env.pods(t); len(left) != 2 {
		t.Errorf("while it is paused there are %v", podNames(left))
	}
	env.MustUpdate(cluster, func() { cluster.Spec.Paused = false })
	sandboxtest.Eventually(t, "there is another member", func() error {
		if left := podNames(env.pods(t)); len(left) != 3 || slices.Contains(left, pods[0].Name) {
			return fmt.Errorf("there are %v", left)
		}
		return nil
	})
	pods = env.becomes(t, cluster, 3)

	env.MustUpdate(cluster, func() { cluster.Spec.Version = "3.2.13" })
	sandboxtest.Eventually(t, "all members are upgraded", func() error {
		for _, pod := range env.pods(t) {
			if image := pod.Spec.Containers[0].Image; image != "quay.io/coreos/etcd:v3.2.13" {
				return fmt.Errorf("%s has %s", pod.Name, image)
			}
			if n := pod.Status.ContainerStatuses[0].RestartCount; n != 1 {
				return fmt.Errorf("%s was restarted %d times", pod.Name, n)
			}
		}
		return nil
	})
	upgraded := env.becomes(t, cluster, 3)
	if !slices.Equal(podNames(upgraded), podNames(pods)) {
		t.Errorf("the pods were %v, and are %v", podNames(pods), podNames(upgraded))
	}
	sandboxtest.Eventually(t, "the version is in the status", func() error {
		env.MustGet(cluster)
		if cluster.Status.CurrentVersion != "3.2.13" || condition(cluster, v1beta2.ConditionUpgrading) != "" {
			return fmt.Errorf("%+v", cluster.Status)
		}
		return nil
	})

	stop()
	env.kill(t, &upgraded[2])
	sandboxtest.Eventually(t, "a member is missing", func() error {
		if left := len(env.pods(t)); left != 2 {
			return fmt.Errorf("%d are there", left)
		}
		return nil
	})
	env.run(t)
	sandboxtest.Eventually(t, "it is replaced", func() error {
		if left := len(env.pods(t)); left != 3 {
			return fmt.Errorf("%d are there", left)
		}
		return nil
	})
	env.becomes(t, cluster, 3)
	answer, err := store.Get(patient(t), "greeting")
	if err != nil || len(answer.Kvs) != 1 || string(answer.Kvs[0].Value) != "hello" {
		t.Errorf("the greeting is %v (%v)", answer, err)
	}
	reasons := env.reasons(t)
	for reason, least := range map[string]int{
		"New Member Added": 5, "Replacing Dead Member": 2, "Member Removed": 2, "Member Upgraded": 3,
	} {
		if reasons[reason] < least {
			t.Errorf("of the events there are %v, want %d of %s", reasons, least, reason)
		}
	}

	env.MustDelete(cluster)
	sandboxtest.Eventually(t, "everything is gone", func() error {
		services := &corev1.ServiceList{}
		if err := env.List(t.Context(), services, client.InNamespace(env.Name)); err != nil {
			return err
		}
		if len(services.Items) > 0 || len(env.pods(t)) > 0 {
			return fmt.Errorf("%d Services and %d pods", len(services.Items), len(env.pods(t)))
		}
		return nil
	})
}
