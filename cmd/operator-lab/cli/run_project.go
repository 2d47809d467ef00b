package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/operators/helm"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/project"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// ownFlags are the flags of a run of an operator of the user's.
type ownFlags struct {
	runFlags
	main       string
	tags       []string
	manifests  []string
	chart      string
	kind       string
	apiVersion string
	values     []string
	apply      []string
	env        []string
	dryRun     bool
	write      bool
	watch      bool
	noTaps     bool
	noWebhooks bool
	until      time.Duration
	clusterFlags
	// hooks are for controllers that are written as webhooks.
	hooks hookFlags
}

// allSamples is the value of --apply without one.
const allSamples = "samples"

func (f *ownFlags) bind(flags *pflag.FlagSet) {
	f.bindLive(flags)
	flags.StringVar(&f.main, "main", "", "directory of the main package, if the project has several")
	flags.StringSliceVar(&f.tags, "tags", nil, "build tags")
	flags.StringArrayVar(&f.manifests, "manifests", nil, "file or directory to apply before it starts, also a chart or a bundle of OLM (default: config/default, else config/crd)")
	flags.StringVar(&f.chart, "chart", "", "a Helm chart to make an operator of, with --kind and --api-version; with a directory or program: one to render and apply before it starts")
	flags.StringVar(&f.kind, "kind", "", "kind whose objects are the chart's releases, such as Tomcat")
	flags.StringVar(&f.apiVersion, "api-version", "", "group and version of that kind, such as apache.org/v1alpha1")
	flags.StringArrayVar(&f.values, "values", nil, "file of values for the chart")
	flags.StringArrayVar(&f.apply, "apply", nil, "file or directory to apply when it serves; without a value: all samples of the project")
	flags.Lookup("apply").NoOptDefVal = allSamples
	flags.StringArrayVar(&f.env, "env", nil, "NAME=VALUE for the program")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what was found, what would be applied, what is left out and why, and stop")
	flags.BoolVar(&f.write, "write-config", false, "write what was found into the file lab.yaml of the directory, which must not have one, and stop")
	flags.BoolVar(&f.watch, "watch", false, "build it again when its source or its manifests change, and start it anew; the cluster stays")
	flags.BoolVar(&f.noTaps, "no-taps", false, "build it as it is; then only its requests are seen")
	flags.BoolVar(&f.noWebhooks, "no-webhooks", false, "install no webhook configurations")
	flags.DurationVar(&f.until, "for", 0, "end after this long; 0: with Ctrl-C (plain)")
	f.clusterFlags.bind(flags, "kubeconfig of a cluster of yours to run it against; nothing is applied there but what --install and --apply name")
	f.hooks.bind(flags)
	f.nodes.bind(flags, 1)
}

// ofChart reports whether an operator is to be made of a chart, if no directory and no program is named.
func (f *ownFlags) ofChart() bool { return f.chart != "" || f.kind != "" || f.apiVersion != "" }

// check reports what is wrong with the values of flags for a directory or a program, or else for a chart alone, which is no
// manifest.
func (f *ownFlags) check(named bool) error {
	switch {
	case named && (f.kind != "" || f.apiVersion != ""):
		return usageError("leave the directory out: run --chart CHART --kind KIND --api-version GROUP/VERSION", "--kind and --api-version are for an operator that is made of a chart")
	case !named && (f.chart == "" || f.kind == "" || f.apiVersion == ""):
		return usageError("such as: run --chart ./chart --kind Tomcat --api-version apache.org/v1alpha1", "an operator is made of a chart with --chart, --kind and --api-version")
	}
	if named && f.chart != "" {
		if _, err := os.Stat(filepath.Join(f.chart, "Chart.yaml")); err != nil {
			return usageError("a Helm chart is a directory with a Chart.yaml", "%s is no Helm chart", f.chart)
		}
		f.manifests = append(f.manifests, f.chart)
	}
	for _, e := range f.env {
		if name, _, found := strings.Cut(e, "="); !found || name == "" {
			return usageError("write --env NAME=VALUE", "%q is no variable with a value", e)
		}
	}
	return nil
}

