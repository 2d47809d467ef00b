package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/scenarios"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

func newCommand(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Make something to start from",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError(newKinds, "what is to be made?")
			}
			return usageError(meant(args[0], []string{"scenario", "lesson", "operator"})+newKinds, "there is nothing new of the kind %q", args[0])
		},
	}
	cmd.AddCommand(newScenarioCommand(io), newLessonCommand(io), newOperatorCommand(io))
	return cmd
}

// newKinds is the hint that lists what 'new' can write.
const newKinds = "there are: scenario, lesson, operator"

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
	if err := writeNew(file, format.Starter(format.StarterOptions{Name: name, Operator: f.operator, Sample: sampleOf(f.operator)})); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return usageError("choose another name, or another folder with --dir", "%s is there already", file)
		}
		return usageError("name a folder that can be written with --dir", "make the scenario: %w", err)
	}
	fmt.Fprintln(io.out, file)
	fmt.Fprintf(io.err, "check it  operator-lab lint %[1]s\nrun it    operator-lab test %[1]s\n", shellQuote(folder))
	return nil
}

// sampleOf returns the manifest of the object that an operator's demo begins with, or else the first of its samples with one
// object; nil if there is none.
func sampleOf(operator string) []byte {
	op, found := operators.Find(operator)
	if !found {
		return nil
	}
	demo, _ := fs.ReadFile(scenarios.Bundled(), operator+"/demo/chainsaw-test.yaml")
	files, _ := fs.Glob(op.Manifests, "samples/*.yaml")
	var first []byte
	for _, file := range files {
		text, err := fs.ReadFile(op.Manifests, file)
		if err != nil || bytes.Contains(text, []byte("\n---")) {
			continue
		}
		if first == nil {
			first = text
		}
		if kind := kindLine.Find(text); kind != nil && bytes.Contains(demo, append([]byte(" "), kind...)) {
			return text
		}
	}
	return first
}

// kindLine matches the line of a manifest that names its kind.
var kindLine = regexp.MustCompile(`(?m)^kind: \S+$`)

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

// writeFolder makes a folder that is not there yet, with files by their slash-separated paths in it, and the folders
// above it. If a file cannot be written, nothing of the folder is left.
func writeFolder(folder string, files map[string][]byte) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := writeNew(filepath.Join(folder, filepath.FromSlash(name)), text); err != nil {
			return errors.Join(err, os.RemoveAll(folder))
		}
	}
	return nil
}
