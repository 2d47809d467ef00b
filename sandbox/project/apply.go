package project

import (
	"cmp"
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
)

// refusedHint is for a definition that no API server takes.
const refusedHint = "every API server refuses it: correct it, or have the project's generator write it anew, such as 'make manifests'"

// ApplyAll applies objects in their order, and waits until the kinds that they define are served; a namespaced one that
// names no namespace goes into the given one.
func ApplyAll(ctx context.Context, cluster operatorhost.Cluster, objects []*unstructured.Unstructured, namespace string) error {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, u := range objects {
		if !isCRD(u) {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
			return problem(refusedHint, "custom resource definition %s: %w", u.GetName(), err)
		}
		crds = append(crds, crd)
	}
	switch err := sandbox.InstallCRDs(ctx, cluster.Config(), crds...); {
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return problem(refusedHint, "install the custom resource definitions: %w", err)
	case err != nil:
		return fmt.Errorf("install the custom resource definitions: %w", err)
	}
	c, err := client.New(cluster.Config(), client.Options{})
	if err != nil {
		return err
	}
	for _, u := range objects {
		if isCRD(u) {
			continue
		}
		u = u.DeepCopy()
		if err := placed(c, u, namespace); err != nil {
			return err
		}
		if err := operatorhost.Apply(ctx, c, u); err != nil {
			return err
		}
	}
	return nil
}

// Apply applies the objects of a sample, as its file is now, with a client and a field owner. Its error has the API server's words.
func (s Sample) Apply(ctx context.Context, c client.Client, owner string) error {
	if s.again != nil {
		now := s.again()
		if now.wrong != nil {
			return now.wrong
		}
		s.Objects = now.objects
	}
	for _, u := range s.Objects {
		u = u.DeepCopy()
		if err := placed(c, u, cmp.Or(s.Namespace, metav1.NamespaceDefault)); err != nil {
			return fmt.Errorf("%s: %w", s.File, err)
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(owner), client.ForceOwnership); err != nil {
			return fmt.Errorf("%s is refused: %w", s.File, err)
		}
	}
	return nil
}

// placed gives a namespaced object that names no namespace the given one.
func placed(c client.Client, u *unstructured.Unstructured, namespace string) error {
	namespaced, err := c.IsObjectNamespaced(u)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	if namespaced && u.GetNamespace() == "" {
		u.SetNamespace(namespace)
	}
	return nil
}

func isCRD(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" }
