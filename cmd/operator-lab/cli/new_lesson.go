package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/lessons/book"
)

type newLessonFlags struct {
	operator string
	dir      string
	number   int
}

func newLessonCommand(io streams) *cobra.Command {
	var f newLessonFlags
	cmd := &cobra.Command{
		Use:   "lesson <id>",
		Short: "Make a lesson to start from",
		Long: `Make a folder with a lesson that can be taken as it is: its lesson.yaml, its texts in English and Japanese, a task
with its checks, a solution and a wrong turn, and a manifest, with comments on what can be changed. A folder that is
there is never touched.`,
		Example: `  operator-lab new lesson scale-to-zero --operator zundoko
  operator-lab new lesson first-steps --number 3 --dir lessons`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("such as 'operator-lab new lesson scale-to-zero'", "a lesson needs one id")
			}
			if err := book.CheckID(args[0]); err != nil {
				return usageError("such as 'scale-to-zero'", "%w", err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("number") && (f.number < 1 || f.number > mostNumber) {
				return usageError(fmt.Sprintf("numbers are from 1 to %d", mostNumber), "a lesson cannot have the number %d", f.number)
			}
			return f.run(io, args[0])
		},
	}
	cmd.Flags().StringVar(&f.operator, "operator", "", "bundled operator that runs during the lesson (default: none)")
	cmd.Flags().StringVar(&f.dir, "dir", ".", "folder to make the lesson's folder in")
	cmd.Flags().IntVar(&f.number, "number", 0, "number of the lesson (default: the next one of the folder)")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

// mostNumber is the last number of a lesson: it is two digits of its folder's name.
const mostNumber = 99

func (f newLessonFlags) run(io streams, id string) error {
	if err := checkOperators(f.operator); err != nil {
		return err
	}
	if f.number == 0 {
		f.number = book.NextNumber(f.dir)
	}
	if f.number > mostNumber {
		return usageError("name another folder with --dir, or a free number with --number", "%s has a lesson %d already", f.dir, mostNumber)
	}
	name, files := book.Starter(book.StarterOptions{Number: f.number, ID: id, Operator: f.operator})
	folder := filepath.Join(f.dir, name)
	if err := writeFolder(folder, files); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return usageError("choose another id or number, or another folder with --dir", "%s is there already", folder)
		}
		return usageError("name a folder that can be written with --dir", "make the lesson: %w", err)
	}
	fmt.Fprintln(io.out, folder)
	fmt.Fprintf(io.err, "check it  operator-lab lesson verify %[1]s\nopen it   operator-lab lesson %[1]s\n", shellQuote(folder))
	return nil
}
