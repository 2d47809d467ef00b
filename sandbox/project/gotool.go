package project

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/operator-lab/operator-lab/sandbox"
)

// environment is what 'go env' says in the project's directory.
type environment struct{ GOMOD, GOWORK, GOVERSION, GOFLAGS, GOOS, GOARCH, CGO_ENABLED string }

// goCommand is a call of the go tool, which ends with the context.
func goCommand(ctx context.Context, dir string, env, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), env...)
	// Ctrl-C in the terminal is for the lab, which then ends the go tool and its compilers.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// runGo runs a goCommand.
func runGo(ctx context.Context, cmd *exec.Cmd) error {
	err := cmd.Run()
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return &sandbox.Problem{
			Err:  errors.New("there is no Go tool in the PATH to build the project with"),
			Hint: "install Go from https://go.dev/dl, or run a program that is built already: run -- ./bin/manager",
		}
	}
	return err
}

// goTool runs the go tool, and returns what it writes to each stream.
func goTool(ctx context.Context, dir string, env, args []string) (stdout, stderr []byte, err error) {
	cmd := goCommand(ctx, dir, env, args)
	var out, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &wrong
	err = runGo(ctx, cmd)
	return out.Bytes(), wrong.Bytes(), err
}

// download has the go tool download a module, written as path@version, and returns its directory in the module cache. It works in a
// directory of the lab's.
func download(ctx context.Context, dir, module string) (string, error) {
	out, wrong, err := goTool(ctx, dir, []string{"GOFLAGS=", "GOWORK=off"}, []string{"mod", "download", "-json", module})
	var got struct{ Dir, Error string }
	if json.Unmarshal(out, &got) == nil && got.Error != "" {
		return "", errors.New(got.Error)
	}
	if err != nil {
		return "", goProblem(err, wrong)
	}
	return got.Dir, nil
}

// goEnvironment asks for what decides how the go tool builds in a directory.
func goEnvironment(ctx context.Context, dir string) (environment, error) {
	var env environment
	out, wrong, err := goTool(ctx, dir, nil, []string{"env", "-json", "GOMOD", "GOWORK", "GOVERSION", "GOFLAGS", "GOOS", "GOARCH", "CGO_ENABLED"})
	if err != nil {
		return env, goProblem(err, wrong)
	}
	if err := json.Unmarshal(out, &env); err != nil {
		return env, fmt.Errorf("go env: %w", err)
	}
	if env.GOMOD != "" && env.GOMOD != os.DevNull {
		return env, nil
	}
	hint := "name the directory of a Go module, or run a program that is built already: run -- ./bin/manager"
	if raw, err := os.ReadFile(env.GOWORK); err == nil {
		if work, err := modfile.ParseWork(env.GOWORK, raw, nil); err == nil && len(work.Use) > 0 {
			uses := make([]string, len(work.Use))
			for i, use := range work.Use {
				uses[i] = use.Path
			}
			hint = "name a module of the workspace: " + strings.Join(uses, ", ")
		}
	}
	return env, &sandbox.Problem{Err: fmt.Errorf("%s is in no Go module", dir), Hint: hint}
}

// goProblem explains what the go tool says when it fails as a whole.
func goProblem(err error, stderr []byte) error {
	if _, failed := errors.AsType[*exec.ExitError](err); !failed {
		return err
	}
	text := strings.TrimSpace(string(stderr))
	hint := "'go build ./...' in the project says the same"
	if strings.Contains(text, "requires go >=") || strings.Contains(text, "toolchain not available") || strings.Contains(text, "download go1") {
		hint = "install a newer Go from https://go.dev/dl"
	}
	for strings.HasPrefix(text, "go: downloading ") { // what went well before
		_, after, more := strings.Cut(text, "\n")
		if !more {
			break
		}
		text = after
	}
	first, rest, _ := strings.Cut(text, "\n")
	if strings.HasSuffix(first, ":") {
		second, _, _ := strings.Cut(rest, "\n")
		first += " " + strings.TrimSpace(second)
	}
	return &sandbox.Problem{Err: errors.New(first), Hint: hint}
}

// env is what is added to the user's environment.
func (f found) env() []string {
	if f.GoWork != "" {
		return []string{"GOWORK=" + f.GoWork}
	}
	return nil
}
