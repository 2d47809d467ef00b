package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

type runFlags struct {
	name    string
	keep    bool
	plain   bool
	logs    bool
	quiet   bool
	timeout time.Duration
	record  string
	nodes   nodeFlags
	look    lookFlags
}

func runCommand(io streams) *cobra.Command {
	var f ownFlags
	cmd := &cobra.Command{
		Use:   "run <operator> | <directory> | --chart <chart> | -- <program> [arguments]",
		Short: "Watch an operator at work: a bundled one with its demo, or your own, unmodified",
		Long: `Boot a sandbox and run an operator in it. On a terminal you see the reconcile loop live, can
pause it, step it, hold a write before it is sent, break things, and go back in time. Without
one, or with --plain, you get a paragraph for each reconcile: why it ran, what it read, what it
wrote.

A bundled operator plays its demo:
` + operatorList() + `
Your own is named by its directory, such as . or ./my-operator. If it is in Go and uses
controller-runtime 0.19 or later, it is built with taps, without a change in your files, and all
of its loop is seen. What config/default would deploy is applied first, and the operator has the
permissions of its service account. Arguments after -- are added to those of its Deployment.

A Helm chart becomes an operator with --chart, --kind and --api-version: each object of that kind
is a release of the chart. The reconciler is upstream's, helm-operator-plugins, and all of its loop
is seen. A directory with its watches.yaml is run in the same way.

A directory with a watches.yaml of roles or playbooks is an Ansible operator: upstream's program,
ansible-operator, is built with taps, and runs the Ansible of this machine. The tasks of each run
are seen, too.

Any other program runs behind --. It must take its cluster from the variable KUBECONFIG. Then
what it asks the API server for is seen, and what it is told; a work queue is not. If it logs its
reconciles (controller-runtime: --zap-log-level=5 --zap-encoder=json), they are seen, too.

With --hook a controller is a program of a few lines in any language, which is asked what should
be there: its kinds are in the file of --composite or --decorator, as Metacontroller has it.

With --images an operator of that file, which has its project or its command, runs in the pod that
--manifests makes, and all of this is seen in the same way. The pod's kubelet starts it again.

With --olm the Operator Lifecycle Manager installs your project: by a Subscription to a catalog with
the bundle that 'operator-lab bundle' makes of it. It runs in its pod, too.

With --kubeconfig it runs against a cluster of yours, and no sandbox is booted. Nothing is applied
there but what --install and --apply name.`,
		Example: `  operator-lab run zundoko
  operator-lab run zundoko --plain --variant classic --seed 7
  operator-lab run ./my-operator --dry-run
  operator-lab run ./my-operator --apply
  operator-lab run --chart ./chart --kind Tomcat --api-version apache.org/v1alpha1 --apply
  operator-lab run -- ./bin/manager --leader-elect
  operator-lab run --hook ./sync.py --composite controller.yaml --apply=one.yaml
  operator-lab run bakery --images operator.yaml --manifests bakery/config/default
  operator-lab run ./my-operator --olm --apply
  operator-lab run . --kubeconfig ~/.kube/config`,
	}
	withOperators(cmd, func(op operators.Operator) *cobra.Command { return runOneCommand(io, op) })
	named := cmd.RunE // the error for a name that no operator has
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.hooks.set() {
			return runOwn(cmd, io, &f, args)
		}
		if f.nodes.images != "" && len(args) == 1 && cmd.ArgsLenAtDash() < 0 && !isPath(args[0]) {
			if err := f.nodes.check(); err != nil {
				return err
			}
			if slices.Contains(f.nodes.operators(), args[0]) {
				return runInPod(cmd, io, &f, args[0])
			}
		}
		own := cmd.ArgsLenAtDash() == 0 && len(args) > 0 || len(args) > 0 && isPath(args[0]) || len(args) == 0 && f.ofChart()
		if !own {
			return named(cmd, args)
		}
		return runOwn(cmd, io, &f, args)
	}
	cmd.FParseErrWhitelist.UnknownFlags = false
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if args := cmd.Flags().Args(); len(args) > 0 && !isPath(args[0]) {
			return unknownOperator(args[0]) // whose flags are not known either
		}
		return cmd.Root().FlagErrorFunc()(cmd, err)
	})
	// The operators are commands, which Cobra adds.
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	f.bind(cmd.Flags())
	for _, name := range []string{"kubeconfig", "hook", "composite", "decorator"} {
		_ = cmd.MarkFlagFilename(name) // it has just been bound
	}
	return cmd
}

