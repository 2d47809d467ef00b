package etcd_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

// newCluster is the sample in the test's namespace, not created yet.
func (env *testEnv) newCluster() *v1beta2.EtcdCluster {
	env.t.Helper()
	cluster, err := etcd.Sample()
	if err != nil {
		env.t.Fatal(err)
	}
	cluster.Namespace = env.Name
	return cluster
}

// TestGoodInput has the API server accept what people may well write.
func TestGoodInput(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t, etcd.Hardened)
	for name, change := range map[string]func(*v1beta2.EtcdCluster){
		"even":        func(c *v1beta2.EtcdCluster) { c.Spec.Size = 2 },
		"longest":     func(c *v1beta2.EtcdCluster) { c.Name = strings.Repeat("a", 52) },
		"v":           func(c *v1beta2.EtcdCluster) { c.Name, c.Spec.Version = "v", "v3.5.1" },
		"candidate":   func(c *v1beta2.EtcdCluster) { c.Name, c.Spec.Version = "candidate", "3.6.0-rc.1" },
		"port":        func(c *v1beta2.EtcdCluster) { c.Name, c.Spec.Repository = "port", "localhost:5000/etcd" },
		"TLS":         func(c *v1beta2.EtcdCluster) { c.Name, c.Spec.TLS = "tls", tls("peer", "server", "operator") },
		"peers alone": func(c *v1beta2.EtcdCluster) { c.Name, c.Spec.TLS = "peers", tls("peer", "", "") },
		"labels":      func(c *v1beta2.EtcdCluster) { c.Name = "labels"; labelled("team")(c) },
		"variable":    func(c *v1beta2.EtcdCluster) { c.Name = "variable"; variable("ETCD_QUOTA_BACKEND_BYTES")(c) },
	} {
		t.Run(name, func(t *testing.T) {
			cluster := env.newCluster()
			change(cluster)
			if err := env.Create(t.Context(), cluster); err != nil {
				t.Error(err)
			}
		})
	}
}

func labelled(key string) func(*v1beta2.EtcdCluster) {
	return func(c *v1beta2.EtcdCluster) { c.Spec.Pod = &v1beta2.PodPolicy{Labels: map[string]string{key: "x"}} }
}

func variable(name string) func(*v1beta2.EtcdCluster) {
	return func(c *v1beta2.EtcdCluster) {
		c.Spec.Pod = &v1beta2.PodPolicy{EtcdEnv: []corev1.EnvVar{{Name: name, Value: "1"}}}
	}
}

func tls(peer, server, operator string) *v1beta2.TLSPolicy {
	static := &v1beta2.StaticTLS{OperatorSecret: operator}
	if peer != "" || server != "" {
		static.Member = &v1beta2.MemberSecret{PeerSecret: peer, ServerSecret: server}
	}
	return &v1beta2.TLSPolicy{Static: static}
}
