package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/verify"
)

type verifyFlags struct {
	scenario   string
	variant    string
	parameters []string
	set        []string
	workers    int
	budget     time.Duration
	patience   time.Duration
	pairs      int
	only       []string
	shard      shardFlag
	save       string
	seed       int64
	output     string
	baseline   string
	plain      bool
	look       lookFlags
	clusterFlags
}

// verifyOutputs are the formats of --output.
var verifyOutputs = []string{"json", "html", "junit", "github", "sarif"}

func verifyCommand(io streams) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify [flags] <operator|directory>",
		Short: "Try every crash, lost reply and late event of a scenario on an operator",
		Long: `Play a scenario a few times without faults, to learn what the operator writes and where the cluster
settles. Then play it again for each write with a crash before and after it, a lost reply, an error, a
timeout and a conflict, and for each watch event with an operator that sees its kind as it was before,
that is started again so, that misses the event, or whose watch ends. When all has settled, it is
started again, and somebody else deletes, changes or labels what it made, or deletes, changes or doubles
what it serves.
What settles differently, or breaks the scenario or a rule, is played three times; what goes wrong each
time is a finding.

One sandbox is booted. Plans are played side by side, each in a namespace of its own that is all its
operator sees. An operator of your own, given by its directory, is played with its samples by default,
and one plan after the other if it has webhooks, or is a Helm chart or a hook. Timers of up to a
second are waited for; keys with longer ones count as settled. What belongs to no namespace cannot be
explored. A name that is another one in each play, such as a random one, counts as the same.

With --kubeconfig an operator of your own is played in a cluster of yours. Nothing is applied there
but the scenario and what --install says. Its webhooks are not called, and its Deployment must not run.

Faults: ` + strings.Join(verify.FaultNames(), ", ") + `

On a terminal a page shows the table and the findings as they come; enter replays a finding.

The same seed makes the same choices; an operator that writes more often in one run
has more plans in it. -o html is one page with all timelines, -o junit has a case for each plan,
-o github and -o sarif have the findings, at the scenario. With --baseline only findings that are new are counted.

Exit codes: 0 nothing was found, 1 something was found, 2 the command line or the scenario is wrong,
3 there is no sandbox, 130 interrupted; then what was found until then is printed.

Operators:
` + operatorList(),
		Example: `  operator-lab verify zundoko --variant classic --set interval=1100
  operator-lab verify maintpage --only crash-after,stale-view
  operator-lab verify . --budget 5m --save findings
  operator-lab verify . --shard 3/8 --seed 7 --output json >3.json   # one of eight machines`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("operators: "+operatorNames()+"; or a directory of your own", "name one operator")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			v := newVerifying(io, f, args[0])
			if err := v.inCluster(f.clusterFlags, cmd.Flags()); err != nil {
				return err
			}
			return v.run(cmd.Context())
		},
		ValidArgsFunction: completeOperatorOrDirectory,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.scenario, "scenario", "", "scenario to play: a folder, or the name of a bundled one (default: the operator's demo, or its samples)")
	flags.StringVar(&f.variant, "variant", "", "variant of the operator (default: its own)")
	flags.StringArrayVar(&f.parameters, "parameter", nil, "parameter of the operator: name=value")
	flags.StringArrayVar(&f.set, "set", nil, "values of the scenario: key1=val1,key2=val2")
	flags.IntVar(&f.workers, "workers", 8, "how many plans are played side by side; twice as many others in which a bundled operator without pods mostly waits for client-go")
	flags.DurationVar(&f.budget, "budget", 0, "end after this time, the plays without faults included; what was not played is counted (default: play all)")
	flags.DurationVar(&f.patience, "patience", 5*time.Second, "how long an assertion may take to become true with a fault; at least three times as long as all took without")
	flags.IntVar(&f.pairs, "pairs", 0, "then play so many plans with two faults, of those with which nothing went wrong; the seed chooses them")
	flags.StringSliceVar(&f.only, "only", nil, "explore these faults only")
	flags.Var(&f.shard, "shard", "play one part of the plans, such as 3/8, which is the third of eight; 'report merge' joins what they wrote with --output json")
	flags.StringVar(&f.save, "save", "", "write each finding's journal, and a test that fails because of it, below this directory")
	flags.Int64Var(&f.seed, "seed", 0, "seed of everything random; 0: another one each time, which is printed")
	flags.StringVarP(&f.output, "output", "o", "", strings.Join(verifyOutputs, ", ")+"; default: text")
	flags.BoolVar(&f.plain, "plain", false, "show no page on the terminal, only lines")
	f.look.bind(flags)
	f.clusterFlags.bind(flags, "kubeconfig of a cluster to play an operator of your own in, in namespaces named verify-…, which are deleted (default: a sandbox)")
	flags.StringVar(&f.baseline, "baseline", "", "accept the findings of this file, which an earlier run wrote with --output json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(verifyOutputs, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("scenario", completeScenarios)
	return cmd
}

