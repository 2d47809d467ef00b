package etcd_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// run makes a cluster and waits until it is as it should be.
func (s *stage) run(change func(*v1beta2.EtcdCluster)) (cluster *v1beta2.EtcdCluster, stop func()) {
	s.t.Helper()
	stop = s.operate(s.t, etcd.Options{})
	cluster = s.cluster(change)
	s.settles(cluster)
	return cluster, stop
}

// TestOneMemberRecovery: AC-E05, and AC-E10 with E-15: the operator is away while a member dies and somebody wipes the
// status. What the others hold stays.
func TestOneMemberRecovery(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	cluster, stop := s.run(nil)
	s.put(cluster, "a", "1")
	old := s.pods(cluster)
	s.kill(old[0])
	eventually(t, "another member", func() error {
		if pods := s.pods(cluster); len(pods) != 3 || names(pods)[old[0].Name] {
			return fmt.Errorf("there are %v", names(pods))
		}
		return nil
	})
	s.settles(cluster)
	s.wantEvents("ReplacingMember", "MemberRemoved")

	stop()
	before := s.pods(cluster)
	s.kill(before[0])
	s.changeStatus(cluster, func() { cluster.Status = v1beta2.EtcdClusterStatus{} })
	s.delete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: cluster.Name}})
	s.operate(t, etcd.Options{})
	eventually(t, "another member", func() error {
		if pods := s.pods(cluster); len(pods) != 3 {
			return fmt.Errorf("there are %v", names(pods))
		}
		return nil
	})
	s.settles(cluster)
	after := names(s.pods(cluster))
	if !after[before[1].Name] || !after[before[2].Name] {
		t.Errorf("members that were well are gone: %v, before %v", after, names(before))
	}
	s.want(cluster, "a", "1")
}

// TestResize: AC-E06 and AC-E07, E-04 and E-13: from 1 to 2 to 5 to 3, with a leader that is not removed.
func TestResize(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	cluster, _ := s.run(sized(1))
	s.put(cluster, "a", "1")
	for _, size := range []int{2, 5, 3} {
		s.change(cluster, func() { cluster.Spec.Size = size })
		s.settles(cluster)
	}
	s.wantEvents("EvenSize", "ScalingIn")
	s.want(cluster, "a", "1")
	members, err := s.store(t, cluster).MemberList(t.Context())
	if err != nil || len(members.Members) != 3 {
		t.Errorf("etcd knows %v, %v", members, err)
	}
}

// TestUpgrade: AC-E03, T21, E-06: in place, one by one; then a version that cannot be pulled, and back.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	cluster, _ := s.run(func(c *v1beta2.EtcdCluster) { c.Spec.Version = "3.1.10" })
	s.put(cluster, "a", "1")
	before := names(s.pods(cluster))
	s.change(cluster, func() { cluster.Spec.Version = "3.2.13" })
	upgraded := func(version string) func() error {
		return func() error {
			s.read(cluster)
			for _, pod := range s.pods(cluster) {
				if got := pod.Spec.Containers[0].Image; got != "quay.io/coreos/etcd:v"+version {
					return fmt.Errorf("%s is of %s: %+v", pod.Name, got, cluster.Status.Conditions)
				}
			}
			if got := cluster.Status.CurrentVersion; got != version {
				return fmt.Errorf("the current version is %s: %+v", got, cluster.Status.Conditions)
			}
			return nil
		}
	}
	eventually(t, "all are upgraded", upgraded("3.2.13"))
	s.settles(cluster)
	pods := s.pods(cluster)
	if !maps.Equal(names(pods), before) {
		t.Errorf("the members are %v, were %v", names(pods), before)
	}
	for _, pod := range pods {
		if pod.Status.ContainerStatuses[0].RestartCount != 1 {
			t.Errorf("%s was restarted %d times", pod.Name, pod.Status.ContainerStatuses[0].RestartCount)
		}
	}

	s.change(cluster, func() { cluster.Spec.Version = "3.4.0" })
	s.becomes(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "UpgradeRefused")
	s.change(cluster, func() { cluster.Spec.Version = "3.1.10" })
	s.becomes(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "UpgradeRefused")
	if err := upgraded("3.2.13")(); err != nil {
		t.Error(err)
	}
	s.change(cluster, func() { cluster.Spec.Version = "3.2.13"; cluster.Spec.Repository = "quay.io/coreos/etcd" })
	s.settles(cluster)
	s.want(cluster, "a", "1")
	s.wantEvents("MemberUpgraded", "UpgradeRefused")
}

// TestPause: AC-E02 and E-07.
func TestPause(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	cluster, _ := s.run(nil)
	s.change(cluster, func() { cluster.Spec.Paused = true })
	eventually(t, "it says that it is paused", func() error {
		s.read(cluster)
		if !cluster.Status.ControlPaused {
			return errors.New("it does not")
		}
		return nil
	})
	s.kill(s.pods(cluster)[0])
	eventually(t, "the status tells of the member", func() error {
		s.read(cluster)
		return is(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "MemberUnhealthy")
	})
	if got := len(s.pods(cluster)); got != 2 {
		t.Errorf("there are %d pods", got)
	}
	s.change(cluster, func() { cluster.Spec.Paused = false })
	s.settles(cluster)
}

func claimed(c *v1beta2.EtcdCluster) {
	c.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceStorage: resource.MustParse("512Mi"),
		}},
	}}
}

