package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox"
)

// Start a sandbox, and what you know of a cluster happens. Here a child is collected after its owner was deleted, which a
// bare envtest never does. For tests of your own operator see also the package sandboxtest.
func ExampleStart() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	lab, err := sandbox.Start(ctx, sandbox.Options{Ephemeral: true})
	if err != nil {
		log.Panic(err) // says how to get the binary when it is missing
	}
	defer func() {
		if err := lab.Stop(); err != nil {
			log.Panic(err)
		}
	}()
	if err := collects(ctx, lab); err != nil {
		log.Panic(err)
	}
	fmt.Println("collected")
	// Output: collected
}

// A checkpoint brings back what the sandbox held, for example between the cases of a test.
func ExampleSandbox_Checkpoints() {
	ctx := context.Background()
	lab, err := sandbox.Start(ctx, sandbox.Options{Ephemeral: true})
	if err != nil {
		log.Panic(err)
	}
	before, err := lab.Checkpoints().Save(ctx, "before")
	if err != nil {
		log.Panic(err)
	}
	if err := collects(ctx, lab); err != nil {
		log.Panic(err)
	}
	if err := errors.Join(lab.Checkpoints().Restore(ctx, before), lab.Stop()); err != nil {
		log.Panic(err)
	}
}

// collects makes an owner and a child, deletes the owner, and waits until the child is gone.
func collects(ctx context.Context, lab *sandbox.Sandbox) error {
	c, err := client.New(lab.Config(), client.Options{})
	if err != nil {
		return err
	}
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
	if err := c.Create(ctx, owner); err != nil {
		return err
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "child",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
	}}
	if err := c.Create(ctx, child); err != nil {
		return err
	}
	if err := c.Delete(ctx, owner); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(child), child)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}
