package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
)

type upFlags struct {
	name            string
	detach          bool
	fresh           bool
	mergeKubeconfig bool
	quiet           bool
	reportFD        int
	reportWrites    bool
	nodes           nodeFlags
	crdsOf          string // a bundled operator and its variant, such as zundoko/classic
	// listener is told what a sandbox in the background reports. Default: nobody is.
	listener *lab.Listener
}

func upCommand(io streams) *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a sandbox",
		Long: `Start a sandbox: etcd, kube-apiserver, Kubernetes' controllers, the scheduler and simulated
nodes, whose pods are programs on this machine. It holds what it held when it was last
stopped, unless --fresh. With --olm the Operator Lifecycle Manager runs in it.

Without --detach it runs until Ctrl-C. Exit code 3 means that it could not start.`,
		Example: `  operator-lab up                       run here until Ctrl-C
  operator-lab up --olm                 and install operators with Subscriptions
  operator-lab up --detach --name demo  run in the background; stop with 'operator-lab down --name demo'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.nodes.check(); err != nil {
				return err
			}
			switch {
			case f.detach:
				return upDetached(cmd.Context(), io, f)
			case f.reportFD > 0:
				return upDaemon(cmd.Context(), f)
			}
			return upHere(cmd.Context(), io, f)
		},
	}
	nameFlag(cmd, &f.name)
	cmd.Flags().BoolVarP(&f.detach, "detach", "d", false, "leave it running in the background")
	cmd.Flags().BoolVar(&f.fresh, "fresh", false, "start empty: delete what the sandbox held before")
	cmd.Flags().BoolVar(&f.mergeKubeconfig, "merge-kubeconfig", false, "add a context for it to your kubeconfig ($KUBECONFIG or ~/.kube/config) while it runs")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print no progress")
	f.nodes.bind(cmd.Flags(), 1)
	cmd.Flags().IntVar(&f.reportFD, "report-fd", 0, "file descriptor the background process reports to")
	cmd.Flags().StringVar(&f.crdsOf, "crds-of", "", "bundled operator and variant whose CRDs to install, such as maintpage/classic")
	cmd.Flags().BoolVar(&f.reportWrites, "report-writes", false, "also report writes to the API, and programs that ended")
	_ = cmd.Flags().MarkHidden("report-fd")
	_ = cmd.Flags().MarkHidden("report-writes")
	return cmd
}

// options of a sandbox that this process holds.
func (f upFlags) options(progress io.Writer) (sandbox.Options, error) {
	o, err := sandboxOptions(progress, f.quiet)
	o.Name, o.Fresh = f.name, f.fresh
	if err == nil {
		err = f.nodes.use(&o)
	}
	if err == nil && f.crdsOf != "" {
		o.CRDs, err = crdsOf(f.crdsOf)
	}
	return o, err
}

// crdsOf finds the CRDs of an operator's variant, which the sandbox then has from the beginning.
func crdsOf(ref string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	name, variant, _ := strings.Cut(ref, "/")
	op, ok := operators.Find(name)
	if !ok {
		return nil, unknownOperator(name)
	}
	instance := op.New()
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	instance.Flags(flags)
	if err := flags.Set("variant", variant); err != nil {
		return nil, err
	}
	return instance.CRDs()
}

// sandboxOptions are common to all commands that start a sandbox.
func sandboxOptions(w io.Writer, quiet bool) (sandbox.Options, error) {
	binary, err := os.Executable()
	if err != nil {
		return sandbox.Options{}, err
	}
	o := sandbox.Options{
		Binary:  binary,
		Version: version(),
		OnExit: func(e sandbox.Exit) {
			what := "it is started again"
			if !e.Restarted {
				what = "it does not stay up"
			}
			fmt.Fprintf(w, "%s died; %s. The end of its log (%s):\n%s\n", e.Program, what, e.LogFile, e.LogEnd)
		},
	}
	if !quiet {
		o.Progress = func(s sandbox.Step) { fmt.Fprintln(w, progressLine(s)) }
	}
	return o, nil
}

func progressLine(s sandbox.Step) string {
	line := fmt.Sprintf("  %-24s %5.2fs", s.Name, s.Took.Seconds())
	if s.Note != "" {
		line += "  (" + s.Note + ")"
	}
	return line
}

// upHere holds the sandbox until ctx ends.
func upHere(ctx context.Context, io streams, f upFlags) error {
	o, err := f.options(io.err)
	if err != nil {
		return err
	}
	if !f.quiet {
		fmt.Fprintf(io.err, "starting sandbox %s\n", f.name)
	}
	box, err := sandbox.Start(ctx, o)
	if err != nil {
		return sandboxError(err)
	}
	defer func() { _ = box.Stop() }()
	unmerge, err := f.merge(box)
	if err != nil {
		return err
	}
	defer unmerge()
	f.printReady(io, box.Kubeconfig(), time.Since(box.Began()), "press Ctrl-C to stop it")
	select {
	case <-ctx.Done():
		if !f.quiet {
			fmt.Fprintf(io.err, "stopping sandbox %s\n", f.name)
		}
		return nil // asked for: this is its normal end
	case <-box.Done():
		return sandboxError(box.Err())
	}
}

func (f upFlags) printReady(io streams, kubeconfig string, took time.Duration, next string) {
	if !f.quiet {
		fmt.Fprintf(io.err, "sandbox %s is ready after %.2fs; %s\n", f.name, took.Seconds(), next)
	}
	fmt.Fprintf(io.out, "export KUBECONFIG=%s\n", shellQuote(kubeconfig))
}

// merge adds the sandbox to the person's kubeconfig when asked to, and returns what takes it out again.
func (f upFlags) merge(box *sandbox.Sandbox) (undo func(), err error) {
	if !f.mergeKubeconfig {
		return func() {}, nil
	}
	path := clientcmd.NewDefaultPathOptions().GetDefaultFilename()
	previous, err := sandbox.MergeKubeconfig(path, box.Name(), box.Config())
	if err != nil {
		return nil, &sandbox.Problem{Err: fmt.Errorf("merge into %s: %w", path, err), Hint: "use 'operator-lab env' instead of --merge-kubeconfig"}
	}
	return func() { _ = sandbox.UnmergeKubeconfig(path, box.Name(), previous) }, nil
}
