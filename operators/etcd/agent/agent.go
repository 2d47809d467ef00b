// Package agent does what the etcd operator has to do with data: it takes backups, checks them, and makes data
// directories of them. It runs in pods beside the data, so that the operator never carries any, and tells the operator
// what came of it by the last words of its container.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/operators/etcd/report"
)

// Command returns the command agent, with its verbs.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Take, check and unpack backups of etcd, in the pods that the operator makes for it",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(saveCommand(), checkCommand(), seedCommand())
	return cmd
}

// failure is an error with its reason.
type failure struct {
	reason string
	err    error
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// because gives an error a reason, unless it has one.
func because(reason string, err error) error {
	if err == nil {
		return nil
	}
	if f := (*failure)(nil); errors.As(err, &f) {
		return err
	}
	return &failure{reason, err}
}

// job is a verb with its flags bound.
type job func(ctx context.Context, log *slog.Logger) (report.Result, error)

// common are the flags of all verbs.
type common struct {
	result  string
	timeout time.Duration
}

// verb makes a command of a job: its result is written where the flag says, and so is its error, which is returned as
// well, so that the process ends with an exit code for it.
func verb(use, short string, do job) *cobra.Command {
	c := &common{}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return c.run(cmd.Context(), log, do)
		},
	}
	cmd.Flags().StringVar(&c.result, "result", "/dev/termination-log", "file for the result, one JSON object")
	cmd.Flags().DurationVar(&c.timeout, "timeout", time.Minute, "give up after this long; 0: never")
	return cmd
}

func (c *common) run(ctx context.Context, log *slog.Logger, do job) error {
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	result, err := guarded(ctx, log, do)
	if err != nil {
		result = report.Result{Error: err.Error(), Reason: reasonOf(ctx, err)}
		log.Error("Failed", "reason", result.Reason, "error", err)
	} else {
		log.Info("Done", "location", result.Location, "revision", result.Revision, "keys", result.TotalKeys,
			"bytes", result.SizeBytes, "sha256", result.SHA256, "pruned", result.Pruned, "warning", result.Warning)
	}
	return errors.Join(err, c.write(result))
}

// guarded makes an error of a panic: the libraries that read backups trust them more than we do.
func guarded(ctx context.Context, log *slog.Logger, do job) (result report.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = because(report.ReasonBackupUnreadable, fmt.Errorf("the data made the agent panic: %v", r))
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // databases are read as memory, beyond whose end there may be nothing
	return do(ctx, log)
}

func reasonOf(ctx context.Context, err error) string {
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return report.ReasonTimeout
	}
	if f := (*failure)(nil); errors.As(err, &f) {
		return f.reason
	}
	return report.ReasonFailed
}

// write writes the result. A file in /dev is not made: the kubelet makes it, and without one it would be a file of the
// machine's.
func (c *common) write(result report.Result) error {
	data, err := result.Encode()
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	mode := os.O_WRONLY | os.O_TRUNC
	if filepath.Dir(c.result) != "/dev" {
		mode |= os.O_CREATE
	}
	f, err := os.OpenFile(c.result, mode, 0o644)
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	_, err = f.Write(append(data, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// missing gives what is not there one reason, and all else another.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return because(report.ReasonBackupMissing, err)
	}
	return because(report.ReasonStorageFailed, err)
}
