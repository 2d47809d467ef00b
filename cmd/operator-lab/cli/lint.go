package cli

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

type lintFlags struct {
	config    string
	testFile  string
	remarshal bool
	output    string
	format    string
}

// lintFormats are the forms in which problems are printed.
var lintFormats = []string{"text", "json", "github", "sarif"}

func lintCommand(io streams) *cobra.Command {
	var f lintFlags
	cmd := &cobra.Command{
		Use:   "lint [path…]",
		Short: "Find all that is wrong with scenarios, without running them",
		Long: `Read the scenarios below folders (default: this one), their step templates and the files they
name, and print everything that is wrong with them, each with its file, line and column. The
configuration file is read too, if there is one.

--format github prints them as GitHub's workflow commands, which it shows at their lines; --format
sarif as SARIF 2.1.0, for GitHub's code scanning and for editors. -o json is --format json.

Exit code 2 when something is wrong. A warning is something that is likely not meant; it is no error.`,
		Example: `  operator-lab lint
  operator-lab lint tests/e2e -o json
  operator-lab lint --format sarif > lint.sarif`,
		ValidArgsFunction: completeScenarios,
		RunE:              func(_ *cobra.Command, args []string) error { return f.run(io, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "configuration file (default: "+format.ConfigurationFile+", if there is one)")
	flags.StringVar(&f.testFile, "test-file", "", "name of the files that tests are in (default: the configuration's, chainsaw-test)")
	flags.BoolVar(&f.remarshal, "remarshal", false, "resolve the anchors of YAML before a test is read")
	flags.StringVar(&f.format, "format", "", strings.Join(lintFormats, ", ")+" (default: text)")
	outputFlag(cmd, &f.output)
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	return cmd
}

func (f lintFlags) run(io streams, args []string) error {
	if err := checkOutput(f.output); err != nil {
		return err
	}
	form := cmp.Or(f.format, f.output, "text")
	switch {
	case !slices.Contains(lintFormats, form):
		return usageError("use "+strings.Join(lintFormats, ", "), "unknown format %q", form)
	case f.format != "" && f.output != "":
		return usageError("leave one of them out", "--format and --output exclude each other")
	}
	paths, err := testPaths(args)
	if err != nil {
		return err
	}
	result, err := f.lint(paths)
	if err != nil {
		return badFiles(io.err, err)
	}
	switch form {
	case "json":
		err = printJSON(io.out, result)
	case "github":
		result.annotate(io)
	case "sarif":
		err = printJSON(io.out, result.sarif("operator-lab lint", sarifRule{"scenario", sarifText{"A scenario says what it is meant to say"}}))
	default:
		result.print(io)
	}
	if err == nil && result.Errors > 0 {
		return &exitError{code: exitUsage}
	}
	return err
}

// lintResult is the JSON output of lint.
type lintResult struct {
	Tests    int           `json:"tests"`
	Errors   int           `json:"errors"`
	Warnings int           `json:"warnings"`
	Problems []lintProblem `json:"problems"`
}

type lintProblem struct {
	Severity string `json:"severity"`
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}

func (f lintFlags) lint(paths []string) (*lintResult, error) {
	var problems []format.Problem
	t := testFlags{config: f.config}
	configuration, err := format.LoadConfiguration(t.config)
	if err != nil {
		if problems = problemsOf(err); len(problems) == 0 {
			return nil, err
		}
		configuration = format.DefaultConfiguration()
	}
	if f.testFile != "" {
		configuration.Spec.Discovery.TestFile = f.testFile
	}
	d := discoveryOf(configuration, paths)
	d.Remarshal, d.Include, d.Exclude = f.remarshal, "", "" // whatever is run, all is to be right
	tests, err := format.Discover(d)
	if err != nil && len(problemsOf(err)) == 0 {
		return nil, err
	}
	result := &lintResult{Tests: len(tests), Problems: []lintProblem{}} // not null in JSON
	problems = append(problems, format.Lint(d)...)
	problems = append(problems, operatorProblems(tests)...)
	for _, p := range problems {
		p = shortened(p)
		severity := "error"
		if p.Warning {
			severity = "warning"
			result.Warnings++
		} else {
			result.Errors++
		}
		result.Problems = append(result.Problems, lintProblem{severity, p.File, p.Line, p.Column, p.Message, p.Hint})
	}
	return result, nil
}

// operatorProblems returns what is wrong with the operators that tests ask for.
func operatorProblems(tests []*format.Loaded) format.Problems {
	tests = slices.DeleteFunc(slices.Clone(tests), func(t *format.Loaded) bool { return t.Err != nil })
	return new(givenOperators).problems(tests)
}

// print lists the problems, and counts them for people.
func (r *lintResult) print(io streams) {
	for _, p := range r.Problems {
		where := format.Position{File: p.File, Line: p.Line, Column: p.Column}
		fmt.Fprintf(io.out, "%s: %s: %s\n", where, p.Severity, oneLine(p.Message))
		if p.Hint != "" {
			fmt.Fprintf(io.out, "  hint: %s\n", p.Hint)
		}
	}
	r.count(io)
}

// count tells people how much is wrong.
func (r *lintResult) count(io streams) {
	if r.Errors+r.Warnings == 0 {
		fmt.Fprintf(io.err, "%s, nothing wrong\n", count(r.Tests, "test"))
		return
	}
	fmt.Fprintf(io.err, "%s, %s, %s\n", count(r.Tests, "test"), count(r.Errors, "error"), count(r.Warnings, "warning"))
}

// annotate prints the problems for GitHub.
func (r *lintResult) annotate(io streams) {
	for _, p := range r.Problems {
		a := report.Annotation{Level: p.Severity, File: p.File, Line: p.Line, Column: p.Column, Title: "operator-lab lint", Message: p.text()}
		fmt.Fprintln(io.out, a.Command(os.Getenv("GITHUB_WORKSPACE")))
	}
	r.count(io)
}

// text is a problem with its hint, where only one text has a place.
func (p lintProblem) text() string {
	if p.Hint == "" {
		return p.Message
	}
	return p.Message + "\nhint: " + p.Hint
}
