package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/scenarios/load"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/verify"
)

// shardFlag is the value of --shard.
type shardFlag report.Shard

func (s *shardFlag) String() string {
	if s.Count == 0 {
		return ""
	}
	return report.Shard(*s).String()
}

func (s *shardFlag) Type() string { return "shard" }

func (s *shardFlag) Set(text string) error {
	parsed, err := report.ParseShard(text)
	*s = shardFlag(parsed)
	return err
}

// mergedOutputs are the formats of a joined report.
var mergedOutputs = []string{"json", "junit", "github", "sarif"}

// mergeFlags are the flags of report merge.
type mergeFlags struct {
	output   string
	baseline string
	budgets  []string
	look     lookFlags
}

func reportCommand(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Join the reports of machines that share a suite",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(mergeCommand(io))
	return cmd
}

func mergeCommand(io streams) *cobra.Command {
	var f mergeFlags
	cmd := &cobra.Command{
		Use:   "merge [flags] <file>…",
		Short: "Join the JSON reports of all shards into one",
		Long: `Join what 'test --shard 1/3', 'test --shard 2/3'… wrote with --report-format JSON, or what 'verify --shard' or
'load --shard' wrote with --output json, into one report. It says so if a shard is missing; a shard that is there twice,
or of another suite, is refused.

Exit codes: 0 all shards are there, and nothing failed, was found or exceeded a budget, 1 otherwise, 2 the command line
or a file is wrong. What load has found is told, and is no failure without --budget 'findings <= 0'.`,
		Example: `  operator-lab report merge reports/*.json
  operator-lab report merge --output junit reports/*.json >junit.xml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("such as reports/*.json", "name the files to join")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return f.merge(io, args) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "json, junit and github (of test and verify), sarif (of verify); default: text")
	flags.StringVar(&f.baseline, "baseline", "", "accept the findings of this file, which an earlier verify wrote with --output json")
	flags.StringArrayVar(&f.budgets, "budget", nil, "what load must not exceed, such as 'calls per object <= 12'")
	f.look.bind(flags)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(mergedOutputs, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// shardFile is a report that was read, of one of the commands.
type shardFile struct {
	name string
	text []byte
}

// command returns the command that wrote the report; empty if none did.
func (f *shardFile) command() string {
	var of struct {
		Plans  json.RawMessage // of verify
		Counts json.RawMessage // of test
	}
	var loads []struct{ Sizes []json.RawMessage }
	switch {
	case json.Unmarshal(f.text, &of) == nil && of.Plans != nil:
		return "verify"
	case of.Counts != nil:
		return "test"
	case json.Unmarshal(f.text, &loads) == nil && len(loads) > 0 && loads[0].Sizes != nil:
		return "load"
	}
	return ""
}

// joins are how the reports of a command are joined, and in which formats the result can be printed.
var joins = map[string]struct {
	join    func(*mergeFlags, streams, []*shardFile) (missing []report.Shard, failed bool, err error)
	outputs []string
}{
	"test":   {(*mergeFlags).tests, []string{"json", "junit", "github"}},
	"verify": {(*mergeFlags).verified, mergedOutputs},
	"load":   {(*mergeFlags).loads, []string{"json"}},
}

func (f *mergeFlags) merge(io streams, names []string) error {
	if err := f.look.check(); err != nil {
		return err
	}
	var files []*shardFile
	for _, name := range names {
		file := &shardFile{name: name}
		var err error
		if file.text, err = os.ReadFile(name); err == nil && file.command() == "" {
			err = errors.New("neither test nor verify nor load wrote it")
		}
		if err != nil {
			return usageError("name files that 'test --report-format JSON', 'verify --output json' or 'load --output json' wrote", "read %s: %w", name, err)
		}
		if a := append(files, file)[0]; a.command() != file.command() {
			return usageError("join them one after the other", "%s and %s are of other commands: %s and %s", a.name, name, a.command(), file.command())
		}
		files = append(files, file)
	}
	command := files[0].command()
	how := joins[command]
	switch {
	case f.output != "" && !slices.Contains(how.outputs, f.output):
		return usageError("use "+strings.Join(how.outputs, ", ")+", or leave it out", "unknown output format %q", f.output)
	case f.budgets != nil && command != "load":
		return usageError("leave it out", "--budget is for reports of load, and these are of %s", command)
	case f.baseline != "" && command != "verify":
		return usageError("leave it out", "--baseline is for reports of verify, and these are of %s", command)
	}
	missing, failed, err := how.join(f, io, files)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		fmt.Fprintf(io.err, "%d of %d shards; missing: %s\n", len(files), missing[0].Count, joined(missing))
	} else {
		fmt.Fprintf(io.err, "all %d shards\n", len(files))
	}
	if failed || len(missing) > 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}

func joined(shards []report.Shard) string {
	var names []string
	for _, s := range shards {
		names = append(names, s.String())
	}
	return strings.Join(names, ", ")
}

// notTogether is an error of files that cannot be joined.
func notTogether(err error) error {
	return usageError("name one file for each shard of one run", "%w", err)
}

// readAll reads reports, which the words wrote.
func readAll[T any](files []*shardFile, words string, read func(text []byte) (T, error)) (all []T, err error) {
	for _, file := range files {
		one, err := read(file.text)
		if err != nil {
			return nil, usageError("name a file that '"+words+"' wrote", "read %s: %w", file.name, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// tests joins reports of test.
func (f *mergeFlags) tests(io streams, files []*shardFile) (missing []report.Shard, failed bool, err error) {
	runs, err := readAll(files, "test --report-format JSON", report.ReadJSON)
	if err != nil {
		return nil, false, err
	}
	run, missing, err := report.Merge(runs)
	if err != nil {
		return nil, false, notTogether(err)
	}
	switch f.output {
	case "json":
		err = report.JSON.Write(io.out, run)
	case "junit":
		err = report.JUnitTest.Write(io.out, run)
	case "github":
		err = writeAnnotations(io, run)
	default:
		text := report.NewText(io.out, report.TextOptions{
			Color: f.look.colors(io), Path: shortPath, Replay: func(journal string) string { return "operator-lab replay " + shellQuote(journal) },
		})
		for _, t := range run.Tests {
			text.EndTest(t)
		}
		text.EndRun(run)
		err = text.Err()
	}
	counts := run.Counts()
	return missing, counts.Failed+counts.NotRun > 0, err
}

// verified joins reports of verify.
func (f *mergeFlags) verified(io streams, files []*shardFile) (missing []report.Shard, failed bool, err error) {
	known, err := (&verifyFlags{baseline: f.baseline}).known()
	if err != nil {
		return nil, false, err
	}
	reports, err := readAll(files, "verify --output json", func(text []byte) (*verify.Report, error) {
		r := &verify.Report{}
		return r, json.Unmarshal(text, r)
	})
	if err != nil {
		return nil, false, err
	}
	r, missing, err := verify.Merge(reports)
	if err != nil {
		return nil, false, notTogether(err)
	}
	r.Accept(known)
	return missing, len(r.New()) > 0, writeVerified(io, r, f.output)
}

// loads joins reports of load.
func (f *mergeFlags) loads(io streams, files []*shardFile) (missing []report.Shard, failed bool, err error) {
	budgets, err := parseBudgets(f.budgets)
	if err != nil {
		return nil, false, err
	}
	shards, err := readAll(files, "load --output json", readLoads)
	if err != nil {
		return nil, false, err
	}
	merged, missing, err := load.Merge(shards)
	if err != nil {
		return nil, false, notTogether(err)
	}
	write := load.WriteText
	if f.output == "json" {
		write = load.WriteJSON
	}
	err = write(io.out, merged)
	return missing, judge(io.err, merged, budgets), err
}
