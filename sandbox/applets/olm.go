package applets

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/clientset/versioned"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/install"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/operators"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/operators/catalog"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/operators/olm"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/operators/validatingroundtripper"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/lib/operatorclient"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/lib/queueinformer"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	utilclock "k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// catalogWakeup is how often Subscriptions are looked at though nothing has changed. Upstream's flag is 15 minutes by default, and one may
// have to wait that long: when an upgrade of several steps resolves the next one before the version that was replaced is gone, it is
// refused, and nothing has it resolved again (operator-lifecycle-manager issue 2635).
const catalogWakeup = time.Minute

// What upstream's flags are by default.
const (
	operatorWakeup   = 5 * time.Minute
	wakeupJitter     = 0.2
	installPatience  = time.Minute
	unpackPatience   = 10 * time.Minute
	configMapImage   = "quay.io/operator-framework/configmap-operator-registry:latest"
	opmImage         = "quay.io/operator-framework/opm:latest"
	utilImage        = "quay.io/operator-framework/olm:latest"
	noWorkloadUserID = -1
)

// olmProgram returns the main function of a program of the Operator Lifecycle Manager. Its flags are --kubeconfig, --lab and
// those that bind adds: upstream's commands, which are main packages, have theirs on the flags of the whole process, and serve
// metrics on all addresses of the machine.
func olmProgram(name string, run func(ctx context.Context, kubeconfig string, config *rest.Config) error, bind ...func(*pflag.FlagSet)) func() int {
	return func() int {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
		defer stop()
		cmd := &cobra.Command{
			Use: name, Short: name + " of the Operator Lifecycle Manager", SilenceUsage: true, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				file := cmd.Flag("kubeconfig")
				if lab := cmd.Flag("lab").Value.String(); lab != "" {
					if err := file.Value.Set(seenByLab(name, lab, file.Value.String())); err != nil {
						return err
					}
				}
				config, err := kubeconfig(cmd)
				if err != nil {
					return err
				}
				if config == nil {
					return errors.New("--kubeconfig is needed")
				}
				awaitAPIServer(ctx, config)
				ctrl.SetLogger(klog.Background())
				return run(ctx, file.Value.String(), config)
			},
		}
		cmd.Flags().String("kubeconfig", "", "credentials of the program")
		cmd.Flags().String("lab", "", "file with the address of a lab that is to see the program")
		for _, add := range bind {
			add(cmd.Flags())
		}
		return cli.Run(cmd)
	}
}

// catalogOperator resolves Subscriptions with the catalogs and carries out InstallPlans. Upstream's main package beside it
// also replaces the Kubernetes version in the image names of CatalogSources, which nothing here pulls.
func catalogOperator(ctx context.Context, kubeconfig string, _ *rest.Config) error {
	scheme := clientgoscheme.Scheme
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme), apiregistrationv1.AddToScheme(scheme)); err != nil {
		return err
	}
	operator, err := catalog.NewOperator(ctx, kubeconfig, utilclock.RealClock{}, logrus.New(), catalogWakeup, configMapImage, opmImage,
		utilImage, sandbox.OLMNamespace, scheme, installPatience, unpackPatience, noWorkloadUserID)
	if err != nil {
		return err
	}
	operator.Run(ctx)
	<-operator.Ready()
	guard.Ready()
	<-operator.Done()
	return nil
}

// olmOperator installs what ClusterServiceVersions say, and keeps it so.
func olmOperator(ctx context.Context, _ string, config *rest.Config) error {
	manager, err := olmManager(config)
	if err != nil {
		return err
	}
	labelled := validatingroundtripper.Wrap(config, manager.GetScheme())
	operatorClient, err := operatorclient.NewClientFromRestConfig(labelled)
	if err != nil {
		return err
	}
	externalClient, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	operator, err := olm.NewOperator(ctx,
		olm.WithLogger(logrus.New()),
		olm.WithWatchedNamespaces(metav1.NamespaceAll),
		olm.WithResyncPeriod(queueinformer.ResyncWithJitter(operatorWakeup, wakeupJitter)),
		olm.WithExternalClient(externalClient),
		olm.WithMetadataClient(metadataClient),
		olm.WithOperatorClient(operatorClient),
		olm.WithRestConfig(labelled),
	)
	if err != nil {
		return err
	}
	operator.Run(ctx)
	<-operator.Ready()
	guard.Ready()
	if err := manager.Start(ctx); err != nil {
		return err
	}
	<-operator.Done()
	return nil
}

// olmManager returns the manager of the olm-operator's controllers that are written with controller-runtime. Of what OLM makes
// it caches only what has OLM's label, and no copies of ClusterServiceVersions.
func olmManager(config *rest.Config) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(metav1.AddMetaToScheme(scheme), operators.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	original, err := labels.NewRequirement(operatorsv1alpha1.CopiedLabelKey, selection.DoesNotExist, nil)
	if err != nil {
		return nil, err
	}
	cached := map[client.Object]cache.ByObject{
		&operatorsv1alpha1.ClusterServiceVersion{}: {Label: labels.NewSelector().Add(*original)},
	}
	for _, o := range []client.Object{
		&appsv1.Deployment{}, &corev1.Service{}, &apiextensionsv1.CustomResourceDefinition{}, &apiregistrationv1.APIService{},
		&corev1.ConfigMap{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRole{},
		&rbacv1.ClusterRoleBinding{}, &admissionregistrationv1.MutatingWebhookConfiguration{},
		&admissionregistrationv1.ValidatingWebhookConfiguration{},
	} {
		cached[o] = cache.ByObject{Label: labels.SelectorFromSet(labels.Set{install.OLMManagedLabelKey: install.OLMManagedLabelValue})}
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: cache.Options{ByObject: cached},
	})
	if err != nil {
		return nil, err
	}
	c, log := manager.GetClient(), ctrl.Log.WithName("controllers")
	conditions, err := operators.NewOperatorConditionReconciler(c, log.WithName("operatorcondition"), scheme)
	if err != nil {
		return nil, err
	}
	generator, err := operators.NewOperatorConditionGeneratorReconciler(c, log.WithName("operatorcondition-generator"), scheme)
	if err != nil {
		return nil, err
	}
	components, err := operators.NewOperatorReconciler(c, log.WithName("operator"), scheme)
	if err != nil {
		return nil, err
	}
	adoption, err := operators.NewAdoptionReconciler(c, log.WithName("adoption"), scheme)
	if err != nil {
		return nil, err
	}
	for _, r := range []interface{ SetupWithManager(ctrl.Manager) error }{conditions, generator, components, adoption} {
		if err := r.SetupWithManager(manager); err != nil {
			return nil, err
		}
	}
	return manager, nil
}