// runOwn runs the project or the program that the arguments name, or the chart or the hooks that flags name.
func runOwn(cmd *cobra.Command, streams streams, f *ownFlags, args []string) error {
	check := func() error { return f.check(len(args) > 0) }
	if f.hooks.set() {
		check = func() error { return f.checkHooks(cmd.Flags(), args) }
	}
	if err := check(); err != nil {
		return err
	}
	cluster, err := f.open(cmd.Flags())
	if err != nil {
		return err
	}
	if cluster != nil {
		f.nodes.nodes = 0
	}
	if f.nodes.olm && len(args) == 1 && cmd.ArgsLenAtDash() < 0 {
		return runByOLM(cmd, streams, f, args[0])
	}
	own := &ownOperator{flags: f, cluster: cluster}
	defer own.close()
	dir, rest := "", args
	if dash := cmd.ArgsLenAtDash(); dash != 0 && len(args) > 0 {
		dir, rest = args[0], args[1:]
		if dash != 1 && len(rest) > 0 {
			return usageError("write the program's arguments after --, and a file to apply as --apply=FILE", "unexpected argument %q", rest[0])
		}
	}
	switch {
	case f.hooks.set():
		err = own.hooks(cmd.Context())
	case len(args) == 0:
		err = own.chart(cmd.Context())
	case dir == "":
		err = own.program(cmd.Context(), rest)
	default:
		own.args = rest
		err = own.find(cmd.Context(), dir)
	}
	if err != nil {
		return err
	}
	if f.write {
		return own.writeConfig(streams.out, cmd.Flags())
	}
	if f.dryRun {
		own.describe(streams.out)
		return nil
	}
	f.nodes.take(own.project, cmd.Flags())
	p := &liveRun{
		io: streams, name: own.project.Name, title: own.title(), flags: f.runFlags, subject: own, cluster: cluster,
		journal: trace.New(trace.Options{Product: version(), Title: own.title()}), step: noStep,
	}
	if own.tapped() && !own.project.InProcess() {
		p.source = func(_, file string) (string, bool, error) { return own.operator.Source(file) }
	}
	own.say, own.step = p.say, func(s tui.Step) { p.step(s) }
	return p.run(cmd.Context())
}

// writeConfig writes what was found, and flags that lab.yaml has too.
func (o *ownOperator) writeConfig(w io.Writer, flags *pflag.FlagSet) error {
	if o.command != "" {
		return usageError("name the directory of a project", "%s is not built here: there is nothing to write", o.command)
	}
	if o.flags.ofChart() && o.project.Watches != "" {
		return usageError("write a project that can have one: new operator NAME --chart CHART", "an operator that is made of a chart has no directory of its own")
	}
	more := project.Config{Args: o.args, Env: map[string]string{}, Images: o.flags.nodes.images}
	for _, e := range o.flags.env {
		name, value, _ := strings.Cut(e, "=")
		more.Env[name] = value
	}
	if flags.Changed("nodes") {
		more.Nodes = &o.flags.nodes.nodes
	}
	file, err := o.project.WriteConfig(o.plan, more)
	if err != nil {
		return usageOf(err)
	}
	fmt.Fprintln(w, file)
	return nil
}

// usageOf gives an error about the user's files its exit code.
func usageOf(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &exitError{exitUsage, err}
}

// isPath reports whether an argument of run is a project's directory and not the name of a bundled operator.
func isPath(arg string) bool {
	return arg == "." || arg == ".." || strings.ContainsRune(arg, filepath.Separator)
}

// find finds the operator in a directory.
func (o *ownOperator) find(ctx context.Context, dir string) (err error) {
	if err := o.open(dir); err != nil {
		return err
	}
	return o.findIn(ctx, dir)
}

// chartHint is for a chart that no operator can be made of.
const chartHint = "a Helm chart is a directory with a Chart.yaml, or an archive of one; 'helm lint' looks at it"

