// Package guard starts programs that end with this process, however it ends: SIGKILL and a second Ctrl-C included.
//
// A small process of its own, a shell, reads from a pipe which process groups there are. Only this process holds the
// other end, so the kernel tells the shell when it is gone. A program that was started only just before, and that the
// shell does not know of yet, is killed by the kernel where it does that (Linux).
//
// A process that makes a session of its own leaves its group, and is meant to stay. A guard with a mark finds it
// nevertheless, on Linux, by an environment variable that it inherits.
package guard

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// watchman is what the shell runs. It keeps a list of process groups, and kills them when nobody is left who could change
// it; then whatever has the mark in its environment, again until nothing new has come; then it removes the directory
// that it is given. Signals that a terminal sends to everybody do not end it.
const watchman = `trap '' HUP INT TERM QUIT
all=' '
while read -r change group; do
	case $change in
	'+') all="$all$group " ;;
	'-') all="${all%%" $group "*} ${all#*" $group "}" ;;
	esac
done
for group in $all; do kill -s KILL -- "-$group"; done
if [ -n "$2" ]; then
	killed=' '
	found=yes
	while [ -n "$found" ]; do
		found=
		for file in $(grep -ls -F -- "$2" /proc/[0-9]*/environ); do
			pid=${file#/proc/}
			pid=${pid%/environ}
			case $killed in
			*" $pid "*) ;;
			*) kill -s KILL -- "$pid" && killed="$killed$pid " && found=yes ;;
			esac
		done
	done
fi
[ -z "$1" ] || rm -rf -- "$1"`

// Options set up a guard.
type Options struct {
	// Temp makes a directory that goes with this process too. It is asked once, before the first program; nil: there is
	// none.
	Temp func() (string, error)
	// Mark is the name of an environment variable by which programs and all that they start are found when they have
	// left their process group. The default is none: what leaves its group stays.
	Mark string
}

// Guard starts programs. It costs nothing until there is one. Its methods may be called from any goroutine.
type Guard struct {
	options Options
	begin   func()

	starts chan func()
	closed chan struct{} // no more starts
	done   chan struct{} // the thread that starts programs has ended

	mu sync.Mutex
	// pipe to the shell; nil before the first program, and where there is no shell.
	pipe   io.WriteCloser
	shell  *exec.Cmd
	begun  bool
	shut   bool
	mark   string // NAME=value, which is the beginning of that of every group
	count  int
	groups map[int]*Group
}

// ErrClosed is the error of a guard that is closed.
var ErrClosed = errors.New("nothing is started any more")

// New returns a guard.
func New(o Options) *Guard {
	g := &Guard{
		options: o,
		starts:  make(chan func()), closed: make(chan struct{}), done: make(chan struct{}),
		groups: map[int]*Group{},
	}
	if o.Mark != "" {
		g.mark = o.Mark + "=" + rand.Text()
	}
	g.begin = sync.OnceFunc(g.start)
	return g
}

// Start starts a program as the leader of a process group of its own. Its environment gets the mark.
func (g *Guard) Start(cmd *exec.Cmd) (*Group, error) {
	if err := g.prepare(); err != nil {
		return nil, err
	}
	p := &Group{guard: g, mark: g.markOf()}
	if p.mark != "" {
		cmd.Env = append(cmd.Environ(), p.mark)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithThread(cmd.SysProcAttr)
	started := make(chan error, 1)
	start := func() {
		err := cmd.Start()
		if err == nil {
			p.id = cmd.Process.Pid
			g.add(p)
		}
		started <- err
	}
	select {
	case g.starts <- start:
	case <-g.closed:
		return nil, ErrClosed
	}
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// prepare sees to it that there is somebody to start programs.
func (g *Guard) prepare() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return ErrClosed
	}
	g.begin()
	return nil
}

// markOf is the mark of a new group.
func (g *Guard) markOf() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mark == "" {
		return ""
	}
	g.count++
	return fmt.Sprintf("%s.%d.", g.mark, g.count) // the dot: no mark is the beginning of another
}

