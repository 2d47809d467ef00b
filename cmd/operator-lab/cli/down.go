package cli

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/sandbox"
)

// downTimeout is the time a sandbox has to stop before it is killed. It usually needs a fraction of a second.
const downTimeout = 15 * time.Second

func downCommand(io streams) *cobra.Command {
	var name string
	var all, remove bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop a sandbox; what it held stays",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all && cmd.Flags().Changed("name") {
				return usageError("leave one of them out", "--name and --all exclude each other")
			}
			records, err := chosen(name, all)
			if err != nil {
				return err
			}
			for _, r := range records {
				if err := down(cmd.Context(), io, r, remove); err != nil {
					return err
				}
			}
			return nil
		},
	}
	nameFlag(cmd, &name)
	cmd.Flags().BoolVar(&all, "all", false, "stop all sandboxes")
	cmd.Flags().BoolVar(&remove, "delete", false, "also delete what it held")
	return cmd
}

func chosen(name string, all bool) ([]*sandbox.Record, error) {
	if !all {
		r, err := lookup(name)
		if errors.Is(err, sandbox.ErrNotRunning) {
			err = &sandbox.Problem{Err: fmt.Errorf("there is no sandbox %s", name), Hint: "'operator-lab list' shows all"}
		}
		return []*sandbox.Record{r}, err
	}
	state, err := sandbox.StateDir()
	if err != nil {
		return nil, err
	}
	return sandbox.List(state)
}

func down(ctx context.Context, io streams, r *sandbox.Record, remove bool) error {
	if r.Running {
		if err := stopHolder(ctx, r); err != nil {
			return err
		}
		fmt.Fprintf(io.err, "sandbox %s is stopped\n", r.Name)
	} else if !remove {
		fmt.Fprintf(io.err, "sandbox %s was not running\n", r.Name)
	}
	if !remove {
		return nil
	}
	state, err := sandbox.StateDir()
	if err != nil {
		return err
	}
	if err := sandbox.Remove(state, r.Name); err != nil {
		return err
	}
	fmt.Fprintf(io.err, "sandbox %s is deleted\n", r.Name)
	return nil
}

// stopHolder asks the process that holds the sandbox to stop it, and kills it when it does not: its programs go with
// it either way.
func stopHolder(ctx context.Context, r *sandbox.Record) error {
	if err := syscall.Kill(r.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop sandbox %s (process %d): %w", r.Name, r.PID, err)
	}
	patience, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	if r.AwaitStopped(patience) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_ = syscall.Kill(r.PID, syscall.SIGKILL)
	return r.AwaitStopped(ctx)
}
