package etcd

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

func newTestCluster(namespace string) *v1beta2.EtcdCluster {
	return &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "example"}}
}

func TestClassicMemberName(t *testing.T) {
	for url, want := range map[string]string{
		"http://example-abc.example.default.svc:2380":               "example-abc",
		"https://example-abc.example.default.svc:2380":              "example-abc",
		"http://example-abc.example.default.svc.cluster.local:2380": "example-abc",
		"http://example-abc:2380":                                   "example-abc",
		"http://127.0.0.1:2380":                                     "127",
		"":                                                          "",
		"example-abc.example.default.svc:2380":                      "",
		"http://:2380":                                              "",
		"http://example-abc.example.default.svc:2380/path":          "",
		"http://example abc.example.default.svc:2380":               "",
	} {
		got, err := classicMemberName([]string{url})
		if got != want || (err != nil) != (want == "") {
			t.Errorf("the member of %q is %q (%v), want %q", url, got, err, want)
		}
	}
	if _, err := classicMemberName(nil); err == nil {
		t.Error("a member without URLs has a name")
	}
}

func FuzzClassicMemberName(f *testing.F) {
	f.Add("http://example-abc.example.default.svc:2380")
	f.Add("://")
	f.Fuzz(func(t *testing.T, url string) {
		name, err := classicMemberName([]string{url})
		if (name == "") != (err != nil) {
			t.Errorf("%q is the member %q, and the error %v", url, name, err)
		}
	})
}

func TestClassicMembers(t *testing.T) {
	for _, c := range []struct {
		one, other classicMembers
		equal      bool
	}{
		{classicMembers{}, classicMembers{}, true},
		{classicMembers{"a": 0}, classicMembers{}, false},
		{classicMembers{"a": 0}, classicMembers{"a": 7}, true}, // the names count
		{classicMembers{"a": 0}, classicMembers{"b": 0}, false},
		{classicMembers{"a": 0, "b": 0}, classicMembers{"b": 0, "a": 0}, true},
		{classicMembers{"a": 0}, classicMembers{"a": 0, "b": 0}, false},
	} {
		if got := c.one.equal(c.other); got != c.equal {
			t.Errorf("%v and %v are equal: %t", c.one, c.other, got)
		}
	}
}

// TestClassicPick shows that any member may be picked, the leader too (E-13).
func TestClassicPick(t *testing.T) {
	c := &classicCluster{choice: classicRandom(1, "choices")}
	picked := classicMembers{}
	for range 100 {
		picked[c.pick(classicMembers{"a": 0, "b": 0, "c": 0})]++
	}
	if len(picked) != 3 {
		t.Errorf("in 100 choices it picked %v", picked)
	}
}

// TestClassicScope is which operator heeds which cluster.
func TestClassicScope(t *testing.T) {
	for _, c := range []struct {
		annotations map[string]string
		narrow      bool
		wide        bool
	}{
		{nil, true, false},
		{map[string]string{v1beta2.ScopeAnnotation: v1beta2.ScopeClusterwide}, false, true},
		{map[string]string{v1beta2.ScopeAnnotation: "other"}, false, false},
	} {
		cluster := newTestCluster("default")
		cluster.Annotations = c.annotations
		if got := (&classicClusters{}).managed(cluster); got != c.narrow {
			t.Errorf("the operator of a namespace heeds %v: %t", c.annotations, got)
		}
		if got := (&classicClusters{wide: true}).managed(cluster); got != c.wide {
			t.Errorf("the operator of all namespaces heeds %v: %t", c.annotations, got)
		}
	}
}

func TestClassicSpec(t *testing.T) {
	cluster := newTestCluster("default")
	cluster.Spec = v1beta2.EtcdClusterSpec{Version: "v3.1.10", Pod: &v1beta2.PodPolicy{AntiAffinity: true}}
	classicDefaults(cluster)
	if cluster.Spec.Version != "3.1.10" || classicImage(cluster) != "quay.io/coreos/etcd:v3.1.10" {
		t.Errorf("the image is %s", classicImage(cluster))
	}
	if cluster.Spec.Pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey != corev1.LabelHostname {
		t.Errorf("antiAffinity became %v", cluster.Spec.Pod.Affinity)
	}
	for _, size := range []int{0, -1, 2, 4, 100} {
		cluster.Spec.Size = size
		if err := classicValidate(cluster); err != nil {
			t.Errorf("size %d is refused, which it was not: %v", size, err)
		}
	}
	for what, spoil := range map[string]func(*v1beta2.EtcdClusterSpec){
		"the label app":    func(s *v1beta2.EtcdClusterSpec) { s.Pod = &v1beta2.PodPolicy{Labels: map[string]string{"app": "x"}} },
		"the label etcd_x": func(s *v1beta2.EtcdClusterSpec) { s.Pod = &v1beta2.PodPolicy{Labels: map[string]string{"etcd_x": "x"}} },
		"half of TLS": func(s *v1beta2.EtcdClusterSpec) {
			s.TLS = &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{OperatorSecret: "x"}}
		},
		"the other half of TLS": func(s *v1beta2.EtcdClusterSpec) {
			s.TLS = &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{Member: &v1beta2.MemberSecret{ServerSecret: "x"}}}
		},
	} {
		bad := cluster.DeepCopy()
		spoil(&bad.Spec)
		if classicValidate(bad) == nil {
			t.Errorf("%s is not refused", what)
		}
	}
}

// TestClassicBusybox is the image that waits for the name.
func TestClassicBusybox(t *testing.T) {
	cluster := newTestCluster("default")
	for image, policy := range map[string]*v1beta2.PodPolicy{
		"busybox:1.28.0-glibc": nil, "busybox:1": {BusyboxImage: "busybox:1"},
	} {
		cluster.Spec.Pod = policy
		if got := classicPod(cluster, "example-a", classicMembers{"example-a": 0}, true).Spec.InitContainers[0].Image; got != image {
			t.Errorf("the image is %s, want %s", got, image)
		}
	}
}
