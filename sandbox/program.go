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

// program is one process of the control plane or a node. It is started again when it dies.
type program struct {
	name    string
	note    string // for its [Step]; usually empty
	logFile string
	// after is a program that has to serve before this one is started for the first time. Default: none.
	after *program
	// launch starts the process with its output and returns when it serves, or an error when it does not come up. Once
	// the process has its output, launch calls [output.started], at the latest soon after it returns without an error.
	launch func(ctx context.Context, out *output) error
	// halt ends the process that launch started and returns when it is gone.
	halt func() error
	// orderly says that halt also ends what the process has started.
	orderly bool
	// launched is called after each launch, before the program counts as serving. Default: nothing is.
	launched func(context.Context) error
	// changed is called when another process has begun to serve, and when one has ended and nobody stopped the program. Default:
	// nothing is.
	changed func()

	mu       sync.Mutex
	turned   sync.Cond // the phase has changed
	phase    phase
	out      *output // of the present run
	restarts int
}

// Exit describes the death of a program of the control plane that nobody stopped.
type Exit struct {
	// Program is its name, such as "etcd".
	Program string
	// LogEnd has the last lines of its log.
	LogEnd string
	// LogFile is the path of the whole log.
	LogFile string
	// Restarted is false if the sandbox gives up.
	Restarted bool
}

// A program is given up after this many deaths in a row, or if it has not served for [startTimeout]. After a run of
// steadyAfter the count begins again.
const (
	maxRestarts = 5
	steadyAfter = 10 * time.Second
)

// start launches the program once. When ctx ends before it serves, it is killed.
func (p *program) start(ctx context.Context) error {
	if p.after != nil {
		if err := p.after.awaitServing(ctx); err != nil {
			return err
		}
	}
	out, err := openOutput(p.logFile)
	if err != nil {
		return err
	}
	p.mu.Lock()
	if p.phase != starting {
		p.mu.Unlock()
		out.started()
		return context.Canceled
	}
	p.out = out
	p.mu.Unlock()

	stopKilling := context.AfterFunc(ctx, out.kill)
	err = p.launch(ctx, out)
	if err == nil && p.launched != nil {
		err = p.launched(ctx)
	}
	stopKilling()
	if err == nil && ctx.Err() == nil {
		p.turn(onServe)
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

// failure returns the error of a launch: one line if the cause is known, else the end of the program's log.
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
	defer p.turn(onStop)
	deaths, since := 0, time.Now() // how long it has served, or not
	var failed error               // to start
	for {
		out := p.current()
		<-out.ended
		was := p.turn(onDeath)
		if was == stopped || ctx.Err() != nil {
			return nil
		}
		p.tellChanged()
		off := was.isOff()
		if off || failed == nil && time.Since(since) > steadyAfter {
			deaths, failed = 0, nil
		}
		if was != killed && !off {
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
		on, wasHeld := p.awaitPower()
		if !on {
			return nil
		}
		if !wasHeld {
			p.mu.Lock()
			p.restarts++
			p.mu.Unlock()
		}
		if failed == nil {
			since = time.Now()
		}
		// What it needs may be away as well, through no fault of its own: kube-controller-manager waits ten seconds for
		// an API server.
		if failed = p.start(ctx); failed == nil {
			since = time.Now()
			p.tellChanged()
		}
	}
}

func (p *program) tellChanged() {
	if p.changed != nil {
		p.changed()
	}
}

// stop ends the program for good and returns when its process is gone.
func (p *program) stop() error {
	p.turn(onStop)
	out := p.current() // nothing is launched any more
	if out == nil {
		return nil
	}
	err := p.halt()
	out.kill() // one that is just being launched was not there yet to be halted
	<-out.ended
	return err
}

func (p *program) current() *output {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out
}

// pid returns the pid of the running process, or 0 if none runs or it has not reported it.
func (p *program) pid() int {
	out := p.current()
	if out == nil {
		return 0
	}
	select {
	case <-out.ended:
		return 0
	default:
		return int(out.pid.Load())
	}
}

func (p *program) restarted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts
}

// command is a program that the sandbox starts itself: envtest knows only etcd and kube-apiserver.
type command struct {
	path string
	args []string
	env  []string
	// patience limits how long the process may take to end after SIGTERM. Default: it is killed at once.
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

// halt ends the process. It is killed, because the state of these programs is in the API server, or asked first if it
// has a patience.
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

// startTogether starts programs side by side. When one fails, the others are killed.
func startTogether(ctx context.Context, programs ...*program) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failures := make(chan error, len(programs))
	for _, p := range programs {
		go func() { failures <- p.start(ctx) }()
	}
	var first error
	for range programs {
		if err := <-failures; err != nil && first == nil {
			first = err
			cancel()
		}
	}
	return first
}

// stopAll stops programs side by side.
func stopAll(programs ...*program) error {
	errs := make([]error, len(programs))
	var wg sync.WaitGroup
	for i, p := range programs {
		wg.Go(func() { errs[i] = p.stop() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
