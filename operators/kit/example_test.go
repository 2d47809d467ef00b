package kit_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/operator-lab/operator-lab/operators/kit"
)

// A pass that finds everything as it should be writes nothing.
func ExampleWriter_Ensure() {
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	w := kit.Writer{Client: c, Live: c, Owner: "keeper"}
	mine := func(o client.Object) bool { return o.GetLabels()["app"] == "keeper" }
	for range 2 {
		current := &corev1.Service{} // in an operator: from the cache
		key := client.ObjectKey{Namespace: "default", Name: "web"}
		if err := c.Get(context.Background(), key, current); client.IgnoreNotFound(err) != nil {
			log.Panic(err)
		}
		want := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service",
			"metadata": map[string]any{"namespace": "default", "name": "web", "labels": map[string]any{"app": "keeper"}},
			"spec":     map[string]any{"selector": map[string]any{"app": "web"}},
		}}
		change, err := w.Ensure(context.Background(), current, want, mine)
		if err != nil {
			log.Panic(err)
		}
		fmt.Println(change == kit.Created, change == kit.None)
	}
	// Output:
	// true false
	// false true
}

// The labels of other programs do not matter; what is wanted has to be there.
func ExampleContains() {
	there := map[string]any{"labels": map[string]any{"app": "web", "owner": "somebody"}, "replicas": int64(3)}
	fmt.Println(kit.Contains(there, map[string]any{"labels": map[string]any{"app": "web"}}))
	fmt.Println(kit.Contains(there, map[string]any{"replicas": int64(2)}))
	// Output:
	// true
	// false
}
