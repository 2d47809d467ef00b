package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"
	etcd "go.etcd.io/etcd/api/v3/version"
)

// version of this build, as the go command recorded it: the tag of the commit, else a version made of its time and hash,
// with +dirty when the tree had changes.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return unreleased
	}
	return info.Main.Version
}

// unreleased is the version of a build of which the go command recorded none.
const unreleased = "devel"

// unknown is the version of a module in a binary without build information, as tests are.
const unknown = "unknown"

// dependency is the version of a module that is linked in, or unknown.
func dependency(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return unknown
}

func versionCommand(io streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show what is linked into this binary",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				OperatorLab       string `json:"operatorLab"`
				Kubernetes        string `json:"kubernetes"`
				Etcd              string `json:"etcd"`
				ControllerRuntime string `json:"controllerRuntime"`
				Go                string `json:"go"`
				Platform          string `json:"platform"`
			}{
				version(), dependency("k8s.io/kubernetes"), "v" + etcd.Version, dependency("sigs.k8s.io/controller-runtime"),
				runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH,
			}
			return printed(io.out, output, v, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "operator-lab\t%s\nkubernetes\t%s\netcd\t%s\ncontroller-runtime\t%s\ngo\t%s\nplatform\t%s\n",
					v.OperatorLab, v.Kubernetes, v.Etcd, v.ControllerRuntime, v.Go, v.Platform)
			})
		},
	}
	outputFlag(cmd, &output)
	return cmd
}
