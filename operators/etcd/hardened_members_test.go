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

func claimed(c *v1beta2.EtcdCluster) {
	c.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceStorage: resource.MustParse("512Mi"),
		}},
	}}
}

// TestClaims: members with claims keep their data when a policy changes, and the claims of those that leave go. That all
// pods can die at once is in the scenario persistent-volumes.
func TestClaims(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := newTestEnv(t, etcd.Hardened)
	cluster, _ := env.run(claimed)
	env.wantEvents("MemberAdded", "QuorumHealthy")
	env.put(cluster, "a", "1")
	before := env.pods(cluster)
	env.MustUpdate(cluster, func() { cluster.Spec.Pod.Labels = map[string]string{"team": "blue"} })
	env.labelled(cluster, "team", "blue")
	if !maps.Equal(names(env.pods(cluster)), names(before)) {
		t.Errorf("the members are %v, were %v", names(env.pods(cluster)), names(before))
	}
	env.MustUpdate(cluster, func() { cluster.Spec.Size = 4 })
	env.settles(cluster)
	env.wantEvents("MemberPromoted")
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
