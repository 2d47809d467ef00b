package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// testFlags are the flags of Chainsaw's test command, by their names, and those of the lab.
type testFlags struct {
	// What is found in a configuration file too, and overrules it.
	config        string
	apply         time.Duration
	assert        time.Duration
	cleanup       time.Duration
	delete        time.Duration
	error         time.Duration
	exec          time.Duration
	testFile      string
	fullName      bool
	include       string
	exclude       string
	failFast      bool
	parallel      int
	repeat        int
	gracePeriod   time.Duration
	namespace     string
	fastDelete    bool
	template      bool
	compiler      string
	skipDelete    bool
	cleanupDelay  time.Duration
	propagation   string
	reportFormat  string
	reportName    string
	reportPath    string
	clusters      []string
	testDirs      []string
	selectors     []string
	shardIndex    int
	shardCount    int
	shard         shardFlag
	values        []string
	set           []string
	setString     []string
	noCluster     bool
	remarshal     bool
	pause         bool
	quiet         bool
	kubeOverrides clientcmd.ConfigOverrides

	// The lab's.
	kubeconfig string
	name       string
	operators  []string
	variant    string
	parameters []string
	seed       int64
	failed     bool
	list       bool
	dryRun     bool
	journals   string
	keepAll    bool
	scale      float64 // of timeouts
	giveUp     bool
	keep       bool
	nodes      nodeFlags
	verbose    bool
	output     string
	github     bool
	look       lookFlags
}

// reportName is the default name of a report.
const reportName = "chainsaw-report"

func (f *testFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.bindConfiguration(flags)
	f.bindRun(flags)
	f.bindLab(flags)
	clientcmd.BindOverrideFlags(&f.kubeOverrides, flags, clientcmd.RecommendedConfigOverrideFlags("kube-"))
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	_ = cmd.MarkFlagFilename("kubeconfig")
	_ = cmd.MarkFlagDirname("test-dir")
	_ = cmd.MarkFlagDirname("journal")
}

// bindConfiguration binds what a configuration file can say too.
func (f *testFlags) bindConfiguration(flags *pflag.FlagSet) {
	defaults := format.DefaultConfiguration().Spec
	flags.StringVar(&f.config, "config", "", "configuration file (default: "+format.ConfigurationFile+", if there is one)")
	flags.DurationVar(&f.apply, "apply-timeout", defaults.Timeouts.Apply.Duration, "timeout of apply, create, update and patch")
	flags.DurationVar(&f.assert, "assert-timeout", defaults.Timeouts.Assert.Duration, "timeout of assert")
	flags.DurationVar(&f.cleanup, "cleanup-timeout", defaults.Timeouts.Cleanup.Duration, "timeout of the clean-up of a test")
	flags.DurationVar(&f.delete, "delete-timeout", defaults.Timeouts.Delete.Duration, "timeout of delete")
	flags.DurationVar(&f.error, "error-timeout", defaults.Timeouts.Error.Duration, "timeout of error")
	flags.DurationVar(&f.exec, "exec-timeout", defaults.Timeouts.Exec.Duration, "timeout of scripts, commands and what collects")
	flags.StringVar(&f.testFile, "test-file", "chainsaw-test", "name of the files that tests are in; .yaml or .yml is added")
	flags.BoolVar(&f.fullName, "full-name", false, "name tests by the whole path of their folder")
	flags.StringVar(&f.include, "include-test-regex", "", "run only tests whose name matches")
	flags.StringVar(&f.exclude, "exclude-test-regex", "", "leave out tests whose name matches")
	flags.BoolVar(&f.failFast, "fail-fast", false, "begin no further test once one has failed")
	flags.IntVar(&f.parallel, "parallel", 0, fmt.Sprintf("how many tests run at once (default: %d)", runner.DefaultParallel))
	flags.IntVar(&f.repeat, "repeat-count", 1, "how often each test is run")
	flags.DurationVar(&f.gracePeriod, "force-termination-grace-period", 0, "grace period to write into everything that has pods")
	flags.StringVar(&f.namespace, "namespace", "", "namespace to run all tests in (default: each has one of its own)")
	flags.BoolVar(&f.fastDelete, "fast-namespace-deletion", false, "do not wait until namespaces are gone")
	flags.BoolVar(&f.template, "template", defaults.Templating.Enabled, "evaluate expressions in resources")
	flags.StringVar(&f.compiler, "default-compiler", "", "language of expressions: jp or cel (default: jp)")
	flags.BoolVar(&f.skipDelete, "skip-delete", false, "leave everything in the cluster that tests made")
	flags.DurationVar(&f.cleanupDelay, "cleanup-delay", 0, "wait between the last step of a test and its clean-up")
	flags.StringVar(&f.propagation, "deletion-propagation-policy", "Background", "how objects are deleted: Foreground, Background or Orphan")
	flags.StringVar(&f.reportFormat, "report-format", "", "write a report: "+formatNames())
	flags.StringVar(&f.reportName, "report-name", reportName, "name of the report's file; .json or .xml is added")
	flags.StringVar(&f.reportPath, "report-path", "", "folder of the report (default: this one)")
	flags.StringSliceVar(&f.clusters, "cluster", nil, "another cluster that tests name: name=kubeconfig or name=kubeconfig:context")
}

