package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/lessons/session"
	"github.com/operator-lab/operator-lab/sandbox"
)

// underWay returns the lesson that runs in another terminal; nil if none does.
func underWay() (*session.Remote, error) {
	state, err := sandbox.StateDir()
	if err != nil {
		return nil, err
	}
	return session.Find(state)
}

// ask sends a request to the running lesson and prints the answer.
func ask(ctx context.Context, io streams, at *session.Remote, what session.Request, text string) error {
	a, err := at.Ask(ctx, what, text)
	if err != nil {
		return err
	}
	if a.Text != "" {
		fmt.Fprintln(io.out, strings.TrimRight(tui.Plain(a.Text, plainWidth), "\n"))
	}
	if what == session.Check && !a.Done {
		return &exitError{code: exitFailed}
	}
	return nil
}

// mustBeUnderWay returns the running lesson, or an error that says how to open one.
func mustBeUnderWay() (*session.Remote, error) {
	at, err := underWay()
	if err == nil && at == nil {
		err = usageError("open one with 'operator-lab lesson'", "no lesson is under way")
	}
	return at, err
}

func lessonRemoteCommand(io streams, verb, short string, what session.Request) *cobra.Command {
	return &cobra.Command{
		Use:   verb,
		Short: short,
		Long:  short + ".\nThe lesson is the one under way in another terminal.",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := mustBeUnderWay()
			if err != nil {
				return err
			}
			return ask(cmd.Context(), io, at, what, "")
		},
	}
}

func lessonAnswerCommand(io streams) *cobra.Command {
	return &cobra.Command{
		Use:   "answer <number or word>",
		Short: "Answer the question of the task under way",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("such as 'operator-lab lesson answer 3'", "one answer, please")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := mustBeUnderWay()
			if err != nil {
				return err
			}
			return ask(cmd.Context(), io, at, session.Reply, args[0])
		},
	}
}

func lessonShellCommand(io streams) *cobra.Command {
	return &cobra.Command{
		Use:   "shell [-- command…]",
		Short: "Open a shell where kubectl finds the cluster of the lesson under way",
		Long: `Open a shell in the directory with the manifests of the lesson under way. kubectl, etcdctl and
curl find its cluster there. With a command, run that and end with its exit code.`,
		Example: `  operator-lab lesson shell
  operator-lab lesson shell -- kubectl get pods`,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := mustBeUnderWay()
			if err != nil {
				return err
			}
			a, err := at.Ask(cmd.Context(), session.Where, "")
			if err != nil {
				return err
			}
			return runShell(cmd.Context(), io, a.Place, args)
		},
	}
}

// runShell runs the learner's shell, or a command in its directory and environment.
func runShell(ctx context.Context, io streams, at session.Place, command []string) error {
	kubectl, err := ownKubectl()
	if err != nil {
		return err
	}
	cmd, err := at.Shell(kubectl)
	if err != nil {
		return err
	}
	if len(command) > 0 { // not with their own shell: not all of them know "$@"
		dir, environment := cmd.Dir, cmd.Env
		cmd = exec.Command("sh", append([]string{"-c", `exec "$@"`, "sh"}, command...)...)
		cmd.Dir, cmd.Env = dir, environment
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = io.in, io.out, io.err
	err = runForeground(ctx, io, cmd, len(command) == 0)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if exited, is := errors.AsType[*exec.ExitError](err); is {
		return &exitError{code: exitCodeOf(exited)}
	}
	return err
}
