package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// interrupts decides whether Ctrl-C ends the lab. A terminal sends it to all programs in the foreground: to the command that
// a person has typed in a lesson, and to the lab that waits for that command.
type interrupts struct {
	mu    sync.Mutex
	take  func()    // called for each Ctrl-C that does not end the lab; nil: they do
	until time.Time // until then they are ignored, although take is nil again
}

// interruptLate is the time by which a Ctrl-C may reach the lab later than the command that it ends.
const interruptLate = 300 * time.Millisecond

// interruptsKey is the key of the interrupts in the context of the process.
type interruptsKey struct{}

// claimInterrupts has Ctrl-C taken, so that it does not end the lab, until release is called. SIGTERM and a closed
// terminal end it all the same.
func claimInterrupts(ctx context.Context, take func()) (release func()) {
	i, is := ctx.Value(interruptsKey{}).(*interrupts)
	if !is {
		return func() {}
	}
	i.set(take)
	return func() { i.set(nil) }
}

func (i *interrupts) set(take func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.take, i.until = take, time.Now().Add(interruptLate)
}

// await returns at the first signal that no command has claimed.
func (i *interrupts) await(signals <-chan os.Signal) {
	for signal := range signals {
		if signal != os.Interrupt || !i.taken() {
			return
		}
	}
}

func (i *interrupts) taken() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.take == nil {
		return time.Now().Before(i.until)
	}
	i.take()
	return true
}

// runForeground runs a program that a person has typed, until ctx ends. It is in the lab's process group, so that a
// terminal sends it Ctrl-C, and Ctrl-Z stops both. The lab takes no notice of the first Ctrl-C; the next one kills a
// program that has not ended. An interactive one, such as a shell, knows best itself. Without a terminal nobody types,
// and Ctrl-C is meant for the lab.
func runForeground(ctx context.Context, io streams, cmd *exec.Cmd, interactive bool) (ended error) {
	running, kill := context.WithCancel(ctx)
	defer kill()
	switch {
	case !isTerminal(io.in):
	case interactive:
		defer claimInterrupts(ctx, func() {})()
	default:
		release := endByInterrupt(ctx, kill)
		defer func() {
			// The lab may learn of a Ctrl-C after the program has died of it.
			if seen := release(); seen || isInterrupted(ended) {
				fmt.Fprintln(io.err) // the cursor is behind the ^C
			}
		}()
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(running, func() { _ = cmd.Process.Kill() })()
	return cmd.Wait()
}

// endByInterrupt leaves the first Ctrl-C to a program, and kills it at the next, until release is called, which tells
// whether there was one.
func endByInterrupt(ctx context.Context, kill func()) (release func() bool) {
	times := 0
	unclaim := claimInterrupts(ctx, func() {
		if times++; times > 1 {
			kill()
		}
	})
	return func() bool {
		unclaim()
		return times > 0
	}
}

// isInterrupted reports whether a program ended because of a Ctrl-C.
func isInterrupted(ended error) bool {
	var exited *exec.ExitError
	return errors.As(ended, &exited) && exitCodeOf(exited) == 128+int(syscall.SIGINT)
}

// exitCodeOf returns the exit code of a program as a shell does, also of one that was killed by a signal.
func exitCodeOf(exited *exec.ExitError) int {
	if status, is := exited.Sys().(syscall.WaitStatus); is && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exited.ExitCode()
}
