package etcd_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// run makes a cluster and waits until it is as it should be.
func (env *testEnv) run(change func(*v1beta2.EtcdCluster)) (cluster *v1beta2.EtcdCluster, stop func()) {
	env.t.Helper()
	stop = env.operate(env.t, etcd.Options{})
	cluster = env.cluster(change)
	env.settles(cluster)
	return cluster, stop
}

// TestOneMemberRecovery: AC-E05, and AC-E10 with E-15: the operator is away while a member dies and somebody wipes the
// status. What the others hold stays.
func TestOneMemberRecovery(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	cluster, stop := env.run(nil)
	env.put(cluster, "a", "1")
	old := env.pods(cluster)
	env.kill(old[0])
	sandboxtest.Eventually(t, "another member", func() error {
		if pods := env.pods(cluster); len(pods) != 3 || names(pods)[old[0].Name] {
			return fmt.Errorf("there are %v", names(pods))
		}
		return nil
	})
	env.settles(cluster)
	env.wantEvents("ReplacingMember", "MemberRemoved")

	stop()
	before := env.pods(cluster)
	env.kill(before[0])
	env.MustUpdateStatus(cluster, func() { cluster.Status = v1beta2.EtcdClusterStatus{} })
	env.MustDelete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: cluster.Name}})
	env.operate(t, etcd.Options{})
	sandboxtest.Eventually(t, "another member", func() error {
		if pods := env.pods(cluster); len(pods) != 3 {
			return fmt.Errorf("there are %v", names(pods))
		}
		return nil
	})
	env.settles(cluster)
	after := names(env.pods(cluster))
	if !after[before[1].Name] || !after[before[2].Name] {
		t.Errorf("members that were well are gone: %v, before %v", after, names(before))
	}
	env.want(cluster, "a", "1")
}

// TestUpgradeRefused: the members stay as they are when a version is more than one minor version on, or an older one.
func TestUpgradeRefused(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, etcd.Hardened)
	cluster, _ := env.run(sized(1))
	for _, version := range []string{"3.4.0", "3.1.10"} {
		env.MustUpdate(cluster, func() { cluster.Spec.Version = version })
		env.becomes(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "UpgradeRefused")
	}
	if got := env.pods(cluster)[0].Spec.Containers[0].Image; got != "quay.io/coreos/etcd:v3.2.13" || cluster.Status.CurrentVersion != "3.2.13" {
		t.Errorf("the member is of %s, and the current version is %s", got, cluster.Status.CurrentVersion)
	}
	env.MustUpdate(cluster, func() { cluster.Spec.Version = "3.2.13"; cluster.Spec.Repository = "quay.io/coreos/etcd" })
	env.settles(cluster)
	env.wantEvents("UpgradeRefused")
}

