package applets

import (
	"context"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version/verflag"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/metrics/pkg/apis/metrics/install"

	"github.com/operator-lab/operator-lab/sandbox"
)

// bootstrapHooks are the post-start hooks whose work a prepared etcd already holds: bootstrap RBAC roles and the
// system priority classes. Both look once a second until the API is there, and /healthz waits for them.
var bootstrapHooks = []string{"rbac/bootstrap-roles", "scheduling/bootstrap-system-priority-classes"}

// stopGrace is how long requests in flight may take after SIGTERM. Everything is in etcd; the full graceful stop
// spends a second on drain polls that only matter behind a load balancer.
const stopGrace = 150 * time.Millisecond

func apiServer() int {
	return cli.Run(apiServerCommand(stopSoon()))
}

// apiServerCommand is upstream's app.NewAPIServerCommand with additions that its options do not reach: the
// disabled post-start hooks of a prepared etcd, waiting for an etcd that is starting at the same time, and the resource
// metrics API.
func apiServerCommand(ctx context.Context) *cobra.Command {
	s := options.NewServerRunOptions()
	metrics := false
	cmd := &cobra.Command{
		Use:          "kube-apiserver",
		Short:        "The Kubernetes API server",
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			rest.SetDefaultWarningHandler(rest.NoWarnings{})
			return s.GenericServerRunOptions.ComponentGlobalsRegistry.Set()
		},
		RunE: func(*cobra.Command, []string) error {
			verflag.PrintAndExitIfRequested()
			if err := logsapi.ValidateAndApply(s.Logs, utilfeature.DefaultFeatureGate); err != nil {
				return err
			}
			o, err := s.Complete(ctx)
			if err != nil {
				return err
			}
			if errs := o.Validate(); len(errs) != 0 {
				return utilerrors.NewAggregate(errs)
			}
			return runAPIServer(ctx, o, metrics)
		},
	}
	sets := s.Flags()
	verflag.AddFlags(sets.FlagSet("global"))
	globalflag.AddGlobalFlags(sets.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range sets.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	cmd.Flags().BoolVar(&metrics, sandbox.MetricsFlag, false, "serve the resource metrics API with what kubelets measure")
	return cmd
}

func runAPIServer(ctx context.Context, o options.CompletedOptions, metrics bool) error {
	awaitListener(ctx, o.Etcd.StorageConfig.Transport.ServerList)
	if metrics {
		install.Install(aggregatorscheme.Scheme) // before the schemas of all kinds are made
	}
	config, err := app.NewConfig(o)
	if err != nil {
		return err
	}
	if prepared() {
		config.KubeAPIs.ControlPlane.Generic.DisabledPostStartHooks.Insert(bootstrapHooks...)
	}
	completed, err := config.Complete()
	if err != nil {
		return err
	}
	generic := config.KubeAPIs.ControlPlane.Generic
	generic.SkipOpenAPIInstallation = true // see serveSchemas
	chain, err := app.CreateServerChain(completed)
	if err != nil {
		return err
	}
	kinds := chain.GenericAPIServer.NextDelegate().(*genericapiserver.GenericAPIServer)
	if err := serveSchemas(kinds, generic.OpenAPIConfig, generic.OpenAPIV3Config); err != nil {
		return err
	}
	if metrics {
		if err := serveMetrics(chain.GenericAPIServer); err != nil {
			return err
		}
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return err
	}
	return prepared.Run(ctx)
}

// prepared reports whether the sandbox that started this process vouches for the contents of etcd.
func prepared() bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(os.Args[0]), sandbox.PreparedFile))
	return err == nil
}

// awaitListener waits until one of the servers accepts connections. A refused first dial would cost etcd's client
// a back-off of one second.
func awaitListener(ctx context.Context, servers []string) {
	for ctx.Err() == nil {
		for _, server := range servers {
			u, err := url.Parse(server)
			if err != nil || u.Port() == "" {
				return // not ours to judge: the client reports it
			}
			if conn, err := net.DialTimeout("tcp", u.Host, time.Second); err == nil {
				_ = conn.Close()
				return
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// stopSoon is a context that ends at the first SIGTERM or SIGINT; [stopGrace] later the process exits.
func stopSoon() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-signals
		cancel()
		select {
		case <-signals:
		case <-time.After(stopGrace):
		}
		os.Exit(0)
	}()
	return ctx
}