func (f *verifyFlags) check() error {
	if f.output != "" && !slices.Contains(verifyOutputs, f.output) {
		return usageError("use "+strings.Join(verifyOutputs, ", ")+", or leave it out", "unknown output format %q", f.output)
	}
	for _, name := range f.only {
		if !slices.Contains(verify.FaultNames(), name) {
			return usageError(meant(name, verify.FaultNames())+"faults: "+strings.Join(verify.FaultNames(), ", "), "there is no fault %q", name)
		}
	}
	if err := f.look.check(); err != nil {
		return err
	}
	if f.workers < 1 {
		return usageError("use a number from 1", "--workers=%d plays nothing", f.workers)
	}
	if f.pairs < 0 {
		return usageError("use a number from 0", "--pairs=%d cannot be played", f.pairs)
	}
	if f.budget < 0 || f.patience <= 0 {
		return usageError("use a time such as 5m", "--budget and --patience are times")
	}
	return nil
}

// known returns the report of an earlier run.
func (f *verifyFlags) known() (*verify.Report, error) {
	known := &verify.Report{}
	if f.baseline == "" {
		return known, nil
	}
	text, err := os.ReadFile(f.baseline)
	if err == nil {
		err = json.Unmarshal(text, known)
	}
	if err != nil {
		return nil, usageError("name a file that 'operator-lab verify --output json' wrote", "read the baseline: %w", err)
	}
	return known, nil
}

// verifying is one run of the verify command, on a suite of one scenario.
type verifying struct {
	*suite
	asked verifyFlags
	page  explorePage
}

func newVerifying(io streams, f verifyFlags, operator string) *verifying {
	defaults := &cobra.Command{}
	t := &suite{io: io, flags: defaults.Flags()}
	t.bind(defaults)
	t.testFlags.variant, t.testFlags.parameters = f.variant, f.parameters
	t.testFlags.set = f.set
	t.testFlags.operators = []string{operator}
	t.testFlags.seed = cmp.Or(f.seed, 1+rand.Int64N(999_999))
	t.paths = []string{cmp.Or(f.scenario, operator+"/demo")}
	return &verifying{suite: t, asked: f}
}

func (v *verifying) run(ctx context.Context) error {
	defer func() { v.given.close() }()
	known, err := v.asked.known()
	if err != nil {
		return err
	}
	if err := v.findOperators(ctx); err != nil {
		return err
	}
	if err := v.given.check(); err != nil { // else its demo would not be found
		return err
	}
	if err := v.sampled(); err != nil {
		return err
	}
	if err := v.load(); err != nil {
		return badFiles(v.io.err, err)
	}
	if len(v.tests) != 1 {
		return usageError("name one of them with --scenario", "%d scenarios are below %s, and verify plays one", len(v.tests), v.paths[0])
	}
	if err := v.suite.checkOperators(); err != nil {
		return badFiles(v.io.err, err)
	}
	fmt.Fprintf(v.io.err, "seed %d\n", v.seed)
	var found *verify.Report
	err, left := v.inTarget(ctx, func(ctx context.Context, target *target) (failed bool, err error) {
		found, err = v.explore(ctx, target)
		return err != nil, err
	})
	if found == nil {
		return errors.Join(err, left)
	}
	found.File = shortPath(found.File)
	found.Accept(known)
	return errors.Join(v.conclude(found), left, err)
}