// bindRun binds what Chainsaw has as flags only.
func (f *testFlags) bindRun(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.testDirs, "test-dir", nil, "folders with tests, as the arguments")
	flags.StringSliceVar(&f.selectors, "selector", nil, "run only tests whose labels match, such as group=fast")
	flags.IntVar(&f.shardIndex, "shard-index", 0, "which of the shards to run, from 0")
	flags.Var(&f.shard, "shard", "run one part of the tests, such as 3/8, which is the third of eight; 'report merge' joins their reports")
	flags.IntVar(&f.shardCount, "shard-count", 0, "split the tests into so many shards and run one of them (default: all)")
	flags.StringSliceVar(&f.values, "values", nil, "files with values that tests use as $values")
	flags.StringArrayVar(&f.set, "set", nil, "values: key1=val1,key2=val2")
	flags.StringArrayVar(&f.setString, "set-string", nil, "values that are text: key1=val1,key2=val2")
	flags.BoolVar(&f.noCluster, "no-cluster", false, "run without a cluster: for tests that only run programs")
	flags.BoolVar(&f.remarshal, "remarshal", false, "resolve the anchors of YAML before a test is read")
	flags.BoolVar(&f.pause, "pause-on-failure", false, "stop before the clean-up of a test that failed, to look at it; one test at a time")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print failures and the summary only")
	flags.BoolVar(&f.look.noColor, "no-color", false, "use no colours, as with NO_COLOR")
}

// bindLab binds what Chainsaw does not have.
func (f *testFlags) bindLab(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "run against this cluster instead of a sandbox; nothing is injected there")
	flags.Var((*nameValue)(&f.name), "name", "run in this sandbox, which is running (default: in one of its own)")
	flags.StringSliceVar(&f.operators, "operator", nil, "operators that run during all tests, whatever these ask for: bundled ones, or directories of your own such as .")
	flags.StringVar(&f.variant, "variant", "", "variant of the operators, whatever tests ask for")
	flags.StringArrayVar(&f.parameters, "parameter", nil, "parameter of the operators, whatever tests ask for: name=value")
	flags.Int64Var(&f.seed, "seed", 0, "seed of everything random; 0: another one each time, which is printed")
	flags.Float64Var(&f.scale, "timeout-scale", 1, "multiply every timeout, of flags, configuration and tests: for slow machines")
	flags.BoolVar(&f.giveUp, "give-up", false, "let asserts fail as soon as nothing can change any more, before their timeout")
	flags.BoolVar(&f.failed, "failed", false, "run only what failed in the last run that was started in this directory")
	flags.BoolVar(&f.list, "list", false, "list the tests instead of running them")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what each test would do instead of running it")
	flags.StringVar(&f.journals, "journal", "", "folder for the journals of tests that failed (default: in the state directory)")
	flags.BoolVar(&f.keepAll, "all-journals", false, "save the journals of tests that passed, too")
	f.nodes.bind(flags, 1)
	nodes := flags.Lookup("nodes")
	nodes.Usage, nodes.DefValue = nodes.Usage+" (default: 1, or as many as demos of the operators have)", "0"
	flags.BoolVar(&f.keep, "keep", false, "leave the sandbox running when a test failed")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print every operation with its output")
	flags.StringVarP(&f.output, "output", "o", "", "jsonl: print JSON lines as it goes on; with --list and --dry-run: json")
	flags.BoolVar(&f.github, "github", false, "annotate failures for GitHub (default: in GitHub Actions)")
	flags.BoolVar(&f.look.color, "color", false, "use colours, also where NO_COLOR asks for none")
}