// TestClaims: AC-E08, and E-02: all pods die at once, and come back with their data; then a policy changes.
func TestClaims(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	cluster, _ := s.run(claimed)
	s.put(cluster, "a", "1")
	before := s.pods(cluster)
	s.kill(before...)
	eventually(t, "all pods are others", func() error {
		for _, pod := range s.pods(cluster) {
			for _, old := range before {
				if pod.UID == old.UID {
					return fmt.Errorf("%s is the old one", pod.Name)
				}
			}
		}
		if got := len(s.pods(cluster)); got != 3 {
			return fmt.Errorf("there are %d", got)
		}
		return nil
	})
	s.settles(cluster)
	if !maps.Equal(names(s.pods(cluster)), names(before)) {
		t.Errorf("the members are %v, were %v", names(s.pods(cluster)), names(before))
	}
	s.want(cluster, "a", "1")

	s.change(cluster, func() { cluster.Spec.Pod.Labels = map[string]string{"team": "blue"} })
	s.labelled(cluster, "team", "blue")
	if !maps.Equal(names(s.pods(cluster)), names(before)) {
		t.Errorf("the members are %v, were %v", names(s.pods(cluster)), names(before))
	}
	s.change(cluster, func() { cluster.Spec.Size = 1 })
	s.settles(cluster)
	eventually(t, "the claims of those that left are gone", func() error {
		var claims corev1.PersistentVolumeClaimList
		if err := s.List(t.Context(), &claims, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		if len(claims.Items) != 1 {
			return fmt.Errorf("there are %d", len(claims.Items))
		}
		return nil
	})
	s.want(cluster, "a", "1")
}

// labelled waits until all members have a label.
func (s *stage) labelled(cluster *v1beta2.EtcdCluster, key, value string) {
	s.t.Helper()
	eventually(s.t, "all members have the label", func() error {
		pods := s.pods(cluster)
		if len(pods) < cluster.Spec.Size { // the last one is being made anew
			return fmt.Errorf("there are %d pods", len(pods))
		}
		for _, pod := range pods {
			if pod.Labels[key] != value {
				s.read(cluster)
				return fmt.Errorf("%s has not: %+v", pod.Name, cluster.Status.Conditions)
			}
		}
		return nil
	})
	s.settles(cluster)
}

// TestPolicy: E-18.
func TestPolicy(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	cluster, _ := s.run(sized(1))
	s.put(cluster, "a", "1")
	s.change(cluster, func() { cluster.Spec.Pod = &v1beta2.PodPolicy{Labels: map[string]string{"team": "blue"}} })
	s.labelled(cluster, "team", "blue")
	s.want(cluster, "a", "1")
}

// TestQuorumLost: E-01 and E-08. Nothing is destroyed until a person approves; then the data of the one that is left are
// everybody's.
func TestQuorumLost(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	cluster, stop := s.run(nil)
	s.put(cluster, "a", "1")
	stop()
	pods := s.pods(cluster)
	s.kill(pods[:2]...)
	s.operate(t, etcd.Options{})
	s.becomes(cluster, v1beta2.ConditionAvailable, metav1.ConditionFalse, "QuorumLost")
	s.becomes(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "QuorumLost")
	left := pods[2].Name
	eventually(t, "it says what to do", func() error {
		s.read(cluster)
		for _, c := range cluster.Status.Conditions {
			if c.Type == v1beta2.ConditionDegraded && strings.Contains(c.Message, v1beta2.RecoverAnnotation+"="+left) {
				return nil
			}
		}
		return fmt.Errorf("%+v", cluster.Status.Conditions)
	})
	if got := names(s.pods(cluster)); len(got) != 1 || !got[left] {
		t.Fatalf("the pods are %v", got)
	}
	s.change(cluster, func() { cluster.Annotations = map[string]string{v1beta2.RecoverAnnotation: left} })
	eventually(t, "the one that was left is gone", func() error {
		if got := names(s.pods(cluster)); got[left] {
			s.read(cluster)
			return fmt.Errorf("the pods are %v: %+v", got, cluster.Status.Conditions)
		}
		return nil
	})
	s.settles(cluster)
	s.want(cluster, "a", "1")
	s.wantEvents("QuorumLost", "RecoveryStarted")
}

// TestDataLost: all members without claims die at once. Nobody pretends that nothing has happened; a person may.
func TestDataLost(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	cluster, _ := s.run(sized(1))
	s.kill(s.pods(cluster)...)
	s.becomes(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "DataLost")
	s.becomes(cluster, v1beta2.ConditionAvailable, metav1.ConditionFalse, "")
	if got := s.pods(cluster); len(got) > 0 {
		t.Errorf("there are pods: %v", names(got))
	}
	s.change(cluster, func() { cluster.Annotations = map[string]string{v1beta2.RecoverAnnotation: etcd.Nothing} })
	s.settles(cluster)
}

// TestServices: E-16.
func TestServices(t *testing.T) {
	t.Parallel()
	s := newStage(t, hardenedCRDs)
	cluster, _ := s.run(sized(1))
	clients := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: cluster.Name + "-client"}}
	s.delete(clients)
	eventually(t, "it is back", func() error {
		if !s.exists(clients) {
			return errors.New("it is not")
		}
		return nil
	})
	s.change(clients, func() { clients.Spec.Ports[0].Port = 9999; clients.Spec.Selector = map[string]string{"app": "else"} })
	eventually(t, "it is as before", func() error {
		s.read(clients)
		if len(clients.Spec.Ports) != 1 || clients.Spec.Ports[0].Port != 2379 || clients.Spec.Selector["app"] != "etcd" {
			return fmt.Errorf("%+v", clients.Spec)
		}
		return nil
	})
	s.put(cluster, "a", "1")
}
