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
)

// TestAdopt: AC-E12 and AC-E13. Hardened goes on with a cluster that classic has begun: its members stay, more are added,
// one that dies is replaced.
func TestAdopt(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	stop := s.operate(t, etcd.Options{Variant: etcd.Classic, Period: 500 * time.Millisecond})
	cluster := s.cluster(nil)
	eventually(t, "classic has made three members", func() error {
		ready := 0
		for _, pod := range s.pods(cluster) {
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
	s.put(cluster, "a", "1")
	before := s.pods(cluster)

	s.operate(t, etcd.Options{})
	s.settles(cluster)
	for _, pod := range before {
		if !names(s.pods(cluster))[pod.Name] {
			t.Errorf("%s is gone", pod.Name)
		}
	}
	s.kill(before[0])
	s.change(cluster, func() { cluster.Spec.Size = 5 })
	s.settles(cluster)
	s.want(cluster, "a", "1")
	s.wantEvents("Adopted")
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
	s := newStage(t, hardenedCRDs)
	cluster, _ := s.run(nil)
	s.put(cluster, "a", "1")
	before := names(s.pods(cluster))
	for _, node := range s.lab.NodeNames() {
		if err := s.lab.RestartNode(node); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.lab.AwaitNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.want(cluster, "a", "1")
	s.settles(cluster)
	if after := names(s.pods(cluster)); !maps.Equal(before, after) {
		t.Errorf("the members are %v, were %v", after, before)
	}
}

// TestLostNode: the pod of a member on a node without power is not deleted by anybody for good; the member is replaced all
// the same. It is not parallel: the others need their nodes.
func TestLostNode(t *testing.T) {
	s := newStage(t, hardenedCRDs)
	seconds := int64(1)
	cluster, _ := s.run(func(c *v1beta2.EtcdCluster) {
		c.Spec.Pod = &v1beta2.PodPolicy{}
		for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
			c.Spec.Pod.Tolerations = append(c.Spec.Pod.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
			})
		}
	})
	s.put(cluster, "a", "1")
	lost := s.pods(cluster)[0]
	if err := s.lab.LoseNode(lost.Spec.NodeName); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.lab.ReturnNode(lost.Spec.NodeName); err != nil {
			t.Error(err)
		}
		if err := s.lab.AwaitNodes(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	s.becomes(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "MemberUnhealthy")
	s.becomes(cluster, v1beta2.ConditionAvailable, metav1.ConditionTrue, "")
	eventually(t, "the member is another one", func() error {
		if pods := names(s.pods(cluster)); pods[lost.Name] || len(pods) != 3 {
			s.read(cluster)
			return fmt.Errorf("there are %v: %+v", pods, cluster.Status.Conditions)
		}
		return nil
	})
	s.want(cluster, "a", "1")
}
