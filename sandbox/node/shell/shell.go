// Package shell takes the place of the files in an image's /bin: it is a small shell with commands that see the
// container's files and the cluster's network. The commands are not processes: they end with their context.
//
// The shell is that of mvdan.cc/sh, without anything that would reach this machine. It refuses unsupported features by
// name instead of doing something else.
package shell

import (
	"context"
	"io"
	"net"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/operator-lab/operator-lab/sandbox/node/rootfs"
)

// Container is the container that commands run in: what they can reach.
type Container struct {
	// Files of the container.
	Files *rootfs.View
	// Dial connects to pods, Services, nodes and hosts outside.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Lookup finds the addresses of a name in the cluster; nil: names cannot be looked up.
	Lookup func(ctx context.Context, name string) ([]string, error)
	// Env is the environment, KEY=value.
	Env []string
	// Dir is the working directory; empty: /.
	Dir string
	// Hostname of the pod, and its address.
	Hostname, IP string
	// UID and GID are the user and the group as which the container seems to run.
	UID, GID int64
	// Signal sends a signal to the container's program, which is process 1.
	Signal func(syscall.Signal)
	// Foreground is set if a shell runs on a terminal. It makes the shell prompt, and is called with the function that
	// Ctrl-C calls; nil: nothing runs in the foreground.
	Foreground func(interrupt context.CancelFunc)
	// Program is the name of process 1.
	Program string
	// Stdout and Stderr are the outputs of process 1.
	Stdout, Stderr io.Writer
	// Commands are the image's commands besides the built-in ones; may be nil.
	Commands Commands
}

// Commands are programs of an image.
type Commands interface {
	// Has reports whether the image has a command of the name, such as etcdctl.
	Has(name string) bool
	// Run runs a command in an environment (KEY=value) and a directory of the container. It ends early with ctx.
	Run(ctx context.Context, argv, environment []string, dir string, stdin io.Reader, stdout, stderr io.Writer) int
}

// streams of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Exit codes of commands that could not be run.
const (
	CodeNotExecutable = 126
	CodeNotFound      = 127
)

// Has reports whether there is a command of the name, such as sh or /bin/sh.
func (w *Container) Has(name string) bool {
	_, ok := w.find(name)
	return ok
}

// directories are the directories in which commands seem to be.
var directories = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"}

func (w *Container) find(name string) (tool, bool) {
	if strings.Contains(name, "/") {
		if !slices.Contains(directories, path.Dir(name)) {
			return nil, false
		}
		name = path.Base(name)
	}
	if w.Commands != nil && w.Commands.Has(name) {
		return ofImage, true
	}
	t, ok := tools()[name]
	return t, ok
}

// ofImage runs a program of the image.
func ofImage(p *process, argv []string, s streams) int {
	code := p.container.Commands.Run(p.ctx, argv, p.list(), p.dir, s.in, s.out, s.err)
	if p.ctx.Err() != nil {
		return codeKilled
	}
	return code
}

// Run runs a command and returns its exit code. Stdin may be nil.
func (w *Container) Run(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	return w.process(ctx).execute(argv, streams{interruptible(ctx, stdin), stdout, stderr})
}

func (w *Container) process(ctx context.Context) *process {
	p := &process{container: w, ctx: ctx, environment: map[string]string{}, dir: "/"}
	for _, e := range w.Env {
		key, value, _ := strings.Cut(e, "=")
		p.environment[key] = value
	}
	if w.Dir != "" {
		p.dir = rootfs.Clean(w.Dir)
	}
	return p
}