func formatNames() string {
	var names []string
	for _, f := range report.Formats() {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// check refuses what cannot be meant, and completes what is not said.
func (f *testFlags) check(flags *pflag.FlagSet) error {
	if err := f.look.check(); err != nil {
		return err
	}
	if !flags.Changed("github") {
		f.github = os.Getenv("GITHUB_ACTIONS") == "true"
	}
	for _, pair := range [][2]string{
		{"kubeconfig", "name"},
		{"kubeconfig", "keep"},
		{"kubeconfig", "no-cluster"},
		{"name", "no-cluster"},
		{"keep", "no-cluster"},
		{"list", "dry-run"},
		{"quiet", "verbose"},
	} {
		if on(flags, pair[0]) && on(flags, pair[1]) {
			return usageError("leave one of them out", "--%s and --%s exclude each other", pair[0], pair[1])
		}
	}
	if f.foreign() {
		for _, name := range []string{"operator", "variant", "parameter"} {
			if on(flags, name) {
				return usageError("run the operator there yourself: operator-lab operator <name> --kubeconfig …", "--%s is for sandboxes: the lab runs no operators in other clusters", name)
			}
		}
	}
	return f.checkValues(flags)
}

// on reports whether a flag was given and not switched off.
func on(flags *pflag.FlagSet, name string) bool {
	f := flags.Lookup(name)
	return f.Changed && f.Value.String() != "false"
}

// checkValues refuses values that are none.
func (f *testFlags) checkValues(flags *pflag.FlagSet) error {
	if err := f.checkOutput(); err != nil {
		return err
	}
	if f.reportFormat != "" {
		if _, err := report.ParseFormat(f.reportFormat); err != nil {
			return usageError("use "+formatNames(), "%w", err)
		}
	}
	if !slices.Contains([]string{"", "jp", "cel"}, f.compiler) {
		return usageError("use jp or cel", "there is no compiler %q", f.compiler)
	}
	if !slices.Contains([]string{"Foreground", "Background", "Orphan"}, f.propagation) {
		return usageError("use Foreground, Background or Orphan", "there is no deletion propagation policy %q", f.propagation)
	}
	for _, name := range []string{"parallel", "repeat-count"} {
		if n, _ := flags.GetInt(name); n < 0 || name == "repeat-count" && n == 0 {
			return usageError("use a number from 1", "--%s cannot be %d", name, n)
		}
	}
	if !(f.scale > 0 && f.scale <= 1000) {
		return usageError("such as --timeout-scale 3, which waits three times as long", "--timeout-scale cannot be %v", f.scale)
	}
	if f.shard != (shardFlag{}) {
		if flags.Changed("shard-index") || flags.Changed("shard-count") {
			return usageError("leave out --shard-index and --shard-count, which count from 0", "--shard says it already")
		}
		f.shardIndex, f.shardCount = f.shard.Index-1, f.shard.Count
	}
	if f.shardCount < 0 || f.shardIndex < 0 || f.shardIndex >= max(f.shardCount, 1) {
		return usageError("shards are counted from 0: of 3 there are 0, 1 and 2", "there is no shard %d of %d", f.shardIndex, f.shardCount)
	}
	if err := checkOperators(slices.DeleteFunc(slices.Clone(f.operators), isPath)...); err != nil {
		return err
	}
	for _, p := range f.parameters {
		if name, _, ok := strings.Cut(p, "="); !ok || name == "" {
			return usageError("such as --parameter interval=20ms", "%q is no parameter", p)
		}
	}
	return nil
}

func (f *testFlags) checkOutput() error {
	planned := f.list || f.dryRun
	switch {
	case f.output == "", f.output == "text", f.output == "json" && planned, f.output == "jsonl" && !planned:
		return nil
	case planned:
		return usageError("use -o json, or leave it out", "unknown output format %q", f.output)
	}
	return usageError("use -o jsonl, or leave it out; a JSON file is written with --report-format JSON", "unknown output format %q", f.output)
}

// foreign reports whether the cluster is not one of the lab's: one is named, or an address or a context of one.
func (f *testFlags) foreign() bool {
	o := f.kubeOverrides
	return f.kubeconfig != "" || f.name == "" && (o.CurrentContext != "" || o.Context.Cluster != "" || o.ClusterInfo.Server != "")
}

// configuration is that of the file, overruled by what flags say.
func (f *testFlags) configuration(flags *pflag.FlagSet) (*format.Configuration, error) {
	c, err := format.LoadConfiguration(f.config)
	if err != nil {
		return nil, err
	}
	f.overrule(flags, &c.Spec)
	if f.pause {
		c.Spec.Execution.Parallel = new(1)
	}
	return c, f.addClusters(&c.Spec)
}

// overrule writes flags that were given over what the file says.
func (f *testFlags) overrule(flags *pflag.FlagSet, c *format.ConfigurationSpec) {
	for name, set := range map[string]func(){
		"apply-timeout":                  func() { c.Timeouts.Apply.Duration = f.apply },
		"assert-timeout":                 func() { c.Timeouts.Assert.Duration = f.assert },
		"cleanup-timeout":                func() { c.Timeouts.Cleanup.Duration = f.cleanup },
		"delete-timeout":                 func() { c.Timeouts.Delete.Duration = f.delete },
		"error-timeout":                  func() { c.Timeouts.Error.Duration = f.error },
		"exec-timeout":                   func() { c.Timeouts.Exec.Duration = f.exec },
		"test-file":                      func() { c.Discovery.TestFile = f.testFile },
		"full-name":                      func() { c.Discovery.FullName = f.fullName },
		"include-test-regex":             func() { c.Discovery.IncludeTestRegex = f.include },
		"exclude-test-regex":             func() { c.Discovery.ExcludeTestRegex = f.exclude },
		"fail-fast":                      func() { c.Execution.FailFast = f.failFast },
		"parallel":                       func() { c.Execution.Parallel = positive(f.parallel) },
		"repeat-count":                   func() { c.Execution.RepeatCount = positive(f.repeat) },
		"force-termination-grace-period": func() { c.Execution.ForceTerminationGracePeriod = duration(f.gracePeriod) },
		"namespace":                      func() { c.Namespace.Name = f.namespace },
		"fast-namespace-deletion":        func() { c.Namespace.FastDelete = f.fastDelete },
		"template":                       func() { c.Templating.Enabled = f.template },
		"default-compiler":               func() { c.Templating.Compiler = compilerOf(f.compiler) },
		"skip-delete":                    func() { c.Cleanup.SkipDelete = f.skipDelete },
		"cleanup-delay":                  func() { c.Cleanup.DelayBeforeCleanup = duration(f.cleanupDelay) },
		"deletion-propagation-policy":    func() { c.Deletion.Propagation = metav1.DeletionPropagation(f.propagation) },
		"report-format":                  func() { f.reportOptions(c).Format = format.ReportFormat(strings.ToUpper(f.reportFormat)) },
		"report-name":                    func() { f.reportOptions(c).Name = f.reportName },
		"report-path":                    func() { f.reportOptions(c).Path = f.reportPath },
	} {
		if flags.Changed(name) {
			set()
		}
	}
}

func (*testFlags) reportOptions(c *format.ConfigurationSpec) *format.ReportOptions {
	if c.Report == nil {
		c.Report = &format.ReportOptions{Format: format.ReportJSON, Name: reportName}
	}
	return c.Report
}

func positive(n int) *int {
	if n <= 0 {
		return nil
	}
	return &n
}

func compilerOf(name string) *format.Compiler {
	if name == "" {
		return nil
	}
	return new(format.Compiler(name))
}

func duration(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// addClusters adds the clusters that flags name.
func (f *testFlags) addClusters(c *format.ConfigurationSpec) error {
	for _, cluster := range f.clusters {
		name, rest, ok := strings.Cut(cluster, "=")
		kubeconfig, context, _ := strings.Cut(rest, ":")
		if !ok || name == "" || kubeconfig == "" || strings.ContainsAny(context, ":=") {
			return usageError("such as --cluster other=other.kubeconfig or --cluster other=all.kubeconfig:other", "%q is no cluster", cluster)
		}
		if c.Clusters == nil {
			c.Clusters = format.Clusters{}
		}
		c.Clusters[name] = format.Cluster{Kubeconfig: kubeconfig, Context: context}
	}
	return nil
}

// discovery says which tests there are.
func (f *testFlags) discovery(c *format.Configuration, paths []string) format.Discovery {
	d := discoveryOf(c, paths)
	d.Selectors, d.Remarshal, d.ShardIndex, d.ShardCount = f.selectors, f.remarshal, f.shardIndex, f.shardCount
	return d
}

// discoveryOf returns where the configuration looks for tests.
func discoveryOf(c *format.Configuration, paths []string) format.Discovery {
	d := c.Spec.Discovery
	all := format.Discovery{
		Paths: paths, TestFile: d.TestFile, FullName: d.FullName, Include: d.IncludeTestRegex, Exclude: d.ExcludeTestRegex,
		NoTemplating: !c.Spec.Templating.Enabled,
	}
	if c.Spec.Templating.Compiler != nil {
		all.Compiler = *c.Spec.Templating.Compiler
	}
	return all
}

// again is the command line that runs again what failed, with the flags of this run.
func (f *testFlags) again(flags *pflag.FlagSet, seed int64) string {
	words := []string{"operator-lab", "test", "--failed"}
	flags.Visit(func(flag *pflag.Flag) {
		switch flag.Name {
		case "failed", "seed", "test-dir": // where to look is remembered
			return
		case "kube-token", "kube-password":
			words = append(words, "--"+flag.Name+"=…") // logs are read by many
			return
		}
		values := []string{flag.Value.String()}
		if several, ok := flag.Value.(pflag.SliceValue); ok {
			values = several.GetSlice()
		}
		for _, value := range values {
			if flag.Value.Type() == "bool" && value == "true" {
				words = append(words, "--"+flag.Name)
				continue
			}
			words = append(words, "--"+flag.Name+"="+shellQuote(value))
		}
	})
	return strings.Join(append(words, fmt.Sprintf("--seed=%d", seed)), " ")
}
