package cli

import (
	"fmt"
	"time"

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
			_, err = fmt.Fprintln(io.out, page.Build(manual{roff.NewDocument()}))
			return err
		},
	}
}

// manual is a manual page whose head names the section of the manual: for the description there is no room.
type manual struct{ *roff.Document }

// Heading writes the line with the head of each page.
func (m manual) Heading(section uint, title, _ string, date time.Time) {
	m.Document.Heading(section, title, "User Commands", date)
}
