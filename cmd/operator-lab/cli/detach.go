package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
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

	// What a sandbox reports, if the flags have a listener: a line of the audit log, and a program that ended.
	Audit json.RawMessage `json:"audit,omitempty"`
	Exit  *sandbox.Exit   `json:"exit,omitempty"`
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
// holds is ready. The listener of the flags, if there is one, is told from then on for as long as this process lives.
func startDetached(ctx context.Context, f upFlags, progress func(sandbox.Step)) (*sandbox.Record, error) {
	messages, report, err := os.Pipe()
	if err != nil {
		return nil, sandboxError(err)
	}
	daemon, err := startDaemon(f, report)
	_ = report.Close()
	if err != nil {
		_ = messages.Close()
		return nil, sandboxError(err)
	}
	stopTelling := context.AfterFunc(ctx, func() { _ = daemon.Process.Signal(syscall.SIGTERM) })
	defer stopTelling()
	told := json.NewDecoder(messages)
	for {
		var m message
		if told.Decode(&m) != nil {
			break
		}
		switch {
		case m.Ready:
			if err := daemon.Process.Release(); err != nil {
				_ = messages.Close()
				return nil, err
			}
			go f.listen(told, messages)
			return running(f.name)
		case m.Error != "":
			_ = messages.Close()
			_ = daemon.Wait()
			return nil, sandboxError(&sandbox.Problem{Err: errors.New(m.Error), Hint: m.Hint})
		case m.Step != nil:
			progress(*m.Step)
		}
	}
	_ = messages.Close()
	_ = daemon.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, sandboxError(errors.New("the background process ended before the sandbox was ready"))
}

// listen passes on what the background process tells, until it ends.
func (f upFlags) listen(told *json.Decoder, messages io.Closer) {
	defer func() { _ = messages.Close() }()
	if f.listener == nil {
		return
	}
	var o sandbox.Options
	f.listener.Listen(&o)
	for {
		var m message
		if told.Decode(&m) != nil {
			return
		}
		if m.Audit != nil {
			o.OnAudit(m.Audit)
		}
		if m.Exit != nil {
			o.OnExit(*m.Exit)
		}
	}
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
	for flag, set := range map[string]bool{"--fresh": f.fresh, "--merge-kubeconfig": f.mergeKubeconfig, "--report-writes": f.listener != nil} {
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
	// The programs it starts must not keep the pipe open, and a write needs a deadline.
	syscall.CloseOnExec(f.reportFD)
	if err := syscall.SetNonblock(f.reportFD, true); err != nil {
		return err
	}
	pipe := os.NewFile(uintptr(f.reportFD), "report"+strconv.Itoa(f.reportFD))
	tell := &teller{to: pipe}
	log := &daemonLog{}
	o, err := f.options(log)
	if err != nil {
		return err
	}
	o.Progress = func(s sandbox.Step) { _ = tell.say(message{Step: &s}) }
	if f.reportWrites {
		logged := o.OnExit
		o.OnAudit = func(line []byte) { _ = tell.say(message{Audit: line}) }
		o.OnExit = func(e sandbox.Exit) {
			logged(e)
			_ = tell.say(message{Exit: &e})
		}
	}
	lab, err := sandbox.Start(ctx, o)
	if err != nil {
		m := message{Error: err.Error()}
		if problem, ok := errors.AsType[*sandbox.Problem](err); ok {
			m.Hint = problem.Hint
		}
		_ = tell.say(m)
		return sandboxError(err)
	}
	defer func() { _ = lab.Stop() }()
	log.open(lab)
	unmerge, err := f.merge(lab)
	if err != nil {
		_ = tell.say(message{Error: err.Error()})
		return err
	}
	defer unmerge()
	if err := tell.say(message{Ready: true}); err != nil {
		return nil // the command that started this process was killed: stop the sandbox, which nobody knows of
	}
	if !f.reportWrites {
		_ = pipe.Close()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-lab.Done():
		fmt.Fprintln(log, lab.Err())
		return sandboxError(lab.Err())
	}
}

// tellPatience limits the wait for who does not read what is told, such as a process that is stopped: the API server waits too.
const tellPatience = 5 * time.Second

// teller sends messages, one after the other, until nobody reads them.
type teller struct {
	mu   sync.Mutex
	to   *os.File
	over error
}

func (t *teller) say(m message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over != nil {
		return t.over
	}
	_ = t.to.SetWriteDeadline(time.Now().Add(tellPatience)) // without one it only waits longer
	if t.over = json.NewEncoder(t.to).Encode(m); t.over != nil {
		_ = t.to.Close()
	}
	return t.over
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
