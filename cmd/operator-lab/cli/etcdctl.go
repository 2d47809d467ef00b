package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/network"
)

func etcdctlCommand(programs Programs) *cobra.Command {
	return &cobra.Command{
		Use:   "etcdctl [--name sandbox] [etcdctl arguments…]",
		Short: "Run etcdctl against the etcd clusters in a sandbox",
		Long: `Run upstream's etcdctl, linked into this binary, against the etcd clusters that run in a
sandbox's pods. --name chooses the sandbox and comes first; everything else is etcdctl's,
whose commands 'operator-lab etcdctl help' lists.

Endpoints are the cluster's names, of Services and of members, as clients in pods have them.
Addresses outside of the sandbox work, too. Without --endpoints, and without
$ETCDCTL_ENDPOINTS, it is the client Service of the only etcd cluster there is.`,
		Example: `  operator-lab etcdctl --endpoints http://example-client.default.svc:2379 member list
  operator-lab etcdctl put greeting hello
  operator-lab etcdctl endpoint status --cluster -w table`,
		DisableFlagsInUseLine: true,
		DisableFlagParsing:    true, // all flags but a leading --name are etcdctl's
		ValidArgsFunction:     completeLinked(programs.Etcdctl, "etcdctl"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, args, err := leadingName(args)
			if err != nil {
				return err
			}
			if ownHelp(args) {
				return cmd.Help()
			}
			return programs.etcdctl(cmd.Context(), name, args)
		},
	}
}

func etcdutlCommand(programs Programs) *cobra.Command {
	return &cobra.Command{
		Use:   "etcdutl [etcdutl arguments…]",
		Short: "Run etcdutl on files of etcd, such as snapshots",
		Long: `Run upstream's etcdutl, linked into this binary, on files of this machine: snapshots that
etcdctl or an operator has saved, and data directories that no etcd uses. 'operator-lab
etcdutl help' lists its commands.`,
		Example: `  operator-lab etcdctl snapshot save backup.db
  operator-lab etcdutl snapshot status backup.db -w table`,
		DisableFlagsInUseLine: true,
		DisableFlagParsing:    true,
		ValidArgsFunction:     completeLinked(programs.Etcdutl, "etcdutl"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if ownHelp(args) {
				return cmd.Help()
			}
			return runLinked(programs.Etcdutl, "etcdutl", args)
		},
	}
}

// etcdctl runs etcdctl in this process; it can use the names of a sandbox's Services and pods.
func (p Programs) etcdctl(ctx context.Context, name string, args []string) error {
	if !helpOnly(args) {
		r, err := running(name)
		if err != nil {
			return err
		}
		if !hasEndpoints(args) {
			if err := chooseEndpoint(ctx, r); err != nil {
				return err
			}
		}
		for _, variable := range network.ProxyEnvironment(r.Proxy) {
			key, value, _ := strings.Cut(variable, "=")
			if err := os.Setenv(key, value); err != nil {
				return err
			}
		}
	}
	return runLinked(p.Etcdctl, "etcdctl", args)
}

// ownHelp reports whether the help of our command is wanted, not that of upstream's.
func ownHelp(args []string) bool {
	return len(args) == 0 || len(args) == 1 && (args[0] == "--help" || args[0] == "-h")
}

// helpOnly reports whether a command only prints something about itself.
func helpOnly(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return a == "--help" || a == "-h" }) ||
		slices.Contains([]string{"help", "version", "completion"}, args[0])
}

// endpointsVariable is etcdctl's environment variable for the endpoints.
const endpointsVariable = "ETCDCTL_ENDPOINTS"

// hasEndpoints reports whether arguments or the environment say which etcd to use.
func hasEndpoints(args []string) bool {
	return os.Getenv(endpointsVariable) != "" || slices.ContainsFunc(args, func(a string) bool {
		return a == "--endpoints" || strings.HasPrefix(a, "--endpoints=") ||
			a == "-d" || a == "--discovery-srv" || strings.HasPrefix(a, "--discovery-srv=")
	})
}

// etcdTimeout limits the search for Services of etcd clusters.
const etcdTimeout = 10 * time.Second

// chooseEndpoint takes the only client Service for the endpoint, or says which ones there are.
func chooseEndpoint(ctx context.Context, r *sandbox.Record) error {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	access, err := r.Open()
	if err != nil {
		return sandboxError(err)
	}
	config := access.Config()
	// Go looks only once at the variables that name a proxy, and they are not set yet.
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	services := &corev1.ServiceList{}
	if err := c.List(ctx, services, client.MatchingLabels{"app": "etcd"}); err != nil {
		return fmt.Errorf("look for etcd clusters: %w", err)
	}
	var found []string
	for i := range services.Items {
		if endpoint, is := clientEndpoint(&services.Items[i]); is {
			found = append(found, endpoint)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		return usageError("name one, such as --endpoints http://example-client.default.svc:2379; client Services have the label app=etcd",
			"there is no etcd cluster in sandbox %s", r.Name)
	case 1:
		return os.Setenv(endpointsVariable, found[0])
	}
	return usageError("name one: --endpoints "+strings.Join(found, ", or --endpoints "),
		"there are %d etcd clusters in sandbox %s", len(found), r.Name)
}

// etcdClientPort is the port on which members of etcd serve clients.
const etcdClientPort = 2379

// clientEndpoint returns the URL of a Service for clients of etcd. It reports false for other Services, such as those for
// members.
func clientEndpoint(s *corev1.Service) (string, bool) {
	if s.Spec.ClusterIP == corev1.ClusterIPNone {
		return "", false
	}
	for _, p := range s.Spec.Ports {
		if p.Port == etcdClientPort || p.Name == "client" {
			host := s.Name + "." + s.Namespace + ".svc"
			return "http://" + net.JoinHostPort(host, strconv.Itoa(int(p.Port))), true
		}
	}
	return "", false
}
