package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/operators/helm"
	"github.com/operator-lab/operator-lab/operators/starter"
)

func newOperatorCommand(io streams) *cobra.Command {
	var dir, chart, kind, apiVersion string
	cmd := &cobra.Command{
		Use:   "operator <name>",
		Short: "Make an operator's project to start from",
		Long: `Make a folder with a small operator that is complete: a Go module with one kind, its CRD, types and
controller, permissions and a Deployment, a sample, a unit test and a scenario. It knows nothing of
the lab and runs on any cluster. A folder that is there is never touched.

With --chart it is a Helm operator in place of the Go module: a copy of the chart, watches.yaml,
the CRD with a schema of its values, permissions by what the chart renders, and a sample.`,
		Example: `  operator-lab new operator cafe
  operator-lab new operator tomcat-operator --chart ./tomcat --api-version apache.org/v1alpha1
  operator-lab new operator cafe-operator --dir src`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("such as 'operator-lab new operator cafe'", "an operator needs one name")
			}
			if err := starter.CheckName(args[0]); err != nil {
				return usageError("such as 'cafe' or 'cafe-operator'", "%w", err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if chart != "" {
				return writeChartOperator(io, args[0], dir, helm.Project{Name: args[0], Chart: chart}, apiVersion, kind)
			}
			if cmd.Flags().Changed("kind") || cmd.Flags().Changed("api-version") {
				return usageError("name the chart with --chart", "--kind and --api-version are for an operator that is made of a chart")
			}
			return writeOperator(io, args[0], dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", ".", "folder to make the operator's folder in")
	cmd.Flags().StringVar(&chart, "chart", "", "make a Helm operator of this chart, a directory or an archive")
	cmd.Flags().StringVar(&kind, "kind", "", "kind whose objects are the chart's releases (default: as the operator, without -operator)")
	cmd.Flags().StringVar(&apiVersion, "api-version", "example.com/v1alpha1", "group and version of that kind")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

// writeChartOperator makes the folder of an operator of a Helm chart.
func writeChartOperator(io streams, name, dir string, p helm.Project, apiVersion, kind string) (err error) {
	if p.Kind, err = helm.ParseKind(apiVersion, cmp.Or(kind, starter.Kind(name))); err != nil {
		return usageError("such as --kind Tomcat --api-version apache.org/v1alpha1", "%w", err)
	}
	files, err := helm.Files(p)
	if err != nil {
		return usageError(chartHint, "%w", err)
	}
	folder := filepath.Join(dir, name)
	if err := writeNewFolder(folder, files); err != nil {
		return err
	}
	fmt.Fprintln(io.out, folder)
	fmt.Fprintf(io.err, "run it       cd %s && operator-lab run . --apply\n", shellQuote(folder))
	return nil
}

// writeNewFolder makes the folder of a new operator.
func writeNewFolder(folder string, files map[string][]byte) error {
	err := writeFolder(folder, files)
	switch {
	case errors.Is(err, fs.ErrExist):
		return usageError("choose another name, or another folder with --dir", "%s is there already", folder)
	case err != nil:
		return usageError("name a folder that can be written with --dir", "make the operator: %w", err)
	}
	return nil
}

// writeOperator makes the folder of a new operator, which requires what this binary was built with.
func writeOperator(io streams, name, dir string) error {
	folder := filepath.Join(dir, name)
	if err := writeNewFolder(folder, starter.Files(starter.Options{Name: name})); err != nil {
		return err
	}
	fmt.Fprintln(io.out, folder)
	fmt.Fprintf(io.err, "test it      cd %s && go test ./...\nrun it       operator-lab run . --apply\n", shellQuote(folder))
	return nil
}
