package images

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/guard"
	"github.com/operator-lab/operator-lab/sandbox/pipe"
)

// process is a command of this machine that stands for an image.
type process struct {
	guard   *guard.Guard
	command []string
	args    []string
	env     []variable
	dir     string
	files   files
	// seen is the operator that the program is; nil: it is none, and no lab is told.
	seen *Life
}

// File implements [Program].
func (p process) File(path string) (string, bool) { return p.files.content(path) }

// Start implements [Program].
func (p process) Start(c *Container) (Running, error) {
	if conn := p.seen.call(c); conn != nil {
		return beginSeen(c, conn, p.start), nil
	}
	return p.start(c, nil)
}

// start starts the program with more variables, of the form NAME=value.
func (p process) start(c *Container, more []string) (Running, error) {
	env, err := processEnvironment(c)
	if err != nil {
		return nil, err
	}
	root, err := plant(c, p.files)
	if err != nil {
		return nil, err
	}
	env.set("LAB_ROOT", root)
	env.add(c, p.env)
	if _, err := writeKubeconfig(c); err != nil && !errors.Is(err, errNoToken) && !errors.Is(err, errNoServer) {
		return nil, err
	}
	argv := expandAll(append(slices.Clip(p.command), p.args...), env.known(c))
	if len(c.Args) > 0 { // those have been expanded
		argv = append(argv[:len(p.command)], c.Args...)
	}
	file, err := lookPath(argv[0], env.get("PATH"))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(p.dir); err != nil { // otherwise the error would name the command
		return nil, fmt.Errorf("workingDir: %w", err)
	}
	if len(c.Command) > 0 {
		fmt.Fprintf(c.Stderr, "operator-lab: the pod's command %q is a file of the real image; %q of this machine runs instead\n",
			c.Command[0], p.command[0])
	}
	return spawn(p.guard, c, &exec.Cmd{Path: file, Args: argv, Dir: p.dir, Env: append(env.list(), more...)})
}

// lookPath finds a program on a PATH, and complains as a container runtime does.
func lookPath(name, path string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		return name, executable(name, name)
	}
	for _, dir := range filepath.SplitList(path) {
		// Neither is an entry that depends on the working directory of the node.
		if file := filepath.Join(dir, name); filepath.IsAbs(file) && executable(name, file) == nil {
			return file, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// executable is nil for a file that can be run.
func executable(name, file string) error {
	switch info, err := os.Stat(file); {
	case err != nil:
		return &exec.Error{Name: name, Err: err}
	case info.IsDir():
		return &exec.Error{Name: name, Err: syscall.EISDIR}
	case info.Mode()&0o111 == 0:
		return &exec.Error{Name: name, Err: os.ErrPermission}
	}
	return nil
}

// plant makes a directory in which a process finds files by the paths that they have in the container: those of the
// image, and links to the volumes.
func plant(c *Container, own files) (root string, err error) {
	root = filepath.Join(c.Dir, "root")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", err
	}
	mounts := slices.Clone(c.Mounts)
	slices.SortFunc(mounts, func(a, b Mount) int {
		return len(filepath.Clean(a.ContainerPath)) - len(filepath.Clean(b.ContainerPath))
	})
	var planted []string
	for _, m := range mounts {
		at := filepath.Clean("/" + m.ContainerPath)
		// What is mounted inside of another volume cannot be shown: it would be made in that volume.
		if at == "/" || slices.ContainsFunc(planted, func(p string) bool { return strings.HasPrefix(at+"/", p+"/") }) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, at)), 0o700); err != nil {
			return "", err
		}
		if err := os.Symlink(m.HostPath, filepath.Join(root, at)); err != nil {
			return "", err
		}
		planted = append(planted, at)
	}
	for name, text := range own {
		// A volume hides the image's files below it.
		if slices.ContainsFunc(planted, func(p string) bool {
			return strings.HasPrefix(name+"/", p+"/") || strings.HasPrefix(p+"/", name+"/")
		}) {
			continue
		}
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return root, nil
}

// running is a process at work.
type running struct {
	group *guard.Group
	pipes []*pipe.Pipe // what it prints to
	done  chan struct{}
	code  int
}

// spawn starts a process for a container.
func spawn(g *guard.Guard, c *Container, cmd *exec.Cmd) (Running, error) {
	r := &running{done: make(chan struct{})}
	var theirs []*os.File
	var stdin *os.File
	closeAll := func() {
		for _, p := range r.pipes {
			p.Close()
		}
		_ = stdin.Close() // nil: there is none
	}
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
	}()
	for _, to := range []struct {
		writer io.Writer
		end    *io.Writer
	}{{c.Stdout, &cmd.Stdout}, {c.Stderr, &cmd.Stderr}} {
		p, err := pipe.New(func(printed []byte) { _, _ = to.writer.Write(printed) })
		if err != nil {
			closeAll()
			return nil, err
		}
		r.pipes, theirs, *to.end = append(r.pipes, p), append(theirs, p.Into), p.Into
	}
	if c.Stdin != nil {
		end, writer, err := os.Pipe()
		if err != nil {
			closeAll()
			return nil, err
		}
		theirs, cmd.Stdin, stdin = append(theirs, end), end, writer
		go func() { // nobody waits for it: the client may never write
			_, _ = io.Copy(writer, c.Stdin)
			_ = writer.Close()
		}()
	}
	group, err := g.Start(cmd)
	if err != nil {
		closeAll()
		return nil, err
	}
	r.group = group
	var followed sync.WaitGroup
	for _, p := range r.pipes {
		followed.Go(p.Follow)
	}
	go func() {
		defer close(r.done)
		_ = cmd.Wait() // the state has the outcome
		r.code = exitCode(cmd.ProcessState)
		// As in a container, nothing outlives the first process.
		r.group.End(lastPatience)
		r.lastWords(&followed)
		closeAll()
	}()
	return r, nil
}

const (
	// lastPatience is the time to wait for the end of killed processes.
	lastPatience = 5 * time.Second
	// lastRead is the time to go on reading a log after its writers have ended, in case one has escaped.
	lastRead = time.Second
)

// lastWords waits until all output has been taken.
func (r *running) lastWords(followed *sync.WaitGroup) {
	all := make(chan struct{})
	go func() {
		followed.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-time.After(lastRead):
		for _, p := range r.pipes {
			p.Stop()
		}
		<-all
	}
}

// drain returns when all is in the log that the process had printed when it was called.
func (r *running) drain() {
	for _, p := range r.pipes {
		p.Drain()
	}
}

// exitCode returns the exit code of a process, as a container has it.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return killed(status.Signal())
	}
	return state.ExitCode()
}

// processes implements measurable.
func (r *running) processes() (group int, begun bool) { return r.group.ID(), true }

// Signal implements [Running].
func (r *running) Signal(s syscall.Signal) {
	if s == syscall.SIGKILL {
		r.group.Kill()
		return
	}
	r.group.Signal(s)
}

// Done implements [Running].
func (r *running) Done() <-chan struct{} { return r.done }

// Code implements [Running].
func (r *running) Code() int { return r.code }
