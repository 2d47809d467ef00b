package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/host"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

type runFlags struct {
	name    string
	keep    bool
	plain   bool
	logs    bool
	quiet   bool
	timeout time.Duration
}

func runCommand(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run <operator>",
		Short: "Watch an operator at work: boot a sandbox, run the operator in it, play its demo",
		Long: "Boot a sandbox, run a bundled operator in it and play its demo. For each reconcile you see\nwhy it ran, what it read and what it wrote.\n\nOperators:\n" +
			operatorList(),
		Example: `  operator-lab run zundoko
  operator-lab run zundoko --variant classic --seed 7
  operator-lab run zundoko --interval 20ms --song Zun,Zun,Zun,Zun,Doko`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("operators: "+operatorNames(), "which operator?")
			}
			return unknownOperator(args[0])
		},
	}
	for _, op := range operators.All() {
		cmd.AddCommand(runOneCommand(io, op))
	}
	return cmd
}

func runOneCommand(io streams, op operators.Operator) *cobra.Command {
	var f runFlags
	instance := op.New()
	cmd := &cobra.Command{
		Use:   op.Name,
		Short: op.Summary,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if f.timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, f.timeout, errTimeout)
				defer cancel()
			}
			err := (&play{io: io, op: op, instance: instance, flags: f}).run(ctx)
			if errors.Is(context.Cause(ctx), errTimeout) {
				return &sandbox.Problem{Err: fmt.Errorf("the demo is not over after %v", f.timeout), Hint: "give it more time with --timeout, or less to do"}
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "name of the sandbox (default: one of its own)")
	flags.BoolVar(&f.keep, "keep", false, "leave the sandbox running afterwards, with everything in it")
	flags.BoolVar(&f.plain, "plain", true, "print plain text, a paragraph for each reconcile")
	flags.BoolVar(&f.logs, "logs", false, "print the operator's log lines too")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print no progress of the boot")
	flags.DurationVar(&f.timeout, "timeout", 0, "give up after this long, with exit code 1; 0: never")
	instance.Flags(flags)
	instance.Demo().Flags(flags)
	return cmd
}

var errTimeout = errors.New("timeout")

// play is one run of an operator's demo.
type play struct {
	io       streams
	op       operators.Operator
	instance operators.Instance
	flags    runFlags
}

// run is the table of contents: sandbox, operator, demo, summary.
func (p *play) run(ctx context.Context) (err error) {
	objects, err := p.instance.Demo().Objects()
	if err != nil {
		return usageError("see 'operator-lab run "+p.op.Name+" --help'", "%w", err)
	}
	lab, err := p.boot(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.leave()) }()
	scheme, err := host.Scheme(p.op)
	if err != nil {
		return err
	}
	// Reads and writes what a person would, so it passes by the operator's taps.
	you, err := client.New(lab.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	journal := trace.New(trace.Options{Product: version()})
	printing := p.print(ctx, journal)
	operator, err := host.Start(ctx, lab, p.op, p.instance, journal)
	if err != nil {
		return err
	}
	defer func() { _ = operator.Stop() }()
	if err := apply(ctx, you, scheme, objects); err != nil {
		return err
	}
	if err := p.awaitEnd(ctx, lab, operator, you, journal); err != nil {
		return err
	}
	if err := operator.Stop(); err != nil {
		return err
	}
	return p.summary(ctx, you, printing)
}

// stage is the sandbox the demo is played in.
type stage struct {
	host.Cluster
	name, kubeconfig string
	// done is closed when the sandbox is over; err then says why.
	done <-chan struct{}
	err  func() error
	// leave is called at the end.
	leave func() error
}

