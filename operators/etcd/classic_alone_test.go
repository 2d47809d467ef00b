package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox"
)

// alone is a stage in a sandbox of its own, which has no definitions, and one node.
func alone(t *testing.T) *classicStage {
	t.Helper()
	boxes := newClassic(t) // which skips the test where there is nothing to run it with
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), etcd.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	lab, err := sandbox.Start(t.Context(), sandbox.Options{Ephemeral: true, Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Stop(); err != nil {
			t.Errorf("stop the sandbox: %v", err)
		}
	})
	s := &classicStage{&stage{t: t, namespace: "alone", set: boxes.set, lab: lab, scheme: scheme}, boxes.lines}
	if s.Client, err = client.New(unlimited(lab.Config()), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	return s
}

// definition is that of EtcdCluster.
func definition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "etcdclusters.etcd.database.coreos.com"}}
}

// move goes to another namespace.
func (s *classicStage) move(namespace string) {
	s.t.Helper()
	s.namespace = namespace
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

// published has the book's definition in force, in the place of that which there is. With all of the spec, only the
// status is dropped.
func (s *classicStage) published(t *testing.T, spec bool) {
	t.Helper()
	s.delete(definition())
	eventually(t, "the definition is gone", func() error {
		if s.exists(definition()) {
			return errors.New("it is there")
		}
		return nil
	})
	data, err := fs.ReadFile(etcd.Manifests(), "crds/published/etcdclusters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := definition()
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	if spec {
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
		schema["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	}
	s.create(crd)
	eventually(t, "the definition is in force", func() error {
		return s.List(t.Context(), &v1beta2.EtcdClusterList{})
	})
}

// TestClassicAlone has what needs a whole sandbox: E-19, the operator defines its resource; E-03, a node is off for a
// moment; E-15, the book's definition keeps no status.
func TestClassicAlone(t *testing.T) {
	t.Parallel()
	s := alone(t)
	only := func(o *etcd.Options) { o.Controllers = []string{etcd.ClusterController} }
	cfg := unlimited(s.lab.Config())
	stop := s.operateAs(t, cfg, s.options(only, func(o *etcd.Options) { o.CreateCRD = true }))
	crd := definition()
	eventually(t, "the operator has defined its resource", func() error {
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		return s.List(t.Context(), &v1beta2.EtcdClusterList{})
	})
	if by := crd.ManagedFields[0].Manager; by != "etcd-operator" || !slices.Equal(crd.Spec.Names.ShortNames, []string{"etcd"}) {
		t.Errorf("E-19: it was %s, and the names are %+v", by, crd.Spec.Names)
	}
	cluster := s.cluster(t, 1)
	s.becomes(t, cluster, 1)

	if err := s.lab.RestartNode("node-1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.lab.AwaitNodes(ctx); err != nil {
		t.Fatal(err)
	}
	s.passes(t, saysDead, 2)
	if pod := s.pods(t)[0]; pod.Status.Phase == corev1.PodRunning || pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("E-03: the pod is %s", pod.Status.Phase)
	}
	stop()

	// In another namespace each time, or the Services that are there would do, until the garbage collector takes them
	// away (E-16).
	s.move("alone-2")
	s.published(t, false)
	stop = s.operateAs(t, cfg, s.options(only))
	s.cluster(t, 1)
	eventually(t, "E-15: the book's definition drops the repository that the operator has set", func() error {
		for _, pod := range s.pods(t) {
			if pod.Spec.Containers[0].Image == ":v3.1.10" {
				return nil
			}
		}
		return fmt.Errorf("there are %v", describePods(s.pods(t)))
	})
	s.passes(t, saysPending, 2)
	stop()

	s.move("alone-3")
	s.published(t, true)
	stop = s.operateAs(t, cfg, s.options(only))
	cluster = s.cluster(t, 1)
	var old string
	eventually(t, "there is a member", func() error {
		ready := slices.DeleteFunc(s.pods(t), func(pod corev1.Pod) bool { return !podIsReady(&pod) })
		if len(ready) != 1 {
			return fmt.Errorf("there are %v", describePods(s.pods(t)))
		}
		old = ready[0].Name
		return nil
	})
	store := s.storeAt(t, fmt.Sprintf("http://%s.example.%s.svc:2379", old, s.namespace))
	if _, err := store.Put(t.Context(), "precious", "data"); err != nil {
		t.Fatal(err)
	}
	s.read(cluster)
	if cluster.Status.Phase != "" {
		t.Fatalf("the API server keeps %+v of it", cluster)
	}
	stop()
	s.operateAs(t, cfg, s.options(only))
	s.says(t, "deleting an unexpected pod")
	eventually(t, "E-15: the healthy member is deleted, and there is another, empty one", func() error {
		ready := slices.DeleteFunc(s.pods(t), func(pod corev1.Pod) bool { return !podIsReady(&pod) })
		if len(ready) != 1 || ready[0].Name == old {
			return fmt.Errorf("there are %v", describePods(s.pods(t)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		member := s.storeAt(t, fmt.Sprintf("http://%s.example.%s.svc:2379", ready[0].Name, s.namespace))
		answer, err := member.Get(ctx, "precious")
		if err == nil && len(answer.Kvs) > 0 {
			t.Error("E-15: the data survived")
		}
		return err
	})
}
