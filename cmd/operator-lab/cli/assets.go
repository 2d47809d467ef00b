package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/sandbox"
)

func assetsCommand(io streams) *cobra.Command {
	var form string
	cmd := &cobra.Command{
		Use:   "assets",
		Short: "Make a directory of envtest binaries for your own test suite",
		Long: `Make a directory with etcd, kube-apiserver and kubectl, which are links to this binary, and print
where it is. Any envtest suite runs on it, in place of a download.`,
		Example: `  KUBEBUILDER_ASSETS=$(operator-lab assets -p path) go test ./...
  eval "$(operator-lab assets -p env)"`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			state, err := sandbox.StateDir()
			if err != nil {
				return err
			}
			binary, err := os.Executable()
			if err != nil {
				return err
			}
			dir, err := sandbox.Assets(state, binary)
			if err != nil {
				return err
			}
			switch form {
			case "path":
				fmt.Fprintln(io.out, dir)
			case "env":
				fmt.Fprintf(io.out, "export KUBEBUILDER_ASSETS=%s\n", shellQuote(dir))
			default:
				return usageError("use 'path' or 'env'", "unknown form %q", form)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&form, "print", "p", "path", "what to print: path, or env for a shell to evaluate")
	return cmd
}
