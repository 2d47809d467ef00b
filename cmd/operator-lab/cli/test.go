package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

func testCommand(io streams) *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "test [flags] [path…]",
		Short: "Run scenarios: tests of operators, in Chainsaw's file format",
		Long: `Run the scenarios below folders (default: this one), which are Chainsaw tests: files named
chainsaw-test.yaml. A bundled scenario is run by its name, unless there is a folder of that name.

Without --kubeconfig a sandbox is booted, and it is gone afterwards. kubectl in scripts is the lab's
own. All flags of 'chainsaw test' are here by the same names and do the same.

Exit codes: 0 all passed, 1 a test failed, 2 the command line or a file is wrong (then nothing was
run), 3 there is no sandbox or no cluster, 130 interrupted. After Ctrl-C what tests made is cleared
away; a second Ctrl-C leaves it.`,
		Example: `  operator-lab test                             all tests below this folder
  operator-lab test zundoko/sings               one of the bundled ones
  operator-lab test --failed                    again what failed
  operator-lab test --operator . scenarios      your own operator, built and run with faults and rules
  operator-lab test --pause-on-failure my-test  look at what failed before it is gone
  operator-lab test --kubeconfig ~/.kube/config --report-format JUNIT-TEST tests/e2e`,
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, args []string) error {
			t := &suite{io: io, testFlags: f, flags: cmd.Flags(), paths: append(f.testDirs, args...)}
			return t.run(cmd.Context())
		},
	}
	f.bind(cmd)
	return cmd
}

// suite is one run of the test command.
type suite struct {
	testFlags
	io    streams
	flags *pflag.FlagSet
	// paths are the paths as they were given.
	paths []string

	configuration *format.Configuration
	values        map[string]any
	// where holds the settings with which the tests were found.
	where format.Discovery
	tests []*format.Loaded
	// listener tells the lab what the sandbox reports.
	listener lab.Listener
	// installed are the variants whose CRDs the sandbox has, by operator.
	installed map[string]string
	// given are the operators that flags name.
	given givenOperators
	// last holds the failed tests of the last run; nil unless they are to be run again.
	last *rerun
	// cluster is that of the user's in which their operator runs; nil: it runs in a sandbox.
	cluster *userCluster
}

func (t *suite) run(ctx context.Context) error {
	if err := t.check(t.flags); err != nil {
		return err
	}
	if t.failed {
		last, err := loadRerun(t.paths)
		if err != nil {
			return err
		}
		if last == nil {
			fmt.Fprintln(t.io.err, "nothing failed in the last run in this directory")
			return nil
		}
		t.last, t.paths = last, last.paths
	}
	if err := t.load(); err != nil {
		return badFiles(t.io.err, err)
	}
	if t.list {
		return t.printTests()
	}
	defer t.given.close()
	if err := t.findOperators(ctx); err != nil {
		return err
	}
	if err := t.checkOperators(); err != nil {
		return badFiles(t.io.err, err)
	}
	if t.dryRun {
		return t.printPlan()
	}
	if some, err := t.anySelected(); err != nil || !some {
		return errors.Join(err, t.saveNothing())
	}
	return t.runAll(ctx)
}

// anySelected reports whether there is a test to run, and prints why if there is none.
func (t *suite) anySelected() (bool, error) {
	all, err := t.plan(false)
	if err != nil {
		return false, badFiles(t.io.err, err)
	}
	for _, p := range all {
		if p.Selected || t.last == nil {
			return true, nil
		}
	}
	if t.last == nil {
		fmt.Fprintln(t.io.err, "no test is selected")
		return false, nil
	}
	fmt.Fprintln(t.io.err, "none of the tests that failed in the last run in this directory is here")
	return false, t.remember(&report.Run{})
}

// shardOf returns the shard that is played.
func (t *suite) shardOf() report.Shard {
	if t.shardCount == 0 {
		return report.Shard{}
	}
	return report.Shard{Index: t.shardIndex + 1, Count: t.shardCount}
}

// saveNothing writes the report of a shard that has no test: else it would be missing when the reports are joined.
func (t *suite) saveNothing() error {
	if t.shardCount == 0 {
		return nil
	}
	now := time.Now()
	r := &reports{}
	if err := r.openFile(t.configuration.Spec.Report); err != nil {
		return err
	}
	return r.save(&report.Run{Name: reportName, Seed: t.seed, Shard: t.shardOf(), Started: now, Ended: now})
}

