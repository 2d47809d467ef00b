package etcd

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/operator-lab/operator-lab/operators/etcd/v1beta2"
)

const (
	// classicFieldOwner is who created the definition.
	classicFieldOwner = client.FieldOwner("etcd-operator")
	// classicLook is the time between two looks whether there is a definition.
	classicLook = 500 * time.Millisecond
)

func classicToken() string { return string(uuid.NewUUID()) }

// classicServe adds a controller to the manager, at once if its kind is known to the API server, else as soon as it is.
// The articles install the operator with the one definition of EtcdCluster, or with none, which it then creates itself:
// those of backups and restores were other programs' business. They are created if these controllers are asked for.
func classicServe(mgr ctrl.Manager, o Options, name, kind string, controller func() error) error {
	creates := o.CreateCRD && (name == ClusterController || slices.Contains(o.Controllers, name))
	known, err := classicKnown(mgr, kind)
	if err != nil {
		return err
	}
	if known {
		if err := controller(); err != nil || !creates {
			return err
		}
		return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return classicCreateCRD(ctx, mgr, o.Clock, kind) }))
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if creates {
			if err := classicCreateCRD(ctx, mgr, o.Clock, kind); err != nil {
				return err
			}
		} else {
			mgr.GetLogger().Info("waiting for the definition of the custom resource", "kind", kind)
		}
		known, err := classicAwaitKnown(ctx, mgr, o.Clock, kind)
		if err != nil || !known {
			return err
		}
		return controller()
	}))
}

func classicKnown(mgr ctrl.Manager, kind string) (bool, error) {
	_, err := mgr.GetRESTMapper().RESTMapping(v1beta2.GroupVersion.WithKind(kind).GroupKind(), v1beta2.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// classicAwaitKnown returns true when a kind is known, or false when there is nobody left to wait.
func classicAwaitKnown(ctx context.Context, mgr ctrl.Manager, clock clock.WithTicker, kind string) (bool, error) {
	ticker := clock.NewTicker(classicLook)
	defer ticker.Stop()
	for {
		if known, err := classicKnown(mgr, kind); known || err != nil {
			return known, err
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return false, nil
		}
	}
}

// classicCreateCRD creates the definition of a kind, if there is none, and waits until the API server serves it. For
// that an operator of one namespace has to have rights to all of the cluster (E-19).
func classicCreateCRD(ctx context.Context, mgr ctrl.Manager, clock clock.WithTicker, kind string) error {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := client.New(mgr.GetConfig(), client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	crd, err := classicCRD(kind)
	if err != nil {
		return err
	}
	if err := c.Create(ctx, crd, classicFieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the definition of %s: %w", kind, err)
	}
	ticker := clock.NewTicker(classicLook)
	defer ticker.Stop()
	for {
		if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return fmt.Errorf("get the definition of %s: %w", kind, err)
		}
		if classicEstablished(crd) {
			return nil
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
	}
}

func classicCRD(kind string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := CRDs(Classic)
	if err != nil {
		return nil, err
	}
	for _, crd := range crds {
		if crd.Spec.Names.Kind == kind {
			return crd, nil
		}
	}
	return nil, fmt.Errorf("the definition of %s is missing among the manifests", kind)
}

func classicEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
			return true
		}
	}
	return false
}