// TestPause: AC-E02 and E-07.
func TestPause(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, etcd.Hardened)
	cluster, _ := env.run(nil)
	env.MustUpdate(cluster, func() { cluster.Spec.Paused = true })
	sandboxtest.Eventually(t, "it says that it is paused", func() error {
		env.MustGet(cluster)
		if !cluster.Status.ControlPaused {
			return errors.New("it does not")
		}
		return nil
	})
	env.kill(env.pods(cluster)[0])
	sandboxtest.Eventually(t, "the status tells of the member", func() error {
		env.MustGet(cluster)
		return is(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "MemberUnhealthy")
	})
	if got := len(env.pods(cluster)); got != 2 {
		t.Errorf("there are %d pods", got)
	}
	env.MustUpdate(cluster, func() { cluster.Spec.Paused = false })
	env.settles(cluster)
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
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	cluster, _ := env.run(claimed)
	env.wantEvents("MemberAdded", "MemberPromoted", "QuorumHealthy")
	env.put(cluster, "a", "1")
	before := env.pods(cluster)
	env.kill(before...)
	sandboxtest.Eventually(t, "all pods are others", func() error {
		for _, pod := range env.pods(cluster) {
			for _, old := range before {
				if pod.UID == old.UID {
					return fmt.Errorf("%s is the old one", pod.Name)
				}
			}
		}
		if got := len(env.pods(cluster)); got != 3 {
			return fmt.Errorf("there are %d", got)
		}
		return nil
	})
	env.settles(cluster)
	if !maps.Equal(names(env.pods(cluster)), names(before)) {
		t.Errorf("the members are %v, were %v", names(env.pods(cluster)), names(before))
	}
	env.want(cluster, "a", "1")

	env.MustUpdate(cluster, func() { cluster.Spec.Pod.Labels = map[string]string{"team": "blue"} })
	env.labelled(cluster, "team", "blue")
	if !maps.Equal(names(env.pods(cluster)), names(before)) {
		t.Errorf("the members are %v, were %v", names(env.pods(cluster)), names(before))
	}
	env.MustUpdate(cluster, func() { cluster.Spec.Size = 1 })
	env.settles(cluster)
	env.wantEvents("ScalingIn")
	sandboxtest.Eventually(t, "the claims of those that left are gone", func() error {
		var claims corev1.PersistentVolumeClaimList
		if err := env.List(t.Context(), &claims, client.InNamespace(env.Name)); err != nil {
			return err
		}
		if len(claims.Items) != 1 {
			return fmt.Errorf("there are %d", len(claims.Items))
		}
		return nil
	})
	env.want(cluster, "a", "1")
}

// labelled waits until all members have a label.
func (env *testEnv) labelled(cluster *v1beta2.EtcdCluster, key, value string) {
	env.t.Helper()
	sandboxtest.Eventually(env.t, "all members have the label", func() error {
		pods := env.pods(cluster)
		if len(pods) < cluster.Spec.Size { // the last one is being made anew
			return fmt.Errorf("there are %d pods", len(pods))
		}
		for _, pod := range pods {
			if pod.Labels[key] != value {
				env.MustGet(cluster)
				return fmt.Errorf("%s has not: %+v", pod.Name, cluster.Status.Conditions)
			}
		}
		return nil
	})
	env.settles(cluster)
}

// TestPolicy: E-18.
func TestPolicy(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	cluster, _ := env.run(sized(1))
	env.put(cluster, "a", "1")
	env.MustUpdate(cluster, func() { cluster.Spec.Pod = &v1beta2.PodPolicy{Labels: map[string]string{"team": "blue"}} })
	env.labelled(cluster, "team", "blue")
	env.want(cluster, "a", "1")
}

// TestDataLost: all members without claims die at once. Nobody pretends that nothing has happened; a person may.
func TestDataLost(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, etcd.Hardened)
	cluster, _ := env.run(sized(1))
	env.kill(env.pods(cluster)...)
	env.becomes(cluster, v1beta2.ConditionDegraded, metav1.ConditionTrue, "DataLost")
	env.becomes(cluster, v1beta2.ConditionAvailable, metav1.ConditionFalse, "")
	if got := env.pods(cluster); len(got) > 0 {
		t.Errorf("there are pods: %v", names(got))
	}
	env.MustUpdate(cluster, func() { cluster.Annotations = map[string]string{v1beta2.RecoverAnnotation: etcd.Nothing} })
	env.settles(cluster)
}

// TestServices: E-16.
func TestServices(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, etcd.Hardened)
	cluster, _ := env.run(sized(1))
	clients := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: env.Name, Name: cluster.Name + "-client"}}
	env.MustDelete(clients)
	sandboxtest.Eventually(t, "it is back", func() error {
		if !env.Exists(clients) {
			return errors.New("it is not")
		}
		return nil
	})
	env.MustUpdate(clients, func() { clients.Spec.Ports[0].Port = 9999; clients.Spec.Selector = map[string]string{"app": "else"} })
	sandboxtest.Eventually(t, "it is as before", func() error {
		env.MustGet(clients)
		if len(clients.Spec.Ports) != 1 || clients.Spec.Ports[0].Port != 2379 || clients.Spec.Selector["app"] != "etcd" {
			return fmt.Errorf("%+v", clients.Spec)
		}
		return nil
	})
	env.put(cluster, "a", "1")
}
