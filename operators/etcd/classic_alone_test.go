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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators/etcd"
	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// alone is a namespace in a sandbox of its own, which has no definitions, and one node.
func alone(t *testing.T) *classicEnv {
	t.Helper()
	own := sandboxtest.ShareSandbox(func() (sandbox.Options, error) { return sandbox.Options{Nodes: 1}, nil })
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Errorf("stop the sandbox: %v", err)
		}
	})
	return &classicEnv{newTestEnvIn(t, own.Get(t), apiextensionsv1.AddToScheme), &classicLines{}}
}

// definition is that of EtcdCluster.
func definition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "etcdclusters.etcd.database.coreos.com"}}
}

// move goes to another namespace.
func (env *classicEnv) move(namespace string) {
	env.t.Helper()
	env.Name = namespace
	env.MustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

// published has the book's definition in force, in the place of that which there is. With all of the spec, only the
// status is dropped.
func (env *classicEnv) published(t *testing.T, spec bool) {
	t.Helper()
	env.MustDelete(definition())
	sandboxtest.Eventually(t, "the definition is gone", func() error {
		if env.Exists(definition()) {
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
	env.MustCreate(crd)
	sandboxtest.Eventually(t, "the definition is in force", func() error {
		return env.List(t.Context(), &v1beta2.EtcdClusterList{})
	})
}

// TestClassicAlone has what needs a whole sandbox: E-19, the operator defines its resource; E-15, the book's definition keeps no status.
func TestClassicAlone(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	env := alone(t)
	only := func(o *etcd.Options) { o.Controllers = []string{etcd.ClusterController} }
	cfg := env.lab.Config()
	stop := env.operateAs(t, cfg, env.options(only, func(o *etcd.Options) { o.CreateCRD = true }))
	crd := definition()
	sandboxtest.Eventually(t, "the operator has defined its resource", func() error {
		if err := env.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		return env.List(t.Context(), &v1beta2.EtcdClusterList{})
	})
	if by := crd.ManagedFields[0].Manager; by != "etcd-operator" || !slices.Equal(crd.Spec.Names.ShortNames, []string{"etcd"}) {
		t.Errorf("E-19: it was %s, and the names are %+v", by, crd.Spec.Names)
	}
	cluster := env.cluster(t)
	env.becomes(t, cluster, 1)
	stop()

	// In another namespace each time, or the Services that are there would do, until the garbage collector takes them
	// away (E-16).
	env.move("alone-2")
	env.published(t, false)
	stop = env.operateAs(t, cfg, env.options(only))
	env.cluster(t)
	sandboxtest.Eventually(t, "E-15: the book's definition drops the repository that the operator has set", func() error {
		for _, pod := range env.pods(t) {
			if pod.Spec.Containers[0].Image == ":v3.1.10" {
				return nil
			}
		}
		return fmt.Errorf("there are %v", describePods(env.pods(t)))
	})
	env.passes(t, saysPending, 2)
	stop()

	env.move("alone-3")
	env.published(t, true)
	stop = env.operateAs(t, cfg, env.options(only))
	cluster = env.cluster(t)
	var old string
	sandboxtest.Eventually(t, "there is a member", func() error {
		ready := slices.DeleteFunc(env.pods(t), func(pod corev1.Pod) bool { return !podIsReady(&pod) })
		if len(ready) != 1 {
			return fmt.Errorf("there are %v", describePods(env.pods(t)))
		}
		old = ready[0].Name
		return nil
	})
	store := env.storeAt(t, fmt.Sprintf("http://%s.example.%s.svc:2379", old, env.Name))
	if _, err := store.Put(patient(t), "precious", "data"); err != nil {
		t.Fatal(err)
	}
	env.MustGet(cluster)
	if cluster.Status.Phase != "" {
		t.Fatalf("the API server keeps %+v of it", cluster)
	}
	stop()
	env.operateAs(t, cfg, env.options(only))
	env.says(t, "deleting an unexpected pod")
	sandboxtest.Eventually(t, "E-15: the healthy member is deleted, and there is another, empty one", func() error {
		ready := slices.DeleteFunc(env.pods(t), func(pod corev1.Pod) bool { return !podIsReady(&pod) })
		if len(ready) != 1 || ready[0].Name == old {
			return fmt.Errorf("there are %v", describePods(env.pods(t)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		member := env.storeAt(t, fmt.Sprintf("http://%s.example.%s.svc:2379", ready[0].Name, env.Name))
		answer, err := member.Get(ctx, "precious")
		if err == nil && len(answer.Kvs) > 0 {
			t.Error("E-15: the data survived")
		}
		return err
	})
}
