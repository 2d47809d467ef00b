package etcd_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// touch changes an annotation.
func (env *classicEnv) touch(t *testing.T, cluster *v1beta2.EtcdCluster) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"1"}}}`))
	if err := env.Patch(t.Context(), cluster, patch); err != nil {
		t.Fatal(err)
	}
}

// TestClassicKilledWhileCreating is E-12.
func TestClassicKilledWhileCreating(t *testing.T) {
	t.Parallel()
	env := newClassic(t)
	reached := make(chan struct{})
	var once sync.Once
	cfg := env.operatorConfig(t, etcd.Classic)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return sandboxtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/pods") {
				once.Do(func() { close(reached) })
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return next.RoundTrip(req)
		})
	})
	stop := env.operateAs(t, cfg, env.options())
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
	env.touch(t, cluster)
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
