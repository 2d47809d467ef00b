package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestClassicFirstMemberRemoved is E-11: nothing has failed, and so the ID of the first member is not known when it is
// removed. It is the leader, too (E-13).
func TestClassicFirstMemberRemoved(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	env.run(t, func(o *etcd.Options) { o.Seed = etcd.ClassicSeedForFirst(env.Name, "example") })
	cluster := env.cluster(t, 1)
	first := env.becomes(t, cluster, 1)[0].Name
	env.resize(cluster, 2)
	pods := env.becomes(t, cluster, 2)
	if n := env.lines.number(saysFailed); n > 0 {
		t.Fatalf("something failed %d times, and then the ID is known: %s", n, env.lines.tail(5))
	}
	store := env.store(t, cluster)
	sandboxtest.Eventually(t, "it takes a write", func() error { return answers(t, store) })
	env.resize(cluster, 1)
	env.says(t, "etcd does not know the member")
	sandboxtest.Eventually(t, "the first member's pod is gone", func() error {
		if left := podNames(env.pods(t)); len(left) != 1 || left[0] == first {
			return fmt.Errorf("there are %v", left)
		}
		return nil
	})
	rest := pods[slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.Name != first })]
	alone := env.storeAt(t, fmt.Sprintf("http://%s.example.%s.svc:2379", rest.Name, env.Name))
	sandboxtest.Eventually(t, "the one that is left has no quorum", func() error {
		if err := answers(t, alone); err == nil {
			return errors.New("it takes a write")
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	answer, err := alone.MemberList(ctx, clientv3.WithSerializable())
	if err != nil || len(answer.Members) != 2 {
		t.Errorf("etcd has %v (%v), want the removed one to be still there", answer, err)
	}
	if env.reasons(t)["Member Removed"] != 1 {
		t.Error("nobody said that it was removed")
	}
}

// TestClassicKilledWhileCreating is E-12.
func TestClassicKilledWhileCreating(t *testing.T) {
	t.Parallel()
	env := newClassic(t)
	reached := make(chan struct{})
	var once sync.Once
	stop := env.runRefused(t, func(req *http.Request) error {
		if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/pods") {
			once.Do(func() { close(reached) })
			<-req.Context().Done()
		}
		return req.Context().Err()
	})
	cluster := env.cluster(t, 1)
	<-reached
	stop()
	env.MustGet(cluster)
	if cluster.Status.Phase != v1beta2.ClusterPhaseCreating {
		t.Fatalf("the status is %+v", cluster.Status)
	}
	env.run(t)
	sandboxtest.Eventually(t, "it has failed", func() error {
		env.MustGet(cluster)
		if cluster.Status.Phase != v1beta2.ClusterPhaseFailed || cluster.Status.Reason != "cluster failed to be created" {
			return fmt.Errorf("%+v", cluster.Status)
		}
		return nil
	})
	env.touch(t, cluster, 1)
	env.says(t, "the cluster has failed, delete its EtcdCluster")
	if pods := env.pods(t); len(pods) > 0 {
		t.Errorf("there are %v", podNames(pods))
	}
}

// TestClassicSizeZero is E-14 at its worst.
func TestClassicSizeZero(t *testing.T) {
	t.Parallel()
	env := newClassic(t)
	env.run(t)
	cluster := env.cluster(t, 0)
	env.passes(t, saysDead, 2)
	env.MustGet(cluster)
	if pods := env.pods(t); len(pods) > 0 || cluster.Status.Phase != v1beta2.ClusterPhaseRunning {
		t.Errorf("there are %v, and the status is %+v", podNames(pods), cluster.Status)
	}
	if reasons := env.reasons(t); reasons["New Member Added"] != 1 || reasons["Member Removed"] != 1 {
		t.Errorf("of the events there are %v", reasons)
	}
}

// TestClassicStatusWiped is E-15: the EtcdCluster is replaced by a file without a status, and the operator starts anew.
func TestClassicStatusWiped(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	stop := env.run(t)
	cluster := env.cluster(t, 1)
	old := env.becomes(t, cluster, 1)[0].Name
	store := env.store(t, cluster)
	if _, err := store.Put(t.Context(), "precious", "data"); err != nil {
		t.Fatal(err)
	}
	stop()
	env.MustUpdate(cluster, func() { cluster.Status = v1beta2.EtcdClusterStatus{} })
	if pods := env.pods(t); len(pods) != 1 || !podIsReady(&pods[0]) {
		t.Fatalf("the pods are %v", describePods(pods))
	}
	env.run(t)
	env.says(t, "deleting an unexpected pod")
	sandboxtest.Eventually(t, "the healthy member is gone", func() error {
		if left := podNames(env.pods(t)); len(left) != 1 || left[0] == old {
			return fmt.Errorf("there are %v", left)
		}
		return nil
	})
	env.becomes(t, cluster, 1)
	var answer *clientv3.GetResponse
	sandboxtest.Eventually(t, "the new member answers", func() (err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		answer, err = env.store(t, cluster).Get(ctx, "precious")
		return err
	})
	if len(answer.Kvs) != 0 {
		t.Error("the data survived")
	}
}

// TestClassicServiceDeleted is E-16.
func TestClassicServiceDeleted(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	stop := env.run(t)
	cluster := env.cluster(t, 1)
	env.becomes(t, cluster, 1)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: "example-client"}}
	env.MustDelete(service)
	env.MustUpdate(cluster, func() { cluster.Spec.Paused = true })
	env.passes(t, saysPaused, 1)
	env.MustUpdate(cluster, func() { cluster.Spec.Paused = false; cluster.Spec.Size = 2 })
	env.becomes(t, cluster, 2)
	if env.Exists(service) {
		t.Error("it came back")
	}
	stop()
	env.run(t)
	sandboxtest.Eventually(t, "it comes back with another life of the operator", func() error {
		if !env.Exists(service) {
			return errors.New("it does not")
		}
		return nil
	})
}

