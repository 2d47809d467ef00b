// Command gizmo-operator runs the controller of the kind Gizmo against the cluster of $KUBECONFIG, or in a pod against
// the cluster of the pod.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/operator-lab/operator-lab/operators/starter/project/api/v1alpha1"
	"github.com/operator-lab/operator-lab/operators/starter/project/controller"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the manager until SIGINT or SIGTERM.
func run() error {
	options := ctrl.Options{LeaderElectionID: "gizmo-operator.example.com", LeaderElectionReleaseOnCancel: true}
	var metrics server.Options
	flag.BoolVar(&options.LeaderElection, "leader-elect", false, "of several that run, let only one work")
	flag.StringVar(&options.HealthProbeBindAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0: none")
	flag.StringVar(&metrics.BindAddress, "metrics-bind-address", "0", "address of /metrics; 0: none")
	klog.InitFlags(nil) // -v=1 and so on
	flag.Parse()
	ctrl.SetLogger(klog.Background())

	options.Metrics, options.Scheme = metrics, runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(options.Scheme), v1alpha1.AddToScheme(options.Scheme)); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	if err := (&controller.Reconciler{Client: mgr.GetClient()}).SetupWithManager(mgr); err != nil {
		return err
	}
	if err := errors.Join(mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", healthz.Ping)); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
