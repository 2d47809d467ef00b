package applets

import (
	"context"
	"errors"
	"time"

	olmclient "github.com/operator-framework/operator-lifecycle-manager/pkg/api/client"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/lib/queueinformer"
	packages "github.com/operator-framework/operator-lifecycle-manager/pkg/package-server/apiserver"
	packagestorage "github.com/operator-framework/operator-lifecycle-manager/pkg/package-server/apiserver/generic"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/package-server/provider"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// packagesWakeup is how often the package server reads all catalogs again, as upstream's flag is by default.
const packagesWakeup = 12 * time.Hour

// packageServer serves the packages of all catalogs as PackageManifests. Who asks and whether they may is up to
// kube-apiserver. Upstream's command never gets as far outside of a cluster: it gives its kubeconfig to the
// authentication twice, and none to the authorization.
func packageServer() int {
	secure := genericoptions.NewSecureServingOptions().WithLoopback()
	serve := func(ctx context.Context, kubeconfig string, config *rest.Config) error {
		return servePackages(ctx, kubeconfig, config, secure)
	}
	return olmProgram("package-server", serve, secure.AddFlags)()
}

func servePackages(ctx context.Context, kubeconfig string, config *rest.Config, secure *genericoptions.SecureServingOptionsWithLoopback) error {
	authentication, authorization := genericoptions.NewDelegatingAuthenticationOptions(), genericoptions.NewDelegatingAuthorizationOptions()
	authentication.RemoteKubeConfigFile, authorization.RemoteKubeConfigFile = kubeconfig, kubeconfig
	generic := genericapiserver.NewConfig(packagestorage.Codecs)
	if err := errors.Join(
		secure.ApplyTo(&generic.SecureServing, &generic.LoopbackClientConfig),
		authentication.ApplyTo(&generic.Authentication, generic.SecureServing, nil),
		authorization.ApplyTo(&generic.Authorization),
	); err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	olm, err := olmclient.NewClient(kubeconfig)
	if err != nil {
		return err
	}
	queues, err := queueinformer.NewOperator(olm.Discovery())
	if err != nil {
		return err
	}
	source, err := provider.NewRegistryProvider(ctx, olm, queues, packagesWakeup, sandbox.OLMNamespace)
	if err != nil {
		return err
	}
	full := &packages.Config{GenericConfig: generic, ProviderConfig: packagestorage.ProviderConfig{Provider: source}}
	serving, err := full.Complete(informers.NewSharedInformerFactory(kube, 0)).New()
	if err != nil {
		return err
	}
	if err := serving.GenericAPIServer.AddPostStartHook("ready", func(genericapiserver.PostStartHookContext) error {
		guard.Ready()
		return nil
	}); err != nil {
		return err
	}
	source.Run(ctx)
	<-source.Ready()
	return serving.GenericAPIServer.PrepareRun().RunWithContext(ctx)
}
