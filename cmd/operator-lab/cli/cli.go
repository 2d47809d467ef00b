// Package cli is operator-lab's command line, one file for each verb. It links no Kubernetes: main hands the programs in.
//
// The rules of its output: standard output is the answer, standard error is the conversation. An error is one line,
// lower case and without a full stop, followed by hint: lines.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/operator-lab/operator-lab/sandbox"
)

// Programs are the command line programs of Kubernetes and etcd that the binary links. Each reads os.Args and returns its
// exit code.
type Programs struct {
	// Kubectl is upstream's kubectl.
	Kubectl func() int
	// Etcdctl is upstream's etcdctl.
	Etcdctl func() int
	// Etcdutl is upstream's etcdutl.
	Etcdutl func() int
}

// Main runs a command line, without the program's name, on the streams of the process, and returns the exit code.
func Main(args []string, programs Programs) int {
	return run(args, streams{os.Stdin, os.Stdout, os.Stderr}, programs)
}

// streams are the standard streams; tests use others.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1   // what was expected did not happen
	exitUsage       = 2   // the command line or a file is wrong
	exitSandbox     = 3   // a sandbox could not start, or did not stay up
	exitInterrupted = 130 // ended by Ctrl-C or SIGTERM
)

// exitError carries the exit code of an error that is not exitFailed; one without a cause is not printed.
type exitError struct {
	code  int
	cause error
}

func (e *exitError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.cause.Error()
}

func (e *exitError) Unwrap() error { return e.cause }

// sandboxError marks an error of a sandbox that could not start.
func sandboxError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &exitError{exitSandbox, err}
}

// usageError returns an error of the command line with a hint.
func usageError(hint, format string, args ...any) error {
	return &exitError{exitUsage, &sandbox.Problem{Err: fmt.Errorf(format, args...), Hint: hint}}
}

// run is [Main] with given streams.
func run(args []string, io streams, programs Programs) int {
	ctx, stop := untilSignal()
	defer stop()
	// Kubernetes' packages put a --version of theirs among the flags of every program they are linked into.
	pflag.CommandLine = pflag.NewFlagSet("operator-lab", pflag.ContinueOnError)
	root := rootCommand(io, programs)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	return complain(ctx, err, io.err)
}

// untilSignal is a context that ends at the first Ctrl-C, SIGTERM or closed terminal; see [claimInterrupts]. The second
// one ends the process there and then; the control plane goes with it, and the next start clears what it left on disk.
func untilSignal() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	claims := &interrupts{}
	go func() {
		claims.await(signals)
		cancel()
		if _, again := <-signals; again {
			os.Exit(exitInterrupted)
		}
	}()
	return context.WithValue(ctx, interruptsKey{}, claims), func() { signal.Stop(signals); close(signals); cancel() }
}

// complain prints an error with its hint and returns the exit code.
func complain(ctx context.Context, err error, w io.Writer) int {
	if err == nil {
		return exitOK
	}
	code := exitFailed
	if coded, ok := errors.AsType[*exitError](err); ok {
		code = coded.code
		if coded.cause == nil {
			return code
		}
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || code == exitFailed) {
		fmt.Fprintln(w, "interrupted")
		return exitInterrupted
	}
	fmt.Fprintf(w, "error: %s\n", strings.TrimSpace(err.Error()))
	if problem, ok := errors.AsType[*sandbox.Problem](err); ok && problem.Hint != "" {
		fmt.Fprintf(w, "hint: %s\n", problem.Hint)
	}
	return code
}
