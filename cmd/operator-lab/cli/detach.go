package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// message is one line of JSON that the background process sends to the command that started it.
type message struct {
	Step  *sandbox.Step `json:"step,omitempty"`
	Ready bool          `json:"ready,omitempty"`
	Error string        `json:"error,omitempty"`
	Hint  string        `json:"hint,omitempty"`
}

// upDetached leaves a sandbox running in the background.
func upDetached(ctx context.Context, io streams, f upFlags) error {
	began := time.Now()
	if !f.quiet {
		fmt.Fprintf(io.err, "starting sandbox %s\n", f.name)
	}
	record, err := startDetached(ctx, f, func(s sandbox.Step) {
		if !f.quiet {
			fmt.Fprintln(io.err, progressLine(s))
		}
	})
	if err != nil {
		return err
	}
	f.printReady(io, record.Kubeconfig(), time.Since(began), "stop it with 'operator-lab down"+nameArg(f.name)+"'")
	return nil
}

// startDetached starts this binary again in a session of its own, relays its progress and returns when the sandbox it
// holds is ready.
func startDetached(ctx context.Context, f upFlags, progress func(sandbox.Step)) (*sandbox.Record, error) {
	messages, report, err := os.Pipe()
	if err != nil {
		return nil, sandboxError(err)
	}
	defer func() { _ = messages.Close() }()
	daemon, err := startDaemon(f, report)
	_ = report.Close()
	if err != nil {
		return nil, sandboxError(err)
	}
	stopTelling := context.AfterFunc(ctx, func() { _ = daemon.Process.Signal(syscall.SIGTERM) })
	defer stopTelling()
	lines := bufio.NewScanner(messages)
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			continue
		}
		switch {
		case m.Ready:
			if err := daemon.Process.Release(); err != nil {
				return nil, err
			}
			return running(f.name)
		case m.Error != "":
			_ = daemon.Wait()
			return nil, sandboxError(&sandbox.Problem{Err: errors.New(m.Error), Hint: m.Hint})
		case m.Step != nil:
			progress(*m.Step)
		}
	}
	_ = daemon.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, sandboxError(errors.New("the background process ended before the sandbox was ready"))
}

func nameArg(name string) string {
	if name == sandbox.DefaultName {
		return ""
	}
	return " --name " + name
}

func startDaemon(f upFlags, report *os.File) (*exec.Cmd, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := append([]string{"up", "--name", f.name, "--report-fd", "3", "--crds-of", f.crdsOf}, f.nodes.args()...)
	for flag, set := range map[string]bool{"--fresh": f.fresh, "--merge-kubeconfig": f.mergeKubeconfig} {
		if set {
			args = append(args, flag)
		}
	}
	daemon := exec.Command(binary, args...)
	daemon.ExtraFiles = []*os.File{report}
	daemon.Env = append(os.Environ(), guard.PipeVariable+"=") // it is meant to outlive this process
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return daemon, daemon.Start()
}

// upDaemon holds the sandbox in the background until SIGTERM.
func upDaemon(ctx context.Context, f upFlags) error {
	syscall.CloseOnExec(f.reportFD) // the programs it starts must not keep the pipe open
	pipe := os.NewFile(uintptr(f.reportFD), "report"+strconv.Itoa(f.reportFD))
	tell := json.NewEncoder(pipe)
	log := &daemonLog{}
	o, err := f.options(log)
	if err != nil {
		return err
	}
	o.Progress = func(s sandbox.Step) { _ = tell.Encode(message{Step: &s}) }
	lab, err := sandbox.Start(ctx, o)
	if err != nil {
		m := message{Error: err.Error()}
		if problem, ok := errors.AsType[*sandbox.Problem](err); ok {
			m.Hint = problem.Hint
		}
		_ = tell.Encode(m)
		return sandboxError(err)
	}
	defer func() { _ = lab.Stop() }()
	log.open(lab)
	unmerge, err := f.merge(lab)
	if err != nil {
		_ = tell.Encode(message{Error: err.Error()})
		return err
	}
	defer unmerge()
	if err := tell.Encode(message{Ready: true}); err != nil {
		return nil // the command that started this process was killed: stop the sandbox, which nobody knows of
	}
	_ = pipe.Close()
	select {
	case <-ctx.Done():
		return nil
	case <-lab.Done():
		fmt.Fprintln(log, lab.Err())
		return sandboxError(lab.Err())
	}
}

// daemonLog is the background process's own log; before the sandbox is claimed it has no file to write to.
type daemonLog struct{ file *os.File }

func (l *daemonLog) open(lab *sandbox.Sandbox) {
	f, err := os.OpenFile(lab.LogFile("operator-lab"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		l.file = f
	}
}

func (l *daemonLog) Write(b []byte) (int, error) {
	if l.file == nil {
		return len(b), nil
	}
	return l.file.Write(b)
}
