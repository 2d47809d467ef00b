package lab_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestOperatorReachesPods checks that an operator in this process connects to pods in the cluster, in its first run and
// the next, also after the API server died. A promoted member shows that etcd was reached.
func TestOperatorReachesPods(t *testing.T) {
	sandboxtest.Long(t)
	if testing.Short() {
		t.Skip("it starts members of etcd")
	}
	w := open(t)
	if _, err := w.lab.Load(t.Context(), "etcd", v1alpha1.OperatorSpec{}); err != nil {
		t.Fatal(err)
	}
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdCluster",
		"metadata": map[string]any{"namespace": w.namespace, "name": "kv"},
		"spec":     map[string]any{"size": int64(1), "version": "3.2.13"},
	}}
	w.must(w.you.Create(t.Context(), cluster))
	w.awaitMembers(cluster, 1)
	w.arm("crash", v1alpha1.FaultSpec{Operator: "etcd", Crash: &v1alpha1.CrashFault{RestartAfter: metav1.Duration{Duration: 100 * time.Millisecond}}})
	w.grow(cluster, 2)
	w.awaitMembers(cluster, 2)
	if err := box.Kill("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	w.grow(cluster, 3)
	w.awaitMembers(cluster, 3)
}

// grow requests another number of members, as soon as the API server is reachable.
func (w *fixture) grow(cluster *unstructured.Unstructured, size int) {
	w.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"size":%d}}`, size))
	w.eventually("the patch", func() error { return w.you.Patch(w.Context(), cluster.DeepCopy(), patch) })
}

// awaitMembers waits until the given number of members are healthy and vote.
func (w *fixture) awaitMembers(cluster *unstructured.Unstructured, want int) {
	w.Helper()
	w.eventually(fmt.Sprintf("%d healthy voters", want), func() error {
		now := cluster.DeepCopy()
		if err := w.you.Get(w.Context(), client.ObjectKeyFromObject(cluster), now); err != nil {
			return err
		}
		members, _, err := unstructured.NestedSlice(now.Object, "status", "memberStatus")
		if err != nil {
			return err
		}
		voters := 0
		for _, m := range members {
			member := m.(map[string]any)
			if member["healthy"] == true && member["learner"] != true {
				voters++
			}
		}
		if voters != want {
			return fmt.Errorf("the members are %v", members)
		}
		return nil
	})
}