func runOneCommand(io streams, op operators.Operator) *cobra.Command {
	var f runFlags
	var auto bool
	instance := op.New()
	cmd := &cobra.Command{
		Use:   op.Name,
		Short: op.Summary,
		Args:  noArgs,
		Example: strings.ReplaceAll(`  operator-lab run NAME
  operator-lab run NAME --variant VARIANT --lang ja
  operator-lab run NAME --plain --record run.jsonl`, "NAME", op.Name),
		RunE: func(cmd *cobra.Command, _ []string) error {
			values, err := instance.Demo().Values()
			if err != nil {
				return usageError("see 'operator-lab run "+op.Name+" --help'", "%w", err)
			}
			f.nodes.withOLM(cmd.Flags())
			p := &liveRun{
				io: io, name: op.Name, title: f.nodes.titled(op.Name + " / " + instance.Variant()), spec: specOf(op, cmd.Flags()), flags: f,
				subject: &demo{op: op, instance: instance, values: values, auto: auto},
				step:    noStep,
			}
			p.journal = trace.New(trace.Options{Product: version(), Title: p.title})
			return p.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	f.bindLive(flags)
	flags.Lookup("plain").Usage += "; ends by itself when the demo is over"
	flags.BoolVar(&auto, "auto", false, "play the demo to its end; default: on the screen, wait for the key g after one reconcile and before each further deed")
	flags.DurationVar(&f.timeout, "timeout", 0, "give up after this long, with exit code 1; 0: never (plain)")
	f.nodes.bind(flags, nodesOf(instance.Demo()))
	flags.Lookup("nodes").Usage += "; with OLM at least one, unless this is given"
	instance.Flags(flags)
	instance.Demo().Flags(flags)
	if c, is := flags.Lookup("variant").Value.(interface{ Choices() []string }); is {
		cmd.Example = strings.ReplaceAll(cmd.Example, "VARIANT", c.Choices()[len(c.Choices())-1])
	}
	return cmd
}

// bindLive binds the flags of all runs.
func (f *runFlags) bindLive(flags *pflag.FlagSet) {
	flags.Var((*nameValue)(&f.name), "name", "name of the sandbox (default: one of its own)")
	flags.BoolVar(&f.keep, "keep", false, "leave the sandbox running afterwards, with everything in it")
	flags.BoolVar(&f.plain, "plain", false, "print plain text also on a terminal")
	flags.BoolVar(&f.logs, "logs", false, "print the operator's log lines too (plain)")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print no progress of the boot (plain)")
	flags.StringVar(&f.record, "record", "", "save the journal to this file (default: among the last "+fmt.Sprint(journalsKept)+" in the state directory)")
	f.look.bind(flags)
}

// nodesOf returns the number of nodes of a demo.
func nodesOf(demo operators.Demo) int {
	if d, ok := demo.(operators.Nodes); ok {
		return d.Nodes()
	}
	return 0
}

// specOf returns the spec of an operator, with its variant and the parameters that were set by flags.
func specOf(op operators.Operator, flags *pflag.FlagSet) v1alpha1.OperatorSpec {
	spec := v1alpha1.OperatorSpec{Parameters: map[string]string{}}
	own := pflag.NewFlagSet(op.Name, pflag.ContinueOnError)
	op.New().Flags(own)
	own.VisitAll(func(f *pflag.Flag) {
		switch set := flags.Lookup(f.Name); {
		case !set.Changed:
		case f.Name == "variant":
			spec.Variant = set.Value.String()
		default:
			spec.Parameters[f.Name] = set.Value.String()
		}
	})
	return spec
}

// run shows the run on the screen where there is one, else prints.
func (p *liveRun) run(ctx context.Context) error {
	if err := p.flags.look.check(); err != nil {
		return err
	}
	if p.cluster == nil {
		if err := p.flags.nodes.check(); err != nil {
			return err
		}
	}
	if p.flags.record != "" {
		if err := canWrite(p.flags.record); err != nil {
			return usageError("name a file that can be written with --record", "%w", err)
		}
	}
	if !p.flags.plain && p.io.terminal() {
		return p.onScreen(ctx)
	}
	return p.inPrint(ctx)
}

// terminal reports whether a person can be shown a screen.
func (s streams) terminal() bool {
	return isTerminal(s.in) && isTerminal(s.out) && os.Getenv("TERM") != "dumb"
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

var errTimeout = errors.New("timeout")

// inPrint runs to the end, printing a paragraph for each reconcile.
func (p *liveRun) inPrint(ctx context.Context) (err error) {
	if p.flags.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, p.flags.timeout, errTimeout)
		defer cancel()
	}
	printing := p.print(ctx)
	defer func() {
		err = errors.Join(err, printing.stop(), p.saveJournal())
		if errors.Is(context.Cause(ctx), errTimeout) {
			err = &sandbox.Problem{Err: fmt.Errorf("the demo is not over after %v", p.flags.timeout), Hint: "give it more time with --timeout, or less to do"}
		}
	}()
	if p.cluster != nil {
		p.say("cluster    %s", p.cluster)
	} else {
		p.say("booting a control plane")
	}
	s, err := p.begin(ctx, func(s sandbox.Step) { p.say("%s", progressLine(s)) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	if err := p.subject.awaitEnd(ctx, s); err != nil {
		return err
	}
	if err := s.lab.Stop(); err != nil {
		return err
	}
	if err := errors.Join(printing.stop(), printing.Summary()); err != nil {
		return err
	}
	return p.subject.summary(ctx, s)
}

// printing is a running printer; stop prints the rest and ends it.
type printing struct {
	*trace.Printer
	stop func() error
}

func (p *liveRun) print(ctx context.Context) *printing {
	printer := trace.NewPrinter(p.io.out, p.journal, trace.PrintOptions{
		Language: p.flags.look.language(), Logs: p.flags.logs, Caption: p.subject.caption, OnlyWrites: p.flags.nodes.olmOperators(),
	})
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = printer.Follow(ctx)
	}()
	return &printing{printer, func() error { cancel(); <-done; return err }}
}

func (p *liveRun) say(format string, args ...any) {
	if !p.flags.quiet && !p.screen.Load() {
		fmt.Fprintf(p.io.err, format+"\n", args...)
	}
}
