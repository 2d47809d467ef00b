// Toy copies each ConfigMap of the namespace in NAMESPACE that is labelled copy=me. Its manager is linked with the lab.
package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"toy/lab/link"
)

type copier struct{ client.Client }

// Reconcile makes the copy if it is missing.
func (c copier) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	original := &corev1.ConfigMap{}
	if err := c.Get(ctx, req.NamespacedName, original); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if original.Labels["copy"] != "me" {
		return ctrl.Result{}, nil
	}
	ctrl.LoggerFrom(ctx).Info("copying")
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name + "-copy"}, Data: original.Data}
	if err := ctrl.SetControllerReference(original, made, c.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	if err := c.Create(ctx, made); err != nil && !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := link.Wrap(ctrl.NewManager)(cfg, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{os.Getenv("NAMESPACE"): {}}},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.ConfigMap{}).Complete(copier{mgr.GetClient()})
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
