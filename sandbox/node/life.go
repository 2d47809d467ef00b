package node

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/operator-lab/operator-lab/sandbox/images"
)

// StartContainer starts the program. It fails for an image without the command. A container with a start delay counts
// as running at once, and its program begins later.
func (r *Runtime) StartContainer(_ context.Context, id string) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	trouble := r.troubles.with(c)
	c.mu.Lock()
	if c.state != runtimeapi.ContainerState_CONTAINER_CREATED {
		c.mu.Unlock()
		return status.Errorf(codes.Unknown, "container %q is in %v state", id, c.state)
	}
	c.state, c.started = runtimeapi.ContainerState_CONTAINER_RUNNING, time.Now()
	c.mu.Unlock()
	if trouble.Crash {
		go r.crash(c, trouble)
	}
	if trouble.Crash && trouble.CrashAfter <= 0 {
		return nil // crash ends it
	}
	if trouble.StartDelay > 0 {
		go r.late(c)
		return nil
	}
	if err := r.begin(c); err != nil {
		return status.Error(codes.Unknown, err.Error())
	}
	return nil
}

// begin starts the program. If that fails, the container has ended.
func (r *Runtime) begin(c *container) error {
	running, err := c.program.Start(c.given)
	if err != nil {
		err = fmt.Errorf("failed to create containerd task: failed to create shim task: OCI runtime create failed: "+
			"runc create failed: unable to start container process: error during container init: %w: unknown", err)
		c.finish(ending{code: 128, reason: reasonStart, message: err.Error()})
		return err
	}
	c.mu.Lock()
	c.running = running
	ordered := c.orderedTo
	c.mu.Unlock()
	if ordered != 0 {
		running.Signal(ordered)
	}
	go c.watch(running)
	go r.slowDown(c, running)
	return nil
}

// slowDown stops and continues the processes of a container while a trouble makes it slow. It returns when the container has ended. A
// program that is no process of its own would stop its node with it, and is left alone.
func (r *Runtime) slowDown(c *container, running images.Running) {
	for {
		changed := r.troubles.changes()
		if _, own := images.ProcessesOf(running); !own || !r.troubles.with(c).Slow {
			select {
			case <-changed:
				continue
			case <-c.done:
			case <-r.closed:
			}
			return
		}
		running.Signal(syscall.SIGSTOP)
		more := r.delay(c.done, func() time.Duration { return SlowStands })
		running.Signal(syscall.SIGCONT)
		if !more || !r.delay(c.done, func() time.Duration { return SlowRuns }) {
			return
		}
	}
}

// watch waits for the end of the program and records it.
func (c *container) watch(running images.Running) {
	select {
	case <-running.Done():
	case <-c.done: // given up
		return
	}
	code := running.Code()
	end := ending{code: code, reason: ReasonCompleted}
	if code != 0 {
		end.reason = ReasonError
	}
	c.finish(end)
}

// finish ends the container for good. An override replaces the program's own exit code.
func (c *container) finish(end ending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == runtimeapi.ContainerState_CONTAINER_EXITED {
		return
	}
	if c.override != nil {
		end = *c.override
	}
	c.stdout.end()
	c.stderr.end()
	c.log.close()
	c.attached.end()
	if c.stdin != nil {
		c.stdin.end()
	}
	if end.reason == reasonStart { // as containerd: it never was
		c.started = time.Unix(0, 0)
	}
	c.ended, c.finished, c.state = end, time.Now(), runtimeapi.ContainerState_CONTAINER_EXITED
	close(c.done)
}

// close closes what finish would close, of a container that never started.
func (c *container) close() {
	if c.now() == runtimeapi.ContainerState_CONTAINER_CREATED {
		c.finish(ending{code: 255, reason: "Unknown"})
	}
}

// late starts the program after the start delay, unless the container is told to end before.
func (r *Runtime) late(c *container) {
	if r.delay(c.ordered, func() time.Duration { return r.troubles.with(c).StartDelay }) {
		_ = r.begin(c) // the error is in the container's status
		return
	}
	<-c.ordered // at the latest by the runtime, which closes then
	c.mu.Lock()
	ordered := c.orderedTo
	c.mu.Unlock()
	c.finish(ending{code: 128 + int(ordered), reason: ReasonError})
}

// crash ends the container a while after its start.
func (r *Runtime) crash(c *container, trouble Trouble) {
	end := ending{code: trouble.CrashCode, reason: ReasonError}
	if trouble.CrashCode == 0 {
		end.reason = ReasonCompleted
	}
	if trouble.CrashAfter <= 0 {
		c.finish(end)
		return
	}
	if r.delay(c.done, func() time.Duration { return r.troubles.with(c).CrashAfter }) && r.troubles.with(c).Crash {
		c.end(end)
	}
}

// end kills the container and sets how it ended. It reports false if the container was not running.
func (c *container) end(override ending) bool {
	c.mu.Lock()
	if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING || c.override != nil {
		c.mu.Unlock()
		return false
	}
	c.override = &override
	c.mu.Unlock()
	c.signal(syscall.SIGKILL)
	return true
}

// signal sends a signal to the program. Before the program begins, nothing can ignore a signal that ends it.
func (c *container) signal(s syscall.Signal) {
	c.mu.Lock()
	running := c.running
	if running == nil && deadly(s) {
		if c.orderedTo == 0 {
			close(c.ordered)
		}
		if c.orderedTo != syscall.SIGKILL {
			c.orderedTo = s
		}
	}
	stdin := c.stdin
	c.mu.Unlock()
	if running == nil {
		return
	}
	running.Signal(s)
	if s == syscall.SIGKILL && stdin != nil {
		stdin.end() // a reader must end, too
	}
}

func deadly(s syscall.Signal) bool {
	switch s {
	case syscall.SIGTERM, syscall.SIGKILL, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGABRT:
		return true
	}
	return false
}

// StopContainer asks a container to end, waits up to timeout seconds, then kills it. A program that does not end even
// then is given up, and the container's log says so.
func (r *Runtime) StopContainer(ctx context.Context, id string, timeout int64) error {
	c, err := r.container(id)
	if err != nil {
		return nil //nolint:nilerr // what is not there has stopped
	}
	if c.now() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil
	}
	if timeout > 0 {
		c.signal(c.stopSignal())
		if ended, err := c.await(ctx, time.Duration(timeout)*time.Second); ended || err != nil {
			return err
		}
	}
	c.signal(syscall.SIGKILL)
	if ended, err := c.await(ctx, r.options.KillPatience); ended || err != nil {
		return err
	}
	c.log.say(fmt.Sprintf("the program did not end within %v after SIGKILL: it is given up, and may still do something",
		r.options.KillPatience))
	c.finish(ending{code: 128 + 9, reason: ReasonError})
	return nil
}

// await waits for the container to end, for a while.
func (c *container) await(ctx context.Context, d time.Duration) (ended bool, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.done:
		return true, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, status.FromContextError(ctx.Err()).Err()
	}
}
