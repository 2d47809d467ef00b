// Package guard ends the programs of the lab with the process that started them, however that ends, even by SIGKILL or
// a second Ctrl-C. There are two mechanisms, because only some of the programs cooperate.
//
// Programs of this project's binary, such as kube-apiserver, watch their parent. The parent opens a pipe once
// ([OpenPipe]) and keeps the write end; all children inherit the read end, whoever starts them. When the parent ends,
// the kernel closes the write end, and each child reads end-of-file and exits ([WatchParent]). No pids are compared, so
// nothing is missed if the parent dies between fork and exec. A child also tells its pid and when it is ready ([Ready])
// on its standard error, which the parent reads for the log, and holds a lock, so that a later start can wait until all
// earlier programs have ended ([AwaitGone]).
//
// Any other program, such as the user's own in a container, is started by a [Guard]. A small separate process, a shell,
// reads the list of process groups from a pipe. Only this process holds the other end, so the shell notices when this
// process is gone, and kills the groups. On Linux the kernel also kills a program that was started too recently for the
// shell to know it. A process that creates its own session leaves its group and normally survives; with a mark, a guard
// finds it all the same, on Linux, by an environment variable that it inherits.
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

// watchman is the shell's script. It keeps a list of process groups, and kills them when the pipe ends; then it kills
// every process that has the mark in its environment, until no new one appears; then it removes the directory that it
// was given. Signals that a terminal sends to all processes do not end it.
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

// Options are the options of [New].
type Options struct {
	// Temp creates a directory that is removed with this process. It is called once, before the first program. Default:
	// no directory.
	Temp func() (string, error)
	// Mark is the name of an environment variable by which programs and their descendants are found after they left
	// their process group. Default: none; what leaves its group survives.
	Mark string
}

// Guard starts programs. Until the first one it starts neither a thread nor the shell. Its methods may be called from
// any goroutine.
type Guard struct {
	options Options
	begin   func()

	starts chan func()
	closed chan struct{} // no more starts
	done   chan struct{} // closed when the thread that starts programs has ended

	mu sync.Mutex
	// pipe leads to the shell; nil before the first program, and if there is no shell.
	pipe   io.WriteCloser
	shell  *exec.Cmd
	begun  bool
	shut   bool
	mark   string // NAME=value, the prefix of every group's mark
	count  int
	groups map[int]*Group
}

// ErrClosed is returned by Start after Close.
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

// Start starts a program as the leader of its own process group, with the mark in its environment.
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
			p.begun = begun(p.id)
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

// prepare makes sure that the thread which starts programs exists.
func (g *Guard) prepare() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return ErrClosed
	}
	g.begin()
	return nil
}

// markOf returns the mark of a new group.
func (g *Guard) markOf() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mark == "" {
		return ""
	}
	g.count++
	return fmt.Sprintf("%s.%d.", g.mark, g.count) // the dot: no mark is a prefix of another
}

// start starts the thread that starts programs, and the shell. On Linux programs die with the thread that started them,
// so it must be a thread that stays.
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
		temp, _ = g.options.Temp() // programs that need it are told that there is none
	}
	g.shell = exec.Command("sh", "-c", watchman, "guard", temp, g.mark)
	g.shell.Env = []string{"PATH=" + os.Getenv("PATH")} // without a mark: the shell is not one of the programs
	g.shell.Dir = "/"
	g.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := g.shell.StdinPipe()
	if err == nil && g.shell.Start() == nil {
		g.pipe = pipe
	}
}

// add adds a group to the shell's list.
func (g *Guard) add(p *Group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.groups[p.id] = p
	g.tell('+', p.id)
}

// forget removes a group from the shell's list, so that the shell does not kill another group that gets the same
// number.
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
		_, _ = fmt.Fprintf(g.pipe, "%c %d\n", change, group) // if the shell was killed, nothing can be done
	}
}

// known reports whether a group is still on the list.
func (g *Guard) known(p *Group) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.groups[p.id] == p
}

// Close kills the remaining groups and ends the shell. After it nothing can be started.
func (g *Guard) Close() {
	g.mu.Lock()
	begun, shut := g.begun, g.shut
	g.shut = true
	g.mu.Unlock()
	if !begun || shut {
		return
	}
	close(g.closed)
	<-g.done // a program that is being started has joined the groups then
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

// Group is a program with all processes of its process group.
type Group struct {
	guard *Guard
	id    int
	mark  string
	// begun says when the program began, as the kernel does; empty: it does not say.
	begun string
}

// ID returns the number of the process group, which is the program's pid.
func (p *Group) ID() int { return p.id }

// Signal sends a signal to all of the process group. If that is gone, it does nothing.
func (p *Group) Signal(s syscall.Signal) {
	if p.ours() {
		_ = syscall.Kill(-p.id, s)
	}
}

// ours reports whether the group may still be the program's: it is on the list, and its number was not given away. If it
// was, the group is forgotten.
func (p *Group) ours() bool {
	if p.givenAway() {
		p.guard.forget(p)
	}
	return p.guard.known(p)
}

// givenAway reports whether another program has the group's number. The kernel does not give the number of a group that has
// a process to a new one, so a program of that pid that began at another time says that the group is gone.
func (p *Group) givenAway() bool {
	now := begun(p.id)
	return now != "" && now != p.begun
}

// Alive reports whether a process of the group is alive; if not, the group is forgotten.
func (p *Group) Alive() bool {
	if p.ours() && alive(p.id) {
		return true
	}
	p.guard.forget(p)
	return false
}

// Kill kills the process group, and processes that left it but have its mark.
func (p *Group) Kill() {
	p.kill()
	p.guard.forget(p)
}

func (p *Group) kill() (found bool) {
	p.Signal(syscall.SIGKILL)
	return p.mark != "" && killMarked(p.mark)
}

// End kills as Kill does, and returns when no process of the group is alive any more. It waits at most for patience for
// a process that the kernel does not end, such as one that waits for a file server.
func (p *Group) End(patience time.Duration) {
	defer p.guard.forget(p)
	over := time.After(patience)
	for pause := time.Millisecond; p.kill() || !p.givenAway() && alive(p.id); pause = min(2*pause, 50*time.Millisecond) {
		select {
		case <-over:
			return
		case <-time.After(pause):
		}
	}
}

// Process is a process of this machine, as the system reports it; its state is a letter of ps.
type Process struct {
	PID, Parent, Group int
	State              byte
}

// Dead reports whether it has ended, and nobody has asked for its exit code yet.
func (p Process) Dead() bool { return p.State == 'Z' || p.State == 'X' }

// alive reports whether a process of a group is alive. Zombies do not count.
func alive(group int) bool {
	return syscall.Kill(-group, 0) == nil && !buried(group)
}

// bears reports whether an environment in the form of /proc contains a mark.
func bears(environment []byte, mark string) bool {
	return strings.Contains("\x00"+string(environment), "\x00"+mark)
}
