// Package shell is what containers of a simulated node have instead of the files in an image's /bin: a small shell, and
// commands that look at the container's files and at the cluster's network. They are not processes: they end with their
// context.
//
// The shell is that of mvdan.cc/sh, without all that would reach this machine. What is left out it refuses by name, instead
// of doing something else.
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

// World is where commands run: a container.
type World struct {
	// Files of the container.
	Files *rootfs.View
	// Dial connects to pods, Services, nodes and the world outside.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Lookup finds the addresses of a name in the cluster; nil: names cannot be looked up.
	Lookup func(ctx context.Context, name string) ([]string, error)
	// Env is the environment, KEY=value.
	Env []string
	// Dir is the working directory; empty: /.
	Dir string
	// Hostname of the pod, and its address.
	Hostname, IP string
	// UID and GID are those the container is said to run as.
	UID, GID int64
	// Signal sends a signal to the container's program, which is process 1.
	Signal func(syscall.Signal)
	// Foreground is there if somebody is at the terminal of a shell which is run: it prompts them, and says what Ctrl-C
	// ends; nil: nothing.
	Foreground func(interrupt context.CancelFunc)
	// Program is what process 1 is called.
	Program string
	// Stdout and Stderr are those of process 1.
	Stdout, Stderr io.Writer
	// Commands are those of the image, beside the ones that are built in; nil: there are none.
	Commands Commands
}

// Commands are programs of an image.
type Commands interface {
	// Has reports whether there is one of the name: etcdctl.
	Has(name string) bool
	// Run runs one, in an environment (KEY=value) and a directory of the container. It ends early with ctx.
	Run(ctx context.Context, argv, environment []string, dir string, stdin io.Reader, stdout, stderr io.Writer) int
}

// streams of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Codes of commands that never were one.
const (
	CodeNotExecutable = 126
	CodeNotFound      = 127
)

// Has reports whether there is a command of the name: sh, or /bin/sh.
func (w *World) Has(name string) bool {
	_, ok := w.find(name)
	return ok
}

// directories that commands are said to be in.
var directories = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"}

func (w *World) find(name string) (tool, bool) {
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
	code := p.world.Commands.Run(p.ctx, argv, p.list(), p.dir, s.in, s.out, s.err)
	if p.ctx.Err() != nil {
		return codeKilled
	}
	return code
}

// Run runs a command and returns its exit code. Stdin may be nil.
func (w *World) Run(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	return w.process(ctx).execute(argv, streams{interruptible(ctx, stdin), stdout, stderr})
}

func (w *World) process(ctx context.Context) *process {
	p := &process{world: w, ctx: ctx, environment: map[string]string{}, dir: "/"}
	for _, e := range w.Env {
		key, value, _ := strings.Cut(e, "=")
		p.environment[key] = value
	}
	if w.Dir != "" {
		p.dir = rootfs.Clean(w.Dir)
	}
	return p
}
