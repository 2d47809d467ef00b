package applets

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// scheduler is upstream's app.NewSchedulerCommand, which also says when its caches are filled.
func scheduler() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return cli.Run(schedulerCommand(ctx))
}

func schedulerCommand(ctx context.Context) *cobra.Command {
	opts := options.NewOptions()
	cmd := &cobra.Command{
		Use:          "kube-scheduler",
		Short:        "The Kubernetes scheduler",
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return opts.ComponentGlobalsRegistry.Set()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := logsapi.ValidateAndApply(opts.Logs, utilfeature.DefaultFeatureGate); err != nil {
				return err
			}
			config, err := kubeconfig(cmd)
			if err != nil {
				return err
			}
			if config != nil {
				awaitAPIServer(ctx, config)
			}
			return runScheduler(ctx, opts)
		},
	}
	verflag.AddFlags(opts.Flags.FlagSet("global"))
	globalflag.AddGlobalFlags(opts.Flags.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range opts.Flags.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	return cmd
}

func runScheduler(ctx context.Context, opts *options.Options) error {
	config, sched, err := app.Setup(ctx, opts)
	if err != nil {
		return err
	}
	// Handlers are registered by Setup; they fill once Run has started the informers.
	go func() {
		if sched.WaitForHandlersSync(ctx) == nil {
			guard.Ready()
		}
	}()
	return app.Run(ctx, config, sched)
}
