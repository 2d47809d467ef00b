package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/traffic"
)

type trafficFlags struct {
	name  string
	proxy string
	rate  float64
	wait  time.Duration // how long an answer is waited for
	until time.Duration
	count int
	fail  bool
	quiet bool
}

func trafficCommand(io streams) *cobra.Command {
	var f trafficFlags
	cmd := &cobra.Command{
		Use:   "traffic URL",
		Short: "Ask a URL in a sandbox again and again, and say what came of it",
		Long: `Ask a URL once a second, each time on a new connection, and print what it answers: the time,
and the first line of the answer. It goes through the sandbox's proxy, which knows the names
of its Services and pods. It ends with Ctrl-C, or with --for or --count; a summary follows on
standard error.

A request has failed when there was no answer, or one with a status of 400 or more.`,
		Example: `  operator-lab traffic http://httpd.maintpage-operator.svc.cluster.local:8080
  operator-lab traffic http://web.default:8080 --rate 50 --for 30s --fail --quiet`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return usageError("such as http://web.default.svc.cluster.local:8080", "%q takes one URL, got %d", cmd.CommandPath(), len(args))
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), io, args[0]) },
	}
	nameFlag(cmd, &f.name)
	flags := cmd.Flags()
	flags.Float64Var(&f.rate, "rate", 1, "requests in a second; they do not wait for each other")
	flags.DurationVar(&f.until, "for", 0, "end after this time; 0: go on")
	flags.IntVar(&f.count, "count", 0, "end after so many requests; 0: go on")
	flags.DurationVar(&f.wait, "timeout", traffic.DefaultTimeout, "how long to wait for an answer")
	flags.BoolVar(&f.fail, "fail", false, "exit code 1 if a request failed")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print the summary only")
	flags.StringVar(&f.proxy, "proxy", "", "another HTTP proxy (default: the sandbox's; then $http_proxy)")
	return cmd
}

// The rates that a ticker and a machine can keep.
const leastRate, mostRate = 0.001, 10000.0

// check tells what is wrong with the flags.
func (f *trafficFlags) check(target string) error {
	const hint = "see 'operator-lab traffic --help'"
	switch err := traffic.CheckURL(target); {
	case err != nil:
		return usageError("such as http://web.default.svc.cluster.local:8080", "%w", err)
	case !(f.rate >= leastRate && f.rate <= mostRate): // nor NaN
		return usageError(hint, "--rate %v is not between %v and %v", f.rate, leastRate, mostRate)
	case f.until < 0 || f.wait <= 0:
		return usageError(hint, "a time cannot be negative, nor --timeout zero")
	case f.count < 0:
		return usageError(hint, "--count %d is negative", f.count)
	}
	return nil
}

func (f *trafficFlags) run(ctx context.Context, io streams, target string) error {
	if err := f.check(target); err != nil {
		return err
	}
	proxy, err := f.findProxy()
	if err != nil {
		return err
	}
	transport, err := traffic.ThroughProxy(proxy)
	if err != nil {
		return usageError("such as http://user:password@127.0.0.1:3128", "%w", err)
	}
	prober := traffic.Prober{
		URL: target, Transport: transport, Count: f.count, Timeout: f.wait,
		Interval: time.Duration(float64(time.Second) / f.rate),
	}
	asking := ctx
	if f.until > 0 {
		var cancel context.CancelFunc
		asking, cancel = context.WithTimeout(ctx, f.until)
		defer cancel()
	}
	var sum traffic.Summary
	err = prober.Run(asking, func(a traffic.Answer) {
		sum.Add(a)
		if !f.quiet {
			fmt.Fprintln(io.out, a)
		}
	})
	if errors.Is(err, context.Canceled) && f.until == 0 && f.count == 0 {
		err = nil // Ctrl-C is the end it was waiting for
	}
	switch err := errors.Join(err, sum.Print(io.err)); {
	case err != nil:
		return err
	case f.fail && sum.Failed > 0:
		return &exitError{code: exitFailed}
	}
	return nil
}

// findProxy is the sandbox's proxy, or the one that was asked for.
func (f *trafficFlags) findProxy() (string, error) {
	if f.proxy != "" {
		return f.proxy, nil
	}
	record, err := running(f.name)
	if err == nil && record.Proxy != "" {
		return record.Proxy, nil
	}
	if fromEnvironment := cmp.Or(os.Getenv("http_proxy"), os.Getenv("HTTP_PROXY")); fromEnvironment != "" && f.name == sandbox.DefaultName {
		return fromEnvironment, nil
	}
	if err == nil {
		err = &sandbox.Problem{Err: fmt.Errorf("sandbox %s has no network", f.name), Hint: "start it again with this version of operator-lab"}
	}
	return "", err
}
