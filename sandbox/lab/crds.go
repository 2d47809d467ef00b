package lab

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
)

// install installs the CRDs of a variant if the cluster has those of another variant, or has lost one. It returns when
// their kinds are served.
func (l *Lab) install(ctx context.Context, name string, instance operators.Instance) error {
	crds, err := instance.CRDs()
	if err != nil {
		return err
	}
	l.mu.Lock()
	has := l.installed[name]
	l.mu.Unlock()
	if l.options.Unchanging && has == instance.Variant() {
		return nil
	}
	config := l.options.Cluster.Config()
	there, err := areThere(ctx, config, crds)
	if err != nil {
		return fmt.Errorf("look for the CRDs of %s: %w", name, err)
	}
	if there && has == instance.Variant() {
		return sandbox.AwaitDefined(ctx, config) // after a restart the API server has definitions before it serves them
	}
	if err := sandbox.InstallCRDs(ctx, config, crds...); err != nil {
		return fmt.Errorf("install the CRDs of %s: %w", name, err)
	}
	l.mu.Lock()
	l.installed[name] = instance.Variant()
	l.mu.Unlock()
	return nil
}

// goingPause is how often to check whether a CRD that is being deleted is gone.
const goingPause = 20 * time.Millisecond

// areThere reports whether a cluster has CRDs of these names. It waits for one that is being deleted.
func areThere(ctx context.Context, config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition) (bool, error) {
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return false, err
	}
	definitions := c.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	for _, crd := range crds {
		for {
			found, err := definitions.Get(ctx, crd.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			if found.DeletionTimestamp.IsZero() {
				break
			}
			pause(ctx, goingPause)
		}
	}
	return true, nil
}