// chart makes an operator of a chart, in a private directory.
func (o *ownOperator) chart(ctx context.Context) error {
	kind, err := helm.ParseKind(o.flags.apiVersion, o.flags.kind)
	if err != nil {
		return usageError("such as --kind Tomcat --api-version apache.org/v1alpha1", "%w", err)
	}
	chart, err := filepath.Abs(o.flags.chart)
	if err != nil {
		return err
	}
	if err := o.open(chart + "." + kind.Kind); err != nil {
		return err
	}
	name := strings.ToLower(kind.Kind) + "-operator"
	files, err := helm.Files(helm.Project{Name: name, Kind: kind, Chart: chart, InPlace: true})
	if err != nil {
		return usageError(chartHint, "%w", err)
	}
	dir := filepath.Join(o.work.Dir, name)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := writeFolder(dir, files); err != nil {
		return err
	}
	return o.findIn(ctx, dir)
}

// findIn finds the operator in a directory, once the private one is open.
func (o *ownOperator) findIn(ctx context.Context, dir string) (err error) {
	o.project, err = project.Find(ctx, project.Options{
		Dir: dir, WorkDir: o.work.Dir, Main: o.flags.main, Tags: o.flags.tags, Manifests: o.flags.manifests, Values: o.flags.values, Foreign: o.cluster != nil,
	})
	if err != nil {
		return usageOf(err)
	}
	if o.project.InProcess() && (o.flags.noTaps || len(o.flags.tags) > 0) {
		return usageError("leave them out", "--no-taps and --tags are for a program that is built, and %s has none", dir)
	}
	if o.project.Hooked && o.cluster != nil {
		return usageError("leave --kubeconfig out", "%s has a hook, whose controllers run in a sandbox only", dir)
	}
	return o.makePlan(ctx)
}

// program takes a program that is not built here.
func (o *ownOperator) program(ctx context.Context, command []string) (err error) {
	if o.command, err = lookPath(command[0]); err != nil {
		return err
	}
	if err := o.open(o.command); err != nil {
		return err
	}
	o.args = command[1:]
	o.project, err = project.Program(named(command), project.Options{
		WorkDir: o.work.Dir, Manifests: o.flags.manifests, Values: o.flags.values, Foreign: o.cluster != nil,
	})
	if err != nil {
		return err
	}
	return o.makePlan(ctx)
}

// lookPath finds a program as a shell does, and says in one line why it cannot be run.
func lookPath(name string) (string, error) {
	found, err := exec.LookPath(name)
	const hint = "name a program after --, such as ./bin/manager"
	switch {
	case err == nil:
		return found, nil
	case errors.Is(err, exec.ErrNotFound):
		return "", usageError(hint, "there is no program %s in the PATH", name)
	case errors.Is(err, fs.ErrNotExist):
		return "", usageError(hint, "%s: no such program", name)
	case errors.Is(err, fs.ErrPermission):
		return "", usageError("chmod +x "+name+", or name its interpreter before it", "%s cannot be executed", name)
	case errors.Is(err, syscall.EISDIR):
		return "", usageError("a project's directory is named without --: operator-lab run "+name, "%s is a directory", name)
	}
	return "", usageError(hint, "%s cannot be run: %w", name, err)
}

// open opens the private directory of a project or program.
func (o *ownOperator) open(of string) (err error) {
	o.work, err = project.OpenWork(of)
	if sandbox.HintOf(err) != "" {
		return usageOf(err)
	}
	return sandboxError(err)
}

// makePlan finds out what the operator needs, and reads what --apply names.
func (o *ownOperator) makePlan(ctx context.Context) (err error) {
	if o.plan, err = o.project.Plan(ctx); err != nil {
		return usageOf(err)
	}
	for _, name := range o.flags.apply {
		if name == allSamples {
			if len(o.plan.Samples) == 0 {
				return usageError("name a file with --apply=FILE", "the project has no samples in config/samples")
			}
			continue
		}
		samples, err := project.ReadSamples(name)
		if err != nil {
			return usageOf(err)
		}
		for _, sample := range samples {
			sample.Namespace = o.plan.Watched
			o.toApply = append(o.toApply, sample)
		}
	}
	return nil
}

// named returns the file that gives a program its name: of an interpreter with a script, such as python3 copier.py, it is
// the script.
func named(command []string) string {
	if len(command) > 1 && filepath.Ext(command[1]) != "" {
		if info, err := os.Stat(command[1]); err == nil && info.Mode().IsRegular() {
			return command[1]
		}
	}
	return command[0]
}
