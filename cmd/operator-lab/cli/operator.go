package cli

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
)

type operatorFlags struct {
	kubeconfig string
	namespace  string
	metrics    string
	health     string
	elect      bool
	manifests  bool
	csv        bool
	files      string
}

func operatorCommand(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "operator <name>",
		Short: "Run one bundled operator alone, against any cluster",
		Long: "Run one bundled operator alone, as its pod would, against any cluster. Nothing of the lab is involved.\n\nOperators:\n" +
			operatorList(),
		Example: `  operator-lab operator zundoko --manifests | kubectl apply -f -
  operator-lab operator maintpage --files maintpage-operator
  operator-lab operator zundoko --kubeconfig ~/.kube/config`,
	}
	return withOperators(cmd, func(op operators.Operator) *cobra.Command { return oneOperatorCommand(io, op) })
}

// withOperators gives a command a subcommand for each bundled operator, and an error where none is named.
func withOperators(cmd *cobra.Command, one func(operators.Operator) *cobra.Command) *cobra.Command {
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError("operators: "+operatorNames(), "which operator?")
		}
		return unknownOperator(args[0])
	}
	cmd.FParseErrWhitelist.UnknownFlags = true // flags are an operator's: without a known name the error is about the name
	for _, op := range operators.All() {
		cmd.AddCommand(one(op))
	}
	return cmd
}

func oneOperatorCommand(io streams, op operators.Operator) *cobra.Command {
	var f operatorFlags
	instance := op.New()
	cmd := &cobra.Command{
		Use:   op.Name,
		Short: op.Summary,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.manifests:
				return printManifests(io, op, instance)
			case f.csv:
				return printCSV(io, op, instance)
			case f.files != "":
				return writeManifests(op, f.files)
			}
			return runOperator(cmd, io, op, instance, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default: $KUBECONFIG, the pod's own, or ~/.kube/config)")
	flags.StringVar(&f.namespace, "namespace", os.Getenv("WATCH_NAMESPACE"), "watch this namespace only (default: $WATCH_NAMESPACE, else all)")
	flags.StringVar(&f.metrics, "metrics-bind-address", "0", "address of the metrics endpoint, such as 127.0.0.1:8080; 0: none")
	flags.StringVar(&f.health, "health-probe-bind-address", "0", "address of /healthz and /readyz; 0: none")
	flags.BoolVar(&f.elect, "leader-elect", false, "wait until this process leads among several")
	flags.BoolVar(&f.manifests, "manifests", false, "print the CRDs and RBAC of the chosen variant instead of running")
	flags.BoolVar(&f.csv, "csv", false, "print the ClusterServiceVersion of the chosen variant, which installs it through OLM, instead of running")
	flags.StringVar(&f.files, "files", "", "write all its YAML files below this folder instead of running: CRDs, permissions, deployments, a sample")
	instance.Flags(flags)
	if more, ok := instance.(operators.Commands); ok {
		for _, c := range more.Commands() {
			// The API server that is in this binary has gRPC tell klog of each connection that fails.
			c.PersistentPreRun = func(*cobra.Command, []string) { klog.SetLogger(logr.Discard()) }
			cmd.AddCommand(c)
		}
	}
	return cmd
}

// runOperator is the main function of an ordinary operator.
func runOperator(cmd *cobra.Command, io streams, op operators.Operator, instance operators.Instance, f operatorFlags) error {
	logger := logr.FromSlogHandler(slog.NewTextHandler(io.err, nil))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return usageError("name one with --kubeconfig, or use a sandbox: eval \"$(operator-lab env)\"", "no cluster to run against: %w", err)
	}
	config.UserAgent = op.Name
	if config.QPS == 0 {
		config.QPS = -1 // as controller-runtime's own: the API server says when it is too much
	}
	scheme, err := operatorhost.Scheme(op)
	if err != nil {
		return err
	}
	options := ctrl.Options{
		Scheme:                        scheme,
		Logger:                        logger,
		Metrics:                       metricsserver.Options{BindAddress: f.metrics},
		HealthProbeBindAddress:        f.health,
		LeaderElection:                f.elect,
		LeaderElectionID:              op.LeaderElectionID,
		LeaderElectionReleaseOnCancel: true,
	}
	if f.elect { // outside of a pod, and in one of the lab, controller-runtime cannot guess where
		options.LeaderElectionNamespace = cmp.Or(os.Getenv("POD_NAMESPACE"), op.Namespace)
	}
	if f.namespace != "" {
		options.Cache.DefaultNamespaces = map[string]cache.Config{f.namespace: {}}
	}
	manager, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	if err := manager.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := instance.SetupWithManager(manager, controller.Options{}); err != nil {
		return err
	}
	return manager.Start(cmd.Context())
}

func operatorNames() string { return strings.Join(operators.Names(), ", ") }

func operatorList() string {
	var list strings.Builder
	for _, op := range operators.All() {
		fmt.Fprintf(&list, "  %-12s %s\n", op.Name, op.Summary)
	}
	return list.String()
}

// unknownOperator is the error for a name that no bundled operator has. It may be that of a directory.
func unknownOperator(name string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return usageError("the directory of that name is ./"+name+", as in: operator-lab run ./"+name, "there is no bundled operator %q", name)
	}
	return usageError(meant(name, operators.Names())+"operators: "+operatorNames(), "there is no bundled operator %q", name)
}

// checkOperators returns an error for a name that is not that of a bundled operator. Empty names are ignored.
func checkOperators(names ...string) error {
	for _, name := range names {
		if _, known := operators.Find(name); name != "" && !known {
			return unknownOperator(name)
		}
	}
	return nil
}
