package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

func newCommand(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Make a commented file to start from",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError(newKinds, "what is to be made?")
			}
			return usageError(newKinds, "there is nothing new of the kind %q", args[0])
		},
	}
	cmd.AddCommand(newScenarioCommand(io), newLessonCommand(io))
	return cmd
}

// newKinds is the hint that lists what 'new' can write.
const newKinds = "there are: scenario, lesson"

type newScenarioFlags struct {
	operator string
	dir      string
}

func newScenarioCommand(io streams) *cobra.Command {
	var f newScenarioFlags
	cmd := &cobra.Command{
		Use:   "scenario <name>",
		Short: "Make a scenario to start from",
		Long: `Make a folder with a scenario that passes as it is: a chainsaw-test.yaml with comments on what
can be changed. A file that is there is never overwritten.`,
		Example: `  operator-lab new scenario deletes-cleanly --operator zundoko
  operator-lab new scenario smoke --dir tests/e2e`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("such as 'operator-lab new scenario deletes-cleanly'", "a scenario needs one name")
			}
			return checkScenarioName(args[0])
		},
		RunE: func(_ *cobra.Command, args []string) error { return f.run(io, args[0]) },
	}
	cmd.Flags().StringVar(&f.operator, "operator", "", "bundled operator that runs during the scenario (default: none)")
	cmd.Flags().StringVar(&f.dir, "dir", ".", "folder to make the scenario's folder in")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

// A test is a Kubernetes object, and its name becomes a folder.
var scenarioName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?$`)

func checkScenarioName(name string) error {
	if scenarioName.MatchString(name) {
		return nil
	}
	return usageError("use up to 50 lower-case letters, digits and dashes, such as 'deletes-cleanly'", "%q is no name for a scenario", name)
}

func (f newScenarioFlags) run(io streams, name string) error {
	if err := checkOperators(f.operator); err != nil {
		return err
	}
	folder := filepath.Join(f.dir, name)
	file := filepath.Join(folder, "chainsaw-test.yaml")
	if err := writeNew(file, format.Starter(format.StarterOptions{Name: name, Operator: f.operator})); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return usageError("choose another name, or another folder with --dir", "%s is there already", file)
		}
		return usageError("name a folder that can be written with --dir", "make the scenario: %w", err)
	}
	fmt.Fprintln(io.out, file)
	fmt.Fprintf(io.err, "check it  operator-lab lint %[1]s\nrun it    operator-lab test %[1]s\n", shellQuote(folder))
	return nil
}

// writeNew writes a file that is not there yet, and the folders above it.
func writeNew(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
