package images

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// killed returns the exit code of a process that a signal has ended.
func killed(s syscall.Signal) int { return 128 + int(s) }

// task is a program at work that is a function of this process.
type task struct {
	// life ends with SIGKILL.
	life life
	kill func()
	// signals receives all other signals. Excess ones are dropped, as for a process.
	signals chan syscall.Signal
	done    chan struct{}
	code    int
}

// begin runs a function as a program. The function must return its exit code soon after its life has ended.
func begin(run func(*task) int) *task {
	t := &task{
		life: make(life), signals: make(chan syscall.Signal, 8), // more than the kinds of signals that a runtime sends
		done: make(chan struct{}),
	}
	t.kill = sync.OnceFunc(func() { close(t.life) })
	go func() {
		defer close(t.done)
		t.code = run(t)
		if t.life.Err() != nil {
			t.code = killed(syscall.SIGKILL)
		}
		t.kill() // for what uses its life as a context
	}()
	return t
}

// Signal implements [Running].
func (t *task) Signal(s syscall.Signal) {
	if s == syscall.SIGKILL {
		t.kill()
		return
	}
	select {
	case t.signals <- s:
	default:
	}
}

// Done implements [Running].
func (t *task) Done() <-chan struct{} { return t.done }

// Code implements [Running].
func (t *task) Code() int { return t.code }

// terminates reports whether a signal asks a program to end.
func terminates(s syscall.Signal) bool {
	return s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGQUIT
}

// life is a context without a parent: a container ends when it is stopped, not with the call that started it.
type life chan struct{}

func (life) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (life) Value(any) any                           { return nil }

func (l life) Done() <-chan struct{} { return l }

func (l life) Err() error {
	select {
	case <-l:
		return context.Canceled
	default:
		return nil
	}
}

// delayed is a program that begins later.
type delayed struct {
	Program
	delay time.Duration
}

// late is a program at work that begins later.
type late struct {
	*task
	begun *atomic.Pointer[Running] // what began; nil before
}

// processes implements measurable.
func (l late) processes() (group int, begun bool) {
	if r := l.begun.Load(); r != nil {
		return ProcessesOf(*r)
	}
	return 0, false
}

// drain returns when all is in the log that the process which began had printed when it was called.
func (l late) drain() {
	if r := l.begun.Load(); r != nil {
		if is, has := (*r).(interface{ drain() }); has {
			is.drain()
		}
	}
}

// Start implements [Program].
func (d delayed) Start(c *Container) (Running, error) {
	return later(c, time.After(d.delay), func() (Running, error) { return d.Program.Start(c) }), nil
}

// later starts a program in a container once something has come from ready.
func later[T any](c *Container, ready <-chan T, start func() (Running, error)) late {
	begun := &atomic.Pointer[Running]{}
	return late{begun: begun, task: begin(func(t *task) int {
		for waiting := true; waiting; {
			select {
			case <-ready:
				waiting = false
			case s := <-t.signals:
				if terminates(s) {
					return killed(s)
				}
			case <-t.life:
				return killed(syscall.SIGKILL)
			}
		}
		r, err := start()
		if err != nil {
			fmt.Fprintf(c.Stderr, "operator-lab: %v\n", err)
			return 127 // as in a shell
		}
		begun.Store(&r)
		for {
			select {
			case s := <-t.signals:
				r.Signal(s)
			case <-t.life:
				r.Signal(syscall.SIGKILL)
				<-r.Done()
				return r.Code()
			case <-r.Done():
				return r.Code()
			}
		}
	})}
}
