package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func proxyCommand(io streams) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Print the URL of the HTTP proxy that knows the cluster's names",
		Long: `Print the URL, with its password, of an HTTP proxy on this machine that resolves the
cluster's names: of Services, pods and nodes. What is asked through it arrives at the
program in the pod.`,
		Example: `  curl -x "$(operator-lab proxy)" http://web.default.svc.cluster.local:8080/
  eval "$(operator-lab env --proxy)"; curl http://web.default.svc.cluster.local:8080/`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			r, err := running(name)
			if err != nil {
				return err
			}
			fmt.Fprintln(io.out, r.Proxy)
			return nil
		},
	}
	nameFlag(cmd, &name)
	return cmd
}
