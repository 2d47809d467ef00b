package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// PipeVariable is the environment variable with the file descriptor of the pipe that a child reads.
const PipeVariable = "OPERATOR_LAB_LIFELINE"

// ExitCode is the exit code of a child whose parent is gone.
const ExitCode = 82

// aliveFile is the name of a file beside the links by which a sandbox's programs are started. Each program holds a
// shared lock on it as long as it lives.
const aliveFile = "alive"

// What a child prints, each alone on a line.
const (
	PIDPrefix = "operator-lab: pid "
	ReadyLine = "operator-lab: ready"
)

// OpenPipe opens the pipe and sets [PipeVariable] in this process's environment, so that children started by any
// library, envtest included, inherit it. The pipe lives as long as the process: further calls do nothing.
func OpenPipe() error { return openPipe() }

var openPipe = sync.OnceValue(func() error {
	var fds [2]int
	// The read end is inheritable on purpose. No fork may happen before the write end is close-on-exec, or a child
	// would keep the pipe open itself.
	syscall.ForkLock.Lock()
	err := syscall.Pipe(fds[:])
	if err == nil {
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.Unlock()
	if err != nil {
		return fmt.Errorf("open the pipe for programs: %w", err)
	}
	return os.Setenv(PipeVariable, strconv.Itoa(fds[0]))
})

// AwaitGone returns when no child started by a link in dir is alive any more, or with the context's error.
func AwaitGone(ctx context.Context, dir string) error {
	for {
		gone, err := tryGone(dir)
		if gone || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("programs of an earlier run are still alive: %w", ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Gone reports whether no child started by a link in dir is alive.
func Gone(dir string) bool {
	gone, err := tryGone(dir)
	return gone || errors.Is(err, os.ErrNotExist)
}

func tryGone(dir string) (bool, error) {
	f, err := os.OpenFile(filepath.Join(dir, aliveFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // releases the lock
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}

// WatchParent makes this process exit with [ExitCode] when its parent is gone, and prints its pid for the parent. Without
// [PipeVariable] it does nothing and returns false: no sandbox started this process.
func WatchParent() bool {
	fd, err := strconv.Atoi(os.Getenv(PipeVariable))
	if err != nil || fd < 3 {
		return false
	}
	// Children of this process must not inherit the pipe: this process is their parent.
	_ = os.Unsetenv(PipeVariable)
	syscall.CloseOnExec(fd)
	watched = fd
	go exitAtEOF(fd)
	holdAlive(filepath.Join(filepath.Dir(os.Args[0]), aliveFile))
	fmt.Fprintf(os.Stderr, "%s%d\n", PIDPrefix, os.Getpid())
	return true
}

// watched is the file descriptor that [WatchParent] reads; 0: none.
var watched int

// Restart begins this process anew, with its arguments: its pid, its output and its parent stay. It returns only with an error.
func Restart() error {
	env := os.Environ()
	if watched > 0 {
		kept, err := syscall.Dup(watched) // watched itself is closed by exec
		if err != nil {
			return fmt.Errorf("keep the parent's pipe: %w", err)
		}
		env = append(env, PipeVariable+"="+strconv.Itoa(kept))
	}
	return fmt.Errorf("begin anew: %w", syscall.Exec(os.Args[0], os.Args, env))
}

// Ready tells the parent that this process is ready.
func Ready() { fmt.Fprintln(os.Stderr, ReadyLine) }

func exitAtEOF(fd int) {
	var b [1]byte
	for {
		n, err := syscall.Read(fd, b[:])
		if n == 0 || (err != nil && !errors.Is(err, syscall.EINTR) && !errors.Is(err, syscall.EAGAIN)) {
			os.Exit(ExitCode)
		}
	}
}

// holdAlive takes the shared lock for the life of the process. If somebody waits for the exclusive lock, the parent has
// died and a new one is about to start: this process came too late.
func holdAlive(file string) {
	fd, err := syscall.Open(file, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return // started by hand
	}
	if err := syscall.Flock(fd, syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		os.Exit(ExitCode)
	}
}