// TestClassicInvalidThenDeleted is E-17: what the operator knows of a cluster outlives it, and whoever takes its name has to
// put up with that.
func TestClassicInvalidThenDeleted(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	env.run(t)
	cluster := env.cluster(t, 1)
	env.becomes(t, cluster, 1)
	env.MustUpdate(cluster, func() { cluster.Spec.Pod = &v1beta2.PodPolicy{Labels: map[string]string{"app": "mine"}} })
	env.says(t, "the spec is not valid")
	env.MustDelete(cluster)
	env.passes(t, saysDead, 2)
	again := env.cluster(t, 1)
	env.passes(t, saysDead, 3)
	env.MustGet(again)
	if pods := env.pods(t); len(pods) > 0 || again.Status.Phase != "" {
		t.Errorf("the new one got %v, and the status %+v", podNames(pods), again.Status)
	}
}

// TestClassicPodPolicy is E-18, and E-14 for an even size.
func TestClassicPodPolicy(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	env.run(t)
	cluster := env.cluster(t, 1)
	old := env.becomes(t, cluster, 1)[0]
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7m")}
	env.MustUpdate(cluster, func() {
		cluster.Spec.Pod = &v1beta2.PodPolicy{Resources: corev1.ResourceRequirements{Requests: cpu}}
		cluster.Spec.Size = 2
	})
	for _, pod := range env.becomes(t, cluster, 2) {
		_, has := pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
		if has == (pod.UID == old.UID) {
			t.Errorf("the old one is %s, and %s has %v", old.Name, pod.Name, pod.Spec.Containers[0].Resources)
		}
	}
}

// TestClassicLongName is E-20.
func TestClassicLongName(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newClassic(t)
	env.run(t)
	long := env.cluster(t, 1, func(c *v1beta2.EtcdCluster) { c.Name = "a" + strings.Repeat("b", 52) })
	env.says(t, "the name is too long")
	env.becomes(t, env.cluster(t, 1), 1)
	env.MustGet(long)
	if long.Status.Phase != "" || long.Status.Reason != "" || len(env.pods(t)) != 1 {
		t.Errorf("something was said, or done, about it: %+v", long.Status)
	}
}
