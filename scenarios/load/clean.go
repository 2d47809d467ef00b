package load

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// clean deletes the objects, and waits until the operator has done what it does then; and the namespace after that: in one that is
// deleted whole, operators make again and again what goes before its owner.
func (r *run) clean(ctx context.Context, namespace *corev1.Namespace) error {
	r.Progress(len(r.versions), "clean")
	limited, cancel := context.WithTimeout(ctx, r.patience())
	defer cancel()
	until := func(gone func(context.Context) (bool, error)) error {
		return wait.PollUntilContextCancel(limited, 100*time.Millisecond, true, gone)
	}
	var err error
	if first, wrong := r.Sample.object(1, namespace.Name); wrong == nil && len(r.versions) > 0 {
		err = r.Client.DeleteAllOf(limited, first, client.InNamespace(namespace.Name))
		if err == nil {
			err = until(func(ctx context.Context) (bool, error) { return r.gone(ctx, first) })
		}
	}
	if err == nil {
		err = client.IgnoreNotFound(r.Client.Delete(limited, namespace))
	}
	if err == nil {
		err = until(func(ctx context.Context) (bool, error) {
			err := r.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	}
	if err != nil {
		return &sandbox.Problem{
			Err: fmt.Errorf("namespace %s is not gone: %w", namespace.Name, err), Hint: "kubectl describe namespace " + namespace.Name + " says what is left in it",
		}
	}
	return nil
}

// gone reports whether no object of the load is left, of the kind of one of them.
func (r *run) gone(ctx context.Context, one *unstructured.Unstructured) (bool, error) {
	left := &unstructured.UnstructuredList{}
	left.SetGroupVersionKind(one.GroupVersionKind())
	err := r.Client.List(ctx, left, client.InNamespace(r.namespace))
	return err == nil && !slices.ContainsFunc(left.Items, func(o unstructured.Unstructured) bool {
		_, made := r.versions[trace.Key{Namespace: o.GetNamespace(), Name: o.GetName()}]
		return made
	}), err
}