// start makes the thread that starts programs: on Linux they die with the thread that started them, so it must be one
// that stays. It also starts the shell.
func (g *Guard) start() {
	g.begun = true
	go func() {
		defer close(g.done)
		runtime.LockOSThread() // the thread ends with this function
		for {
			select {
			case start := <-g.starts:
				start()
			case <-g.closed:
				return
			}
		}
	}()
	temp := ""
	if g.options.Temp != nil {
		temp, _ = g.options.Temp() // who needs it is told that there is none
	}
	g.shell = exec.Command("sh", "-c", watchman, "guard", temp, g.mark)
	g.shell.Env = []string{"PATH=" + os.Getenv("PATH")} // nothing by which somebody could take it for one of the programs
	g.shell.Dir = "/"
	g.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := g.shell.StdinPipe()
	if err == nil && g.shell.Start() == nil {
		g.pipe = pipe
	}
}

// add tells the shell of a new group.
func (g *Guard) add(p *Group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.groups[p.id] = p
	g.tell('+', p.id)
}

// forget tells the shell that a group is gone, so that it kills nothing that has got the same number.
func (g *Guard) forget(p *Group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.groups[p.id] != p {
		return
	}
	delete(g.groups, p.id)
	g.tell('-', p.id)
}

func (g *Guard) tell(change rune, group int) {
	if g.pipe != nil {
		_, _ = fmt.Fprintf(g.pipe, "%c %d\n", change, group) // a shell that was killed can do nothing for us
	}
}

// known reports whether a group is not forgotten.
func (g *Guard) known(p *Group) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.groups[p.id] == p
}

// Close kills what is left and ends the shell. After it nothing can be started.
func (g *Guard) Close() {
	g.mu.Lock()
	begun, shut := g.begun, g.shut
	g.shut = true
	g.mu.Unlock()
	if !begun || shut {
		return
	}
	close(g.closed)
	<-g.done // whatever is being started is among the groups now
	g.mu.Lock()
	left := make([]*Group, 0, len(g.groups))
	for _, p := range g.groups {
		left = append(left, p)
	}
	g.mu.Unlock()
	for _, p := range left {
		p.Kill()
	}
	if g.mark != "" {
		killMarked(g.mark)
	}
	if g.pipe != nil {
		_ = g.pipe.Close()
		_ = g.shell.Wait()
	}
}

// Group is a program and all that it has started.
type Group struct {
	guard *Guard
	id    int
	mark  string
}

// ID of the process group, which is that of the program.
func (p *Group) ID() int { return p.id }

// Signal sends a signal to all of the process group. To one that is gone it does nothing.
func (p *Group) Signal(s syscall.Signal) {
	if p.guard.known(p) {
		_ = syscall.Kill(-p.id, s)
	}
}

// Alive reports whether something of the process group is alive; if not, it is forgotten.
func (p *Group) Alive() bool {
	if !p.guard.known(p) {
		return false
	}
	if alive(p.id) {
		return true
	}
	p.guard.forget(p)
	return false
}

// Kill kills the process group, and what has left it but has its mark.
func (p *Group) Kill() {
	p.kill()
	p.guard.forget(p)
}

func (p *Group) kill() (found bool) {
	p.Signal(syscall.SIGKILL)
	return p.mark != "" && killMarked(p.mark)
}

// End kills as Kill does, and returns when nothing of it is alive any more. What the kernel does not let go, such as a
// process that waits for a file server, it waits for that long at most.
func (p *Group) End(patience time.Duration) {
	defer p.guard.forget(p)
	over := time.After(patience)
	for pause := time.Millisecond; p.kill() || alive(p.id); pause = min(2*pause, 50*time.Millisecond) {
		select {
		case <-over:
			return
		case <-time.After(pause):
		}
	}
}

// alive reports whether something of a process group is alive. One that is dead and that nobody has asked for yet is not.
func alive(group int) bool {
	return syscall.Kill(-group, 0) == nil && !buried(group)
}

// bears reports whether an environment, as the kernel shows it, has a mark.
func bears(environment []byte, mark string) bool {
	return strings.Contains("\x00"+string(environment), "\x00"+mark)
}
