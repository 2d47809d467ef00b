package runner

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
)

// watchman is what the guard runs. It keeps a list of process groups, and kills them when nobody is left who could
// change it; then it removes the directory that it is given. Signals that a terminal sends to everybody do not end it.
const watchman = `trap '' HUP INT TERM QUIT
all=' '
while read -r change group; do
	case $change in
	'+') all="$all$group " ;;
	'-') all="${all%%" $group "*} ${all#*" $group "}" ;;
	esac
done
for group in $all; do kill -s KILL -- "-$group"; done
rm -rf -- "$1"`

// guard starts programs and kills them when this process ends, however it does: SIGKILL and a second Ctrl-C included.
//
// A small process of its own, a shell, reads from a pipe which process groups there are. Only we hold the other end, so
// the kernel tells it when we are gone. A program that was started only just before, and that the shell does not know
// of yet, is killed by the kernel where it does that (Linux). What has made a session of its own is meant to stay.
type guard struct {
	// temp makes a directory that goes with us too.
	temp func() (string, error)

	mu sync.Mutex
	// pipe to the shell; nil before the first program, and where there is no shell.
	pipe   io.WriteCloser
	shell  *exec.Cmd
	begun  bool
	groups []int
	starts chan func()
}

// start starts a program as the leader of a process group, and returns its id.
func (g *guard) start(cmd *exec.Cmd) (group int, err error) {
	g.begin()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithThread(cmd.SysProcAttr)
	started := make(chan error, 1)
	g.starts <- func() {
		err := cmd.Start()
		if err == nil {
			g.tell('+', cmd.Process.Pid)
		}
		started <- err
	}
	if err := <-started; err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// begin makes the thread that starts programs: on Linux they die with the thread that started them, so it must be one
// that stays. It also starts the shell.
func (g *guard) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.begun {
		return
	}
	g.begun = true
	g.starts = make(chan func())
	go func(starts chan func()) {
		runtime.LockOSThread() // the thread ends with this function
		for start := range starts {
			start()
		}
	}(g.starts)
	temp, _ := g.temp() // who needs it is told that there is none
	g.shell = exec.Command("sh", "-c", watchman, "guard", temp)
	g.shell.Env = []string{"PATH=" + os.Getenv("PATH")} // nothing by which somebody could take it for one of the programs
	g.shell.Dir = "/"
	g.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := g.shell.StdinPipe()
	if err == nil && g.shell.Start() == nil {
		g.pipe = pipe
	}
}

// tell tells the shell of a change.
func (g *guard) tell(change rune, group int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.groups, group)
	switch {
	case change == '+':
		g.groups = append(g.groups, group)
	case i < 0:
		return
	default:
		g.groups = slices.Delete(g.groups, i, i+1)
	}
	if g.pipe != nil {
		_, _ = fmt.Fprintf(g.pipe, "%c %d\n", change, group) // a shell that was killed can do nothing for us
	}
}

// alive reports whether something of a group is alive; if not, it is forgotten.
func (g *guard) alive(group int) bool {
	if syscall.Kill(-group, 0) == nil {
		return true
	}
	g.tell('-', group)
	return false
}

// kill kills a group.
func (g *guard) kill(group int) {
	_ = syscall.Kill(-group, syscall.SIGKILL)
	g.tell('-', group)
}

// close kills what is left, and ends the shell.
func (g *guard) close() {
	g.mu.Lock()
	begun, left := g.begun, slices.Clone(g.groups)
	g.mu.Unlock()
	if !begun {
		return
	}
	for _, group := range left {
		g.kill(group)
	}
	close(g.starts)
	if g.pipe != nil {
		_ = g.pipe.Close()
		_ = g.shell.Wait()
	}
}
