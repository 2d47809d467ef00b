package cli

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/sandbox/images"
	"github.com/operator-lab/operator-lab/sandbox/project"
)

// buildCommand builds an operator of the user's for the pods of an image, with the taps where it can have them, and prints an
// [images.Life] with what a lab is to know of it. Nodes call it, so it is not in the help.
func buildCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:    "build <directory>",
		Short:  "Build an operator's program",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := project.Find(cmd.Context(), project.Options{Dir: args[0], WorkDir: filepath.Join(filepath.Dir(to), "work")})
			if err != nil {
				return usageOf(err)
			}
			if p.IsRead() {
				return usageError("name the directory of a Go module", "%s has no program of its own to build", args[0])
			}
			binary, err := p.Build(cmd.Context(), project.BuildOptions{})
			if err != nil {
				return usageOf(err)
			}
			if err := os.Rename(binary, to); err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(images.Life{Tapped: p.Linked})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "file to write")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}
