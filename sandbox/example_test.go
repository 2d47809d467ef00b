package sandbox_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox"
)

// In a test of your own operator: start a sandbox, and what you know of a cluster happens. Here a child is collected
// after its owner was deleted, which a bare envtest never does.
func ExampleStart() {
	ctx := context.Background()
	lab, err := sandbox.Start(ctx, sandbox.Options{Ephemeral: true})
	if err != nil {
		fmt.Println(err) // says how to get the binary when it is missing
		return
	}
	defer func() { _ = lab.Stop() }()
	c, err := client.New(lab.Config(), client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}

	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
	_ = c.Create(ctx, owner)
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child"}}
	child.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
	_ = c.Create(ctx, child)
	_ = c.Delete(ctx, owner)

	for c.Get(ctx, client.ObjectKeyFromObject(child), child) == nil {
		continue // still there
	}
	fmt.Println("collected")
	// Output: collected
}
