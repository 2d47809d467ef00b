package cli

import (
	"errors"
	"fmt"
	goversion "go/version"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/operators/starter"
)

func newOperatorCommand(io streams) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "operator <name>",
		Short: "Make an operator's project to start from",
		Long: `Make a folder with a small operator that is complete: a Go module with one kind, its CRD, types and
controller, permissions and a Deployment, a sample, a unit test and a scenario. It knows nothing of
the lab and runs on any cluster. A folder that is there is never touched.`,
		Example: `  operator-lab new operator cafe
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
		RunE: func(_ *cobra.Command, args []string) error { return writeOperator(io, args[0], dir) },
	}
	cmd.Flags().StringVar(&dir, "dir", ".", "folder to make the operator's folder in")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

// writeOperator makes the folder of a new operator, which requires what this binary was built with.
func writeOperator(io streams, name, dir string) error {
	o := starter.Options{Name: name, Versions: map[string]string{}}
	if language := goversion.Lang(runtime.Version()); language != "" {
		o.Go = strings.TrimPrefix(language, "go") + ".0"
	}
	for _, module := range starter.Modules {
		if version := dependency(module); version != unknown {
			o.Versions[module] = version
		}
	}
	folder := filepath.Join(dir, name)
	if err := writeFolder(folder, starter.Files(o)); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return usageError("choose another name, or another folder with --dir", "%s is there already", folder)
		}
		return usageError("name a folder that can be written with --dir", "make the operator: %w", err)
	}
	fmt.Fprintln(io.out, folder)
	fmt.Fprintf(io.err, "complete it  cd %s && go mod tidy\ntest it      go test ./...\nrun it       operator-lab run . --apply\n", shellQuote(folder))
	return nil
}
