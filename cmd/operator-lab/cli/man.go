package cli

import (
	"fmt"

	mango "github.com/muesli/mango-cobra"
	"github.com/muesli/roff"
	"github.com/spf13/cobra"
)

// manCommand is for those who package the binary: like the completions, the manual page comes from the commands themselves.
func manCommand(io streams) *cobra.Command {
	return &cobra.Command{
		Use:    "man",
		Short:  "Print the manual page, for man",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			page, err := mango.NewManPage(1, cmd.Root())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(io.out, page.Build(roff.NewDocument()))
			return err
		},
	}
}
