package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// program is one process of the control plane, started again when it dies.
type program struct {
	name    string
	logFile string
	// launch starts the process with its output and returns when it serves, or an error when it does not come up. Once
	// the process has its output, launch calls [output.started], at the latest soon after it returns without an error.
	launch func(ctx context.Context, out *output) error
	// halt ends the process that launch started and returns when it is gone.
	halt func() error
	// orderly: halt ends more than the process, and nobody else does so at once.
	orderly bool

	mu       sync.Mutex
	turned   sync.Cond // it serves, or never will again
	out      *output   // of the present run
	serving  bool
	stopping bool
	asked    bool // somebody asked for its death: not its own fault
	lost     bool // it is not started again before somebody says so
	held     bool // nor is it as long as what it keeps on disk is exchanged
	parked   bool // it is dead, and waits to be started again
	restarts int
}

// serves notes whether the program can be killed and started again now.
func (p *program) serves(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serving = is
	p.turned.Broadcast()
}

// gaveUp notes that nobody will start the program again.
func (p *program) gaveUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopping = true
	p.turned.Broadcast()
}

// Exit tells that a program of the control plane died although nobody stopped it.
type Exit struct {
	// Program is its name, such as "etcd".
	Program string
	// LogEnd is the last lines of its log.
	LogEnd string
	// LogFile holds the rest.
	LogFile string
	// Restarted is false when the sandbox gave up.
	Restarted bool
}

// Restarts in a row are free until a program has died this often, or has not served for [startTimeout]; a run of
// steadyAfter starts the count anew.
const (
	maxRestarts = 5
	steadyAfter = 10 * time.Second
)

// start launches the program once. When ctx ends before it serves, it is killed.
func (p *program) start(ctx context.Context) error {
	out, err := openOutput(p.logFile)
	if err != nil {
		return err
	}
	p.mu.Lock()
	if p.stopping || p.held {
		p.mu.Unlock()
		out.started()
		return context.Canceled
	}
	p.out = out
	p.mu.Unlock()

	stopKilling := context.AfterFunc(ctx, out.kill)
	err = p.launch(ctx, out)
	stopKilling()
	if err == nil && ctx.Err() == nil {
		p.serves(true)
		return nil
	}
	// The process may not even be forked yet: this end of its output must stay open until it is.
	out.kill()
	halted := p.halt()
	out.started()
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), halted)
	}
	<-out.ended
	return p.failure(err, out)
}

// failure is the error of a launch: in one line where the cause is known, else with what the program itself said last.
func (p *program) failure(err error, out *output) error {
	tail := out.end()
	if cause := knownCause(tail); cause != nil {
		return explain(fmt.Errorf("%s did not start: %w (its log is %s)", p.name, cause, p.logFile))
	}
	if strings.TrimSpace(tail) == "" {
		return fmt.Errorf("%s did not start: %w", p.name, err)
	}
	return fmt.Errorf("%s did not start; the end of its log (%s):\n%s", p.name, p.logFile, indent(tail))
}

// watch starts the program again whenever it dies, and reports each death. It returns when the program is stopped,
// or with an error when it will not stay up.
func (p *program) watch(ctx context.Context, report func(Exit)) error {
	defer p.gaveUp()
	deaths, since := 0, time.Now() // how long it has served, or not
	var failed error               // to start
	for {
		out := p.current()
		<-out.ended
		p.serves(false)
		if p.isStopping() || ctx.Err() != nil {
			return nil // it was asked to end
		}
		off := p.isOff()
		if off || failed == nil && time.Since(since) > steadyAfter {
			deaths, failed = 0, nil
		}
		if !p.wasAsked() && !off {
			deaths++
		}
		exit := Exit{Program: p.name, LogEnd: out.end(), LogFile: p.logFile, Restarted: deaths <= maxRestarts}
		if failed != nil && (!exit.Restarted || time.Since(since) > startTimeout) {
			report(Exit{Program: p.name, LogEnd: failed.Error(), LogFile: p.logFile})
			return failed
		}
		if !off {
			report(exit)
		}
		if !exit.Restarted {
			return fmt.Errorf("%s died %d times; the end of its log:\n%s", p.name, deaths, indent(exit.LogEnd))
		}
		_ = p.halt() // reaps
		on, held := p.awaitPower()
		if !on {
			return nil
		}
		if !held {
			p.mu.Lock()
			p.restarts++
			p.mu.Unlock()
		}
		if failed == nil {
			since = time.Now()
		}
		// What it needs may be away as well, and nobody's fault: kube-controller-manager gives an API server ten seconds.
		if failed = p.start(ctx); failed == nil {
			since = time.Now()
		}
	}
}

// stop ends the program for good and returns when its process is gone.
func (p *program) stop() error {
	p.mu.Lock()
	p.stopping = true
	p.turned.Broadcast()
	out := p.out
	p.mu.Unlock()
	if out == nil {
		return nil
	}
	err := p.halt()
	out.kill() // one that is just being launched was not there yet to be halted
	<-out.ended
	return err
}

// kill ends the process with SIGKILL and returns when it is dead; [program.watch] starts it again. One that is being
// started again is waited for: killed before it serves, it would look as if it could not be started.
func (p *program) kill() { p.end(false) }

// end is kill, or also keeps the program from being started again. One that is kept from it is dead already.
func (p *program) end(lost bool) {
	p.mu.Lock()
	p.turned.L = &p.mu
	for !p.serving && !p.stopping && !p.lost {
		p.turned.Wait()
	}
	if p.stopping || p.lost {
		p.mu.Unlock()
		return
	}
	p.asked, p.serving, p.lost = true, false, lost
	out := p.out
	p.mu.Unlock()
	out.kill()
	<-out.ended
	if lost {
		p.awaitParked()
	}
}

// wasAsked reports whether the present death was asked for, once.
func (p *program) wasAsked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.asked
	p.asked = false
	return asked
}

func (p *program) current() *output {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out
}

func (p *program) isStopping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopping
}

// pid of the running process; 0 when none has told its own.
func (p *program) pid() int {
	if out := p.current(); out != nil {
		return int(out.pid.Load())
	}
	return 0
}

func (p *program) restarted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts
}

// command is a program that the sandbox starts itself, because envtest knows only etcd and kube-apiserver.
type command struct {
	path string
	args []string
	env  []string
	// patience is how long the process may take to end after SIGTERM. Default: it is killed at once.
	patience time.Duration

	mu  sync.Mutex
	cmd *exec.Cmd
}

// launch returns when the process says that it is ready.
func (c *command) launch(ctx context.Context, out *output) error {
	cmd := exec.Command(c.path, c.args...)
	cmd.Stdout, cmd.Stderr = out.w, out.w
	cmd.Env = append(os.Environ(), c.env...)
	// Ctrl-C in the terminal is for the lab, which stops its programs in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.mu.Lock()
	c.cmd = cmd
	c.mu.Unlock()
	out.started()
	select {
	case <-out.ready:
		return nil
	case <-out.ended:
		return errors.New("it exited")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// halt kills: what these programs know is in the API server. Only one that has something to tidy is asked first.
func (c *command) halt() error {
	c.mu.Lock()
	cmd := c.cmd
	c.cmd = nil
	c.mu.Unlock()
	if cmd == nil {
		return nil
	}
	kill := func() { _ = cmd.Process.Kill() }
	if c.patience > 0 && cmd.Process.Signal(syscall.SIGTERM) == nil {
		defer time.AfterFunc(c.patience, kill).Stop()
	} else {
		kill()
	}
	_ = cmd.Wait() // the exit code of a killed process says nothing
	return nil
}

func indent(s string) string { return "  " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ") }