// load reads the configuration, the values and the tests. Its error has all problems of the files.
func (t *suite) load() (err error) {
	if t.configuration, err = t.testFlags.configuration(t.flags); err != nil {
		return err
	}
	paths, err := testPaths(t.paths)
	if err != nil {
		return err
	}
	var problems []error
	if t.values, err = format.LoadValues(t.testFlags.values, t.set, t.setString); err != nil {
		problems = append(problems, err)
	}
	t.where = t.discovery(t.configuration, paths)
	if t.tests, err = format.Discover(t.where); err != nil {
		return errors.Join(append(problems, err)...)
	}
	for _, test := range t.tests {
		if test.Err != nil {
			problems = append(problems, test.Err)
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	return t.checkNone()
}

// checkNone returns an error if there is no test, unless flags leave tests out.
func (t *suite) checkNone() error {
	d := t.where
	if len(t.tests) > 0 || t.list || t.dryRun || t.last != nil {
		return nil
	}
	d.Include, d.Exclude, d.Selectors, d.ShardIndex, d.ShardCount = "", "", nil, 0, 0
	all, err := format.Discover(d)
	if err != nil || len(all) > 0 {
		return err
	}
	return usageError("tests are in files named "+d.TestFile+".yaml (--test-file); make one with 'operator-lab new scenario <name>'", "there is no test below %s", strings.Join(d.Paths, ", "))
}

// badFiles prints all that is wrong with files, as one error each, and returns the exit code for it. What is wrong with
// anything else it returns as it is.
func badFiles(w io.Writer, err error) error {
	problems := problemsOf(err)
	if len(problems) == 0 {
		_, coded := errors.AsType[*exitError](err)
		if _, explained := errors.AsType[*sandbox.Problem](err); coded || explained {
			return err
		}
		return &exitError{exitUsage, err}
	}
	for _, p := range problems {
		fmt.Fprintf(w, "error: %s\n", strings.ReplaceAll(shortened(p).Error(), "\n", " "))
		if p.Line == 0 && p.Hint == "" {
			p.Hint = "name a file that can be read"
			if p.File == "" {
				p.Hint = "see --help" // it is about a flag
			}
		}
		if p.Hint != "" {
			fmt.Fprintf(w, "hint: %s\n", p.Hint)
		}
	}
	return &exitError{code: exitUsage}
}

// problemsOf returns all problems of files in an error. Other errors that are joined to them become problems without a
// position.
func problemsOf(err error) []format.Problem {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case nil:
		return nil
	case format.Problem:
		return []format.Problem{e}
	case interface{ Unwrap() []error }:
		var all, others []format.Problem
		for _, one := range e.Unwrap() {
			found := problemsOf(one)
			if found == nil {
				others = append(others, format.Problem{Message: one.Error()})
			}
			all = append(all, found...)
		}
		if len(all) == 0 {
			return nil
		}
		return append(all, others...)
	}
	return problemsOf(errors.Unwrap(err))
}

// shortened returns a problem with the short path of its file.
func shortened(p format.Problem) format.Problem {
	p.File = shortPath(p.File)
	return p
}

// shortPath returns a short path of a file: relative to this directory if the file is below it, and below the bundled
// scenarios the scenario's name and the rest.
func shortPath(file string) string {
	if !filepath.IsAbs(file) {
		return file
	}
	if state, err := sandbox.StateDir(); err == nil {
		inside, err := filepath.Rel(filepath.Join(state, unpackedIn), file)
		if _, name, ok := strings.Cut(filepath.ToSlash(inside), "/"); err == nil && ok && filepath.IsLocal(inside) {
			return name // after that of the build
		}
	}
	here, err := os.Getwd()
	if err != nil {
		return file
	}
	if inside, err := filepath.Rel(here, file); err == nil && filepath.IsLocal(inside) {
		return inside
	}
	return file
}

// runAll runs the tests and saves their results.
func (t *suite) runAll(ctx context.Context) error {
	if t.seed == 0 {
		t.seed = 1 + rand.Int64N(999_999) // few digits: it is typed again
	}
	out, err := t.openReports()
	if err != nil {
		return err
	}
	return errors.Join(t.inTarget(ctx, func(ctx context.Context, target *target) (failed bool, err error) {
		run, err := t.runIn(ctx, target, out.sink)
		failed = run == nil || run.Counts().Failed > 0
		if run != nil {
			err = errors.Join(err, out.save(run), t.remember(run))
		}
		if err == nil && failed {
			err = &exitError{code: exitFailed}
		}
		return failed, err
	}))
}

// inTarget opens the cluster of the tests, calls use with it and leaves it. The error left is that of leaving it.
func (t *suite) inTarget(ctx context.Context, use func(context.Context, *target) (failed bool, err error)) (err, left error) {
	quietLibraries()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	target, err := t.openTarget(ctx)
	if err != nil {
		return err, nil
	}
	failed := true // unless use returns
	defer func() { left = sandboxError(target.leave(context.WithoutCancel(ctx), failed)) }()
	go target.watch(ctx, cancel)
	failed, err = use(ctx, target)
	if cause, ok := errors.AsType[*exitError](context.Cause(ctx)); ok {
		return cause, nil // the sandbox did not stay up: the rest follows from it
	}
	return err, nil
}

// runnerOptions returns the options to run the tests in a cluster.
func (t *suite) runnerOptions(target *target, hooks runner.Hooks) runner.Options {
	return runner.Options{
		Configuration: t.configuration,
		Tests:         t.tests,
		Config:        target.config,
		Kubeconfig:    target.kubeconfig,
		Kubectl:       target.kubectl,
		Environment:   target.environment(),
		Values:        t.values,
		Seed:          t.seed,
		GiveUp:        t.giveUp,
		TimeoutScale:  t.scale,
		Hooks:         hooks,
		Meter:         target.meter(),
	}
}

// runIn runs the tests against a cluster.
func (t *suite) runIn(ctx context.Context, target *target, sink report.Sink) (_ *report.Run, err error) {
	hooks, closeLab, err := openTestLab(ctx, t, target)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeLab(context.WithoutCancel(ctx))) }()
	o := t.runnerOptions(target, hooks)
	o.Name = t.reportOptions(&format.ConfigurationSpec{Report: t.configuration.Spec.Report}).Name
	o.Sink = sink
	if t.pause {
		o.PauseOnFailure = newPause(t.io, target).wait
	}
	if t.last != nil {
		o.Selected = t.last.selected
	}
	run, err := runner.Run(ctx, o)
	if run != nil {
		run.Shard = t.shardOf()
	}
	return run, err
}

// sayf prints a message on standard error, unless --quiet is set.
func (t *suite) sayf(format string, args ...any) {
	if !t.quiet {
		fmt.Fprintf(t.io.err, format+"\n", args...)
	}
}