// sampled makes a scenario of the samples of an operator of the user's, unless one is named.
func (v *verifying) sampled() error {
	if len(v.given.own) == 0 || v.asked.scenario != "" {
		return nil
	}
	own := v.given.own[0]
	var objects []*unstructured.Unstructured
	for _, sample := range own.plan.Samples {
		objects = append(objects, sample.Objects...)
	}
	if len(objects) == 0 {
		return usageError("name a folder with a chainsaw-test.yaml with --scenario; 'operator-lab new scenario' makes one", "%s has no samples to make a scenario of", own.project.Name)
	}
	file := filepath.Join(own.work.Dir, "verify", "chainsaw-test.yaml")
	text, err := verify.Sampled(own.project.Name, objects)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	v.paths = []string{filepath.Dir(file)}
	return sandboxError(err)
}

func (v *verifying) explore(ctx context.Context, target *target) (*verify.Report, error) {
	options := lab.Options{Cluster: target.Cluster, Kill: target.kill, Machines: target.machines, Installed: v.installed, Seed: v.seed, Version: version()}
	workers := v.asked.workers
	var programs func(worker int) []lab.Program // those of all labs are the same, unless the operator is a program
	if len(v.given.own) > 0 {
		own := v.given.own[0]
		if err := own.lab(ctx, target, &options); err != nil {
			return nil, err
		}
		if err := own.meetCluster(); err != nil {
			return nil, err
		}
		all, closeAll, err := own.beside(workers)
		defer closeAll()
		if err != nil {
			return nil, err
		}
		workers = len(all)
		programs = func(worker int) []lab.Program { return all[worker : worker+1] }
	}
	cluster, err := client.New(rest.AddUserAgent(target.Config(), "oracle"), client.Options{})
	if err != nil {
		return nil, err
	}
	o := verify.Options{
		Lab: options, Test: v.tests[0], Selection: v.given.selection(), Runner: v.runnerOptions(target, nil), Client: cluster,
		Workers: workers, Programs: programs, Patience: v.asked.patience, Budget: v.asked.budget, Pairs: v.asked.pairs, Only: v.asked.only, Shard: report.Shard(v.asked.shard), Progress: v.progress(),
	}
	if v.asked.plain || v.asked.output != "" || !v.io.terminal() {
		return verify.Run(ctx, o)
	}
	return v.onPage(ctx, o)
}

// progressEvery is the time between two lines of progress.
const progressEvery = 5 * time.Second

// progress returns a function that prints a line now and then.
func (v *verifying) progress() func(verify.Progress) {
	var told time.Duration
	return func(p verify.Progress) {
		if p.Confirming || p.Elapsed-told < progressEvery && p.Played < p.Plans {
			return
		}
		told = p.Elapsed
		rate := float64(p.Played) / p.Elapsed.Seconds()
		fmt.Fprintf(v.io.err, "%d of %d plans, %.1f a second, %d went wrong\n", p.Played, p.Plans, rate, p.Findings)
	}
}

// write prints the report in the format that was asked for.
func (v *verifying) write(r *verify.Report) error {
	if v.asked.output == "html" {
		return r.WriteHTML(v.io.out, v.testFlags.operators[0])
	}
	return writeVerified(v.io, r, v.asked.output)
}

// writeVerified prints what verify found, in one of its formats but HTML, which needs the journals of the plays.
func writeVerified(io streams, r *verify.Report, output string) error {
	switch output {
	case "json":
		return r.WriteJSON(io.out)
	case "junit":
		return report.JUnitTest.Write(io.out, r.Run())
	case "github":
		return writeAnnotations(io, r.Run())
	case "sarif":
		problems := &lintResult{}
		for _, f := range r.New() {
			problems.Problems = append(problems.Problems, lintProblem{Severity: "error", File: r.File, Line: 1, Message: f.Text})
		}
		return printJSON(io.out, problems.sarif("operator-lab verify", sarifRule{"withstands-faults", sarifText{"An operator settles with a fault as it does without"}}))
	}
	return r.WriteText(io.out)
}

// writeAnnotations prints what failed as annotations for GitHub.
func writeAnnotations(io streams, run *report.Run) error {
	github := report.NewGitHub(report.GitHubOptions{Commands: io.out, Workspace: os.Getenv("GITHUB_WORKSPACE")})
	github.EndRun(run)
	return github.Err()
}

// conclude prints the report and saves the findings.
func (v *verifying) conclude(found *verify.Report) error {
	err := v.write(found)
	if v.asked.save != "" {
		err = errors.Join(err, found.Save(v.asked.save, v.tests[0]))
	}
	if err == nil && len(found.New()) > 0 {
		err = &exitError{code: exitFailed}
	}
	return err
}
