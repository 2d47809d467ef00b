package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/scenarios"
	"github.com/operator-lab/operator-lab/scenarios/load"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

type loadFlags struct {
	sizes      []int
	rate       string
	duration   time.Duration
	patience   time.Duration
	sample     string
	patch      string
	variants   []string
	parameters []string
	budgets    []string
	baseline   string
	html       string
	output     string
	shard      shardFlag
	nodes      nodeFlags
	clusterFlags
}

// leastPace is the shortest time from one change to the next.
const leastPace = time.Millisecond

func loadCommand(io streams) *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:   "load [flags] <operator|directory>",
		Short: "Measure what an operator costs with the number of its objects",
		Long: `Make more and more objects of a sample. At each size, change some of them; end all watches of the
operator with 410 Gone, so that it lists everything anew and hears of each object once more, as in a
full resync; and start the operator again. Count what it does in each of these phases: reconciles,
calls and bytes by verb and resource, objects in lists, watch events, keys in its queue, writes that
change nothing, conflicts. Then say how each figure grows with the number of objects (constant, n,
n log n, n²), and what grows faster than it has to, and from which call.

How a figure grows is said from four sizes on, the last of which is eight times the first or more.
Times are told, and nothing is concluded from them. CPU time and memory are those of an operator
with a process of its own; the bundled ones run in the lab's.

Without --sample the sample is the first of the project; for zundoko and maintpage there is one in
the lab. ` + load.Number + ` in it is the number of the object, in --patch that of the change.

A budget is a limit for a figure with the most objects, such as 'calls per object <= 12',
'bytes per reconcile at relist < 4KiB', 'growth of items at restart <= n' or 'findings <= 0'. Without
'at' it is that of all objects being made.

Exit codes: 0 measured, 1 a budget was exceeded or the operator did not come to rest, 2 the command
line or a file is wrong, 3 there is no sandbox, 130 interrupted; then what was measured until then
is printed.

Operators:
` + operatorList(),
		Example: `  operator-lab load zundoko
  operator-lab load zundoko --variant hardened,classic --html load.html
  operator-lab load . --objects 1,8,64,512 --budget 'calls per object <= 12'
  operator-lab load . --output json >before.json
  operator-lab load . --baseline before.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("operators: "+operatorNames()+"; or a directory of your own", "name one operator")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			l := &loading{io: io, asked: f, operator: args[0], flags: cmd}
			if err := l.check(); err != nil {
				return err
			}
			return l.run(cmd.Context())
		},
		ValidArgsFunction: completeOperatorOrDirectory,
	}
	flags := cmd.Flags()
	flags.IntSliceVar(&f.sizes, "objects", []int{1, 10, 100, 1000}, "the numbers of objects, each larger than the one before")
	flags.StringVar(&f.rate, "change", "5/s", "how many changes are made in a second, one object after the other; 0: none")
	flags.DurationVar(&f.duration, "for", 10*time.Second, "how long changes are made at each size")
	flags.DurationVar(&f.patience, "patience", 0, "how long the operator may be at work after each phase (default 5m0s, and 0.1s more for each object)")
	flags.StringVar(&f.sample, "sample", "", "file with the object to make many of")
	flags.StringVar(&f.patch, "patch", "", "JSON merge patch of a change (default: that of the lab's sample, or an annotation)")
	flags.StringSliceVar(&f.variants, "variant", nil, "variants of the operator, which are shown side by side (default: its own)")
	flags.StringArrayVar(&f.parameters, "parameter", nil, "parameter of the operator: name=value")
	flags.StringArrayVar(&f.budgets, "budget", nil, "what must not be exceeded, such as 'calls per object <= 12'")
	flags.StringVar(&f.baseline, "baseline", "", "file that an earlier run wrote with --output json, shown side by side")
	flags.StringVar(&f.html, "html", "", "write the report to this file, too, as one page with plots")
	flags.StringVarP(&f.output, "output", "o", "", "json; default: text")
	flags.Var(&f.shard, "shard", "measure some of the sizes only, such as 3/4, which is the third of four; 'report merge' joins what they wrote with --output json")
	f.clusterFlags.bind(flags, "kubeconfig of a cluster to run an operator of your own against, in a namespace named load-…, which is deleted (default: a sandbox)")
	f.nodes.bind(flags, 0)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("sample", "yaml", "yml", "json")
	_ = cmd.MarkFlagFilename("baseline", "json")
	_ = cmd.MarkFlagFilename("html", "html")
	return cmd
}

// loading is one run of the load command.
type loading struct {
	io       streams
	asked    loadFlags
	operator string
	flags    *cobra.Command

	budgets []load.Budget
	before  []*load.Report // of the baseline
	changes int
	every   time.Duration
}

// check reads what flags say.
func (l *loading) check() (err error) {
	f := &l.asked
	if f.output != "" && f.output != "json" {
		return usageError("use json, or leave it out", "unknown output format %q", f.output)
	}
	if err := load.CheckSizes(f.sizes); err != nil {
		return &exitError{exitUsage, err}
	}
	if f.shard.Count > len(f.sizes) {
		return usageError("so many at most: --objects has one size for each", "--shard: there are %d sizes to share, and not %d", len(f.sizes), f.shard.Count)
	}
	if f.duration < 0 || l.flags.Flags().Changed("patience") && f.patience <= 0 {
		return usageError("use a time such as 30s", "--for and --patience are times")
	}
	rate, err := strconv.ParseFloat(strings.TrimSuffix(f.rate, "/s"), 64)
	if err != nil || !(rate >= 0 && rate <= 1000) {
		return usageError("use a number a second up to 1000, such as 5/s", "--change=%s is no pace", f.rate)
	}
	if rate > 0 {
		l.every = max(leastPace, time.Duration(float64(time.Second)/rate))
		l.changes = int(rate * f.duration.Seconds())
	}
	if l.budgets, err = parseBudgets(f.budgets); err != nil {
		return err
	}
	if f.baseline == "" {
		return nil
	}
	text, err := os.ReadFile(f.baseline)
	if err == nil {
		l.before, err = readLoads(text)
	}
	if err != nil {
		return usageError("name a file that 'operator-lab load --output json' wrote", "read the baseline: %w", err)
	}
	for _, r := range l.before {
		r.Variant = r.Name() + " before"
	}
	return nil
}

// readLoads reads what --output json wrote.
func readLoads(text []byte) (reports []*load.Report, err error) {
	if err := json.Unmarshal(text, &reports); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(reports, func(r *load.Report) bool { return r == nil || len(r.Sizes) == 0 }) {
		return nil, errors.New("a report has no sizes")
	}
	return reports, nil
}

// run measures each variant in a sandbox of its own.
func (l *loading) run(ctx context.Context) error {
	var reports []*load.Report
	variants := l.asked.variants
	if len(variants) == 0 {
		variants = []string{""}
	}
	var suites []*suite
	defer func() {
		for _, t := range suites {
			t.given.close()
		}
	}()
	var options []load.Options
	for _, variant := range variants { // what is wrong is said before anything is booted
		t := l.suite(variant)
		suites = append(suites, t)
		if err := t.inCluster(l.asked.clusterFlags, l.flags.Flags()); err != nil {
			return err
		}
		o, err := l.prepare(ctx, t)
		if err != nil {
			return err
		}
		options = append(options, o)
	}
	var wrong, notLeft error
	for i, t := range suites {
		var r *load.Report
		err, left := t.inTarget(ctx, func(ctx context.Context, target *target) (failed bool, err error) {
			r, err = l.measure(ctx, t, target, options[i])
			return err != nil, err
		})
		if r != nil && len(r.Sizes) > 0 {
			reports = append(reports, r)
		}
		notLeft = errors.Join(notLeft, left)
		if wrong = err; wrong != nil {
			break
		}
	}
	if len(reports) > 0 {
		wrong = errors.Join(wrong, l.conclude(reports))
	}
	return errors.Join(wrong, notLeft)
}

// suite returns the suite of a variant: its sandbox is made as for tests.
func (l *loading) suite(variant string) *suite {
	defaults := &cobra.Command{}
	t := &suite{io: l.io, flags: defaults.Flags()}
	t.bind(defaults)
	_ = t.flags.Set("nodes", strconv.Itoa(l.asked.nodes.nodes)) // a number
	t.nodes = l.asked.nodes
	t.testFlags.variant, t.testFlags.parameters = variant, l.asked.parameters
	t.testFlags.operators, t.testFlags.seed = []string{l.operator}, 1
	return t
}

// prepare finds the operator and its sample.
func (l *loading) prepare(ctx context.Context, t *suite) (o load.Options, err error) {
	if err := t.findOperators(ctx); err != nil {
		return o, err
	}
	if err := t.given.check(); err != nil {
		return o, err
	}
	o = load.Options{Operator: t.given.names[0], Sizes: l.asked.sizes, Shard: report.Shard(l.asked.shard), Changes: l.changes, Every: l.every, Patience: l.asked.patience}
	if len(t.given.own) == 0 {
		t.paths = []string{l.operator + "/demo"}
		if err := t.load(); err != nil {
			return o, badFiles(l.io.err, err)
		}
		setup, err := t.given.selection().Setup(t.tests[0].Test)
		if err != nil {
			return o, err
		}
		o.Spec = setup.Spec
		op, _ := operators.Find(l.operator)
		instance, err := lab.InstanceOf(op, o.Spec)
		if err != nil {
			return o, &exitError{exitUsage, err}
		}
		o.Spec.Variant = instance.Variant() // also where it is the default
	} else {
		l.asked.nodes.take(t.given.own[0].project, l.flags.Flags())
		t.nodes = l.asked.nodes
	}
	switch {
	case t.cluster != nil:
		o.Clean = true
		o.Notes = append(o.Notes, "it was measured in "+t.cluster.config.Host+": what others do there is counted where the operator sees it, and in what etcd grew by")
	case t.nodes.fake:
		o.Notes = append(o.Notes, onlyAnswer)
	case t.nodes.nodes == 0:
		o.Notes = append(o.Notes, "there are no nodes (--nodes): pods stay Pending")
	}
	if o.Sample, err = l.sample(t); err != nil {
		return o, err
	}
	if err := o.Sample.Check(); err != nil {
		return o, &exitError{exitUsage, err}
	}
	return o, nil
}

// sample returns what is made and how it is changed.
func (l *loading) sample(t *suite) (s load.Sample, err error) {
	var text []byte
	switch {
	case l.asked.sample != "":
		if text, err = os.ReadFile(l.asked.sample); err != nil {
			return s, usageError("name a file with one object", "read the sample: %w", err)
		}
	case len(t.given.own) > 0:
		text, err = firstSample(t.given.own[0])
	default:
		if text, _ = fs.ReadFile(scenarios.Bundled(), l.operator+"/load/sample.yaml"); text == nil {
			text = sampleOf(l.operator)
		}
		change, _ := fs.ReadFile(scenarios.Bundled(), l.operator+"/load/change.yaml")
		s.Change = string(change)
	}
	if err == nil && text == nil {
		err = usageError("name a file with one object with --sample", "%s has no sample to make many of", l.operator)
	}
	s.Manifest, s.Change = string(text), cmp.Or(l.asked.patch, s.Change)
	return s, err
}

// firstSample returns the first object of the samples of an operator of the user's; nil if it has none.
func firstSample(own *ownOperator) ([]byte, error) {
	i := slices.IndexFunc(own.plan.Samples, func(s project.Sample) bool { return len(s.Objects) > 0 })
	if i < 0 {
		return nil, nil
	}
	own.say("sample  %s", own.plan.Samples[i].File)
	return yaml.Marshal(own.plan.Samples[i].Objects[0].Object)
}

// measure measures a variant in a sandbox.
func (l *loading) measure(ctx context.Context, t *suite, target *target, o load.Options) (*load.Report, error) {
	o.Lab = lab.Options{Cluster: target.Cluster, Machines: target.machines, Installed: t.installed, Version: version()}
	for _, own := range t.given.own {
		if err := own.lab(ctx, target, &o.Lab); err != nil {
			return nil, err
		}
		if err := own.meetCluster(); err != nil {
			return nil, err
		}
		if !own.project.InProcess() { // else it runs in this process
			o.Used = own.operator.Used
		}
	}
	var err error
	if o.Client, err = client.New(rest.AddUserAgent(target.Config(), lab.Person), client.Options{}); err != nil {
		return nil, err
	}
	o.Progress = func(objects int, phase string) { t.sayf("%s with %d", phase, objects) }
	return load.Run(ctx, o)
}

// conclude prints the reports, and says what is wrong with them.
func (l *loading) conclude(reports []*load.Report) error {
	all := slices.Concat(l.before, reports)
	write := load.WriteText
	if l.asked.output == "json" {
		all, write = reports, load.WriteJSON
	}
	if err := write(l.io.out, all); err != nil {
		return err
	}
	if l.asked.html != "" {
		file, err := os.OpenFile(l.asked.html, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return usageError("name a file that can be written with --html", "write the page: %w", err)
		}
		if err := errors.Join(load.WriteHTML(file, slices.Concat(l.before, reports)), file.Close()); err != nil {
			return err
		}
	}
	if judge(l.io.err, reports, l.budgets) {
		return &exitError{code: exitFailed}
	}
	return nil
}

// judge says which reports are of an operator that did not come to rest, or exceed a budget.
func judge(w io.Writer, reports []*load.Report, budgets []load.Budget) (failed bool) {
	for _, r := range reports {
		if r.Unsettled != "" {
			failed = true
			fmt.Fprintf(w, "%s: %s\n", r.Name(), r.Unsettled)
		}
		for _, b := range budgets {
			if why := b.Exceeded(r); why != "" {
				failed = true
				fmt.Fprintf(w, "over budget: %s\n", why)
			}
		}
	}
	return failed
}

// parseBudgets reads the values of --budget.
func parseBudgets(texts []string) (budgets []load.Budget, err error) {
	for _, text := range texts {
		b, err := load.ParseBudget(text)
		if err != nil {
			return nil, &exitError{exitUsage, err}
		}
		budgets = append(budgets, b)
	}
	return budgets, nil
}
