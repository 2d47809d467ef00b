package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	cmd := &cobra.Command{
		Use:   "run <operator>",
		Short: "Watch an operator at work: boot a sandbox, run the operator in it, play its demo",
		Long: `Boot a sandbox, run a bundled operator in it and play its demo. On a terminal you see the
reconcile loop live, can pause it, step it, hold a write before it is sent, and go back in
time. Without one, or with --plain, you get a paragraph for each reconcile: why it ran, what
it read, what it wrote.

Operators:
` + operatorList(),
		Example: `  operator-lab run zundoko
  operator-lab run zundoko --plain --variant classic --seed 7
  operator-lab run zundoko --plain --interval 20ms --song Zun,Zun,Zun,Zun,Doko`,
	}
	return withOperators(cmd, func(op operators.Operator) *cobra.Command { return runOneCommand(io, op) })
}

func runOneCommand(io streams, op operators.Operator) *cobra.Command {
	var f runFlags
	instance := op.New()
	cmd := &cobra.Command{
		Use:   op.Name,
		Short: op.Summary,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := &demoRun{
				io: io, op: op, instance: instance, spec: specOf(op, cmd.Flags()), flags: f,
				journal: trace.New(trace.Options{Product: version()}),
			}
			return p.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.Var((*nameValue)(&f.name), "name", "name of the sandbox (default: one of its own)")
	flags.BoolVar(&f.keep, "keep", false, "leave the sandbox running afterwards, with everything in it")
	flags.BoolVar(&f.plain, "plain", false, "print plain text also on a terminal; ends by itself when the demo is over")
	flags.BoolVar(&f.logs, "logs", false, "print the operator's log lines too (plain)")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print no progress of the boot (plain)")
	flags.DurationVar(&f.timeout, "timeout", 0, "give up after this long, with exit code 1; 0: never (plain)")
	flags.StringVar(&f.record, "record", "", "save the journal to this file (default: among the last "+fmt.Sprint(journalsKept)+" in the state directory)")
	f.look.bind(flags)
	f.nodes.bind(flags, nodesOf(instance.Demo()))
	instance.Flags(flags)
	instance.Demo().Flags(flags)
	return cmd
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

// run shows the demo on the screen where there is one, else prints.
func (p *demoRun) run(ctx context.Context) error {
	if err := p.flags.look.check(); err != nil {
		return err
	}
	values, err := p.instance.Demo().Values()
	if err != nil {
		return usageError("see 'operator-lab run "+p.op.Name+" --help'", "%w", err)
	}
	p.values = values
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

// inPrint runs the demo to its end, printing a paragraph for each reconcile.
func (p *demoRun) inPrint(ctx context.Context) (err error) {
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
	if !p.flags.quiet {
		fmt.Fprintln(p.io.err, "booting a control plane")
	}
	demo, err := p.begin(ctx, func(s sandbox.Step) { p.say("%s", progressLine(s)) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, demo.end(ctx)) }()
	if err := demo.awaitEnd(ctx); err != nil {
		return err
	}
	if err := demo.lab.Stop(); err != nil {
		return err
	}
	if err := errors.Join(printing.stop(), printing.Summary()); err != nil {
		return err
	}
	return demo.summary(ctx)
}

// printing is a running printer; stop prints the rest and ends it.
type printing struct {
	*trace.Printer
	stop func() error
}

func (p *demoRun) print(ctx context.Context) *printing {
	printer := trace.NewPrinter(p.io.out, p.journal, trace.PrintOptions{
		Language: p.flags.look.language(), Logs: p.flags.logs, Caption: p.instance.Demo().Caption,
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

func (p *demoRun) say(format string, args ...any) {
	if !p.flags.quiet {
		fmt.Fprintf(p.io.err, format+"\n", args...)
	}
}