// boot starts a sandbox that is gone afterwards, or with --keep one that stays.
func (p *play) boot(ctx context.Context) (*stage, error) {
	crds, err := p.instance.CRDs()
	if err != nil {
		return nil, err
	}
	if p.flags.keep {
		return p.bootKept(ctx)
	}
	o, err := sandboxOptions(p.io.err, p.flags.quiet)
	if err != nil {
		return nil, err
	}
	o.Name, o.Fresh, o.Ephemeral, o.CRDs, o.Operators = p.flags.name, true, true, crds, []string{p.op.Name}
	if !p.flags.quiet {
		fmt.Fprintln(p.io.err, "booting a control plane")
	}
	lab, err := sandbox.Start(ctx, o)
	if err != nil {
		return nil, sandboxError(err)
	}
	p.say("ready after %.2fs; kubectl: export KUBECONFIG=%s", time.Since(lab.Began()).Seconds(), shellQuote(lab.Kubeconfig()))
	return &stage{Cluster: lab, name: lab.Name(), kubeconfig: lab.Kubeconfig(), done: lab.Done(), err: lab.Err, leave: lab.Stop}, nil
}

// bootKept uses a sandbox in the background.
func (p *play) bootKept(ctx context.Context) (*stage, error) {
	name := p.flags.name
	if name == "" {
		name = p.op.Name
	}
	quiet := streams{in: p.io.in, out: p.io.err, err: p.io.err}
	if err := upDetached(ctx, quiet, upFlags{name: name, fresh: true, quiet: p.flags.quiet}); err != nil {
		return nil, err
	}
	state, err := sandbox.StateDir()
	if err != nil {
		return nil, err
	}
	lab, err := sandbox.Open(state, name)
	if err != nil {
		return nil, sandboxError(err)
	}
	crds, err := p.instance.CRDs()
	if err != nil {
		return nil, err
	}
	if err := lab.InstallCRDs(ctx, crds); err != nil {
		return nil, err
	}
	return &stage{
		Cluster: lab, name: name, kubeconfig: lab.Kubeconfig(), err: func() error { return nil },
		leave: func() error {
			p.say("sandbox %s stays; use it with 'operator-lab kubectl --name %s …', stop it with 'operator-lab down --name %s'", name, name, name)
			return nil
		},
	}, nil
}

func (p *play) say(format string, args ...any) {
	if !p.flags.quiet {
		fmt.Fprintf(p.io.err, format+"\n", args...)
	}
}

// printing is the printer at work.
type printing struct {
	*trace.Printer
	stop func() error
}

func (p *play) print(ctx context.Context, journal *trace.Journal) *printing {
	printer := trace.NewPrinter(p.io.out, journal, trace.PrintOptions{Logs: p.flags.logs})
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- printer.Follow(ctx) }()
	return &printing{printer, func() error { cancel(); return <-done }}
}

// apply applies the demo's objects as a person would, with server-side apply.
func apply(ctx context.Context, c client.Client, scheme *runtime.Scheme, objects []client.Object) error {
	for _, o := range objects {
		u, err := toApply(scheme, o)
		if err != nil {
			return err
		}
		if err := host.Apply(ctx, c, u); err != nil {
			return err
		}
	}
	return nil
}

// toApply is an object with its kind and without what the server fills in.
func toApply(scheme *runtime.Scheme, o client.Object) (*unstructured.Unstructured, error) {
	kind, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	delete(fields, "status")
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// awaitEnd returns when the demo is over and the operator has nothing left to do. It looks whenever the journal has
// grown.
func (p *play) awaitEnd(ctx context.Context, lab *stage, operator *host.Host, you client.Reader, journal *trace.Journal) error {
	changed, cancel := journal.Subscribe()
	defer cancel()
	for {
		over, err := p.instance.Demo().Over(ctx, you)
		if err != nil {
			return err
		}
		if over {
			return operator.AwaitQuiet(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-lab.done:
			return sandboxError(lab.err())
		case <-operator.Done():
			return fmt.Errorf("the operator ended: %w", errors.Join(operator.Err(), errors.New("it was not asked to")))
		case <-changed:
		}
	}
}

func (p *play) summary(ctx context.Context, you client.Reader, printing *printing) error {
	lines, err := p.instance.Demo().Summary(ctx, you)
	if err != nil {
		return err
	}
	if err := printing.stop(); err != nil {
		return err
	}
	if err := printing.Summary(); err != nil {
		return err
	}
	for _, line := range lines {
		fmt.Fprintf(p.io.out, "%-10s %s\n", line[0], line[1])
	}
	return nil
}
