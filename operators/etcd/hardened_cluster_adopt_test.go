package etcd_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestAdopt: AC-E12 and AC-E13. Hardened goes on with a cluster that classic has begun: its members stay, more are added,
// one that dies is replaced.
func TestAdopt(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	stop := env.operate(t, etcd.Options{Variant: etcd.Classic, Period: 500 * time.Millisecond})
	cluster := env.cluster(nil)
	sandboxtest.Eventually(t, "classic has made three members", func() error {
		ready := 0
		for _, pod := range env.pods(cluster) {
			if isReady(&pod) {
				ready++
			}
		}
		if ready != 3 {
			return fmt.Errorf("%d are Ready", ready)
		}
		return nil
	})
	stop()
	env.put(cluster, "a", "1")
	before := env.pods(cluster)

	env.operate(t, etcd.Options{})
	env.settles(cluster)
	for _, pod := range before {
		if !names(env.pods(cluster))[pod.Name] {
			t.Errorf("%s is gone", pod.Name)
		}
	}
	env.kill(before[0])
	env.MustUpdate(cluster, func() { cluster.Spec.Size = 5 })
	env.settles(cluster)
	env.want(cluster, "a", "1")
	env.wantEvents("Adopted")
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// TestReboot: E-03. All nodes restart at once; members without claims keep their data. It is not parallel: the others need
// their nodes.
func TestReboot(t *testing.T) {
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	cluster, _ := env.run(nil)
	env.put(cluster, "a", "1")
	before := names(env.pods(cluster))
	for _, node := range env.lab.Nodes().Names() {
		if err := env.lab.Nodes().Restart(node); err != nil {
			t.Fatal(err)
		}
	}
	if err := env.lab.Nodes().Await(patient(t)); err != nil {
		t.Fatal(err)
	}
	env.want(cluster, "a", "1")
	env.settles(cluster)
	if after := names(env.pods(cluster)); !maps.Equal(before, after) {
		t.Errorf("the members are %v, were %v", after, before)
	}
}

// TestLostNode: the pod of a member on a node without power is not deleted by anybody for good; the member is replaced all
// the same. It is not parallel: the others need their nodes.
func TestLostNode(t *testing.T) {
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	seconds := int64(1)
	cluster, _ := env.run(func(c *v1beta2.EtcdCluster) {
		c.Spec.Pod = &v1beta2.PodPolicy{}
		for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
			c.Spec.Pod.Tolerations = append(c.Spec.Pod.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
			})
		}
	})
	env.put(cluster, "a", "1")
	lost := env.pods(cluster)[0]
	if err := env.lab.Nodes().Lose(lost.Spec.NodeName); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.lab.Nodes().Return(lost.Spec.NodeName); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), sandboxtest.Patience)
		defer cancel()
		if err := env.lab.Nodes().Await(ctx); err != nil {
			t.Error(err)
		}
	})
	env.becomes(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "MemberUnhealthy")
	env.becomes(cluster, v1beta2.ConditionAvailable, metav1.ConditionTrue, "")
	sandboxtest.Eventually(t, "the member is another one", func() error {
		if pods := names(env.pods(cluster)); pods[lost.Name] || len(pods) != 3 {
			env.MustGet(cluster)
			return fmt.Errorf("there are %v: %+v", pods, cluster.Status.Conditions)
		}
		return nil
	})
	env.wantEvents("ReplacingMember", "MemberRemoved")
	env.want(cluster, "a", "1")
}
