package images

import (
	"fmt"
	"os/exec"
	"slices"
	"syscall"
)

// tools is an image of small commands, such as busybox: those that are built in.
type tools struct {
	// entrypoint that the pod's command takes the place of, and command that its arguments do.
	entrypoint, command []string
	files               files
}

// Start implements [Program].
func (i tools) Start(c *Container) (Running, error) {
	argv := c.Command
	if len(argv) == 0 {
		argv = i.entrypoint
	}
	if len(argv) == 0 && len(c.Args) == 0 {
		argv = i.command
	}
	if r := shell(c, argv); r != nil {
		return r, nil
	}
	if len(argv) == 0 {
		argv = c.Args
	}
	if len(argv) == 0 {
		return nil, fmt.Errorf("%s: no command specified", c.Image)
	}
	return nil, &exec.Error{Name: argv[0], Err: exec.ErrNotFound}
}

// File implements [Program].
func (i tools) File(name string) (string, bool) { return i.files.content(name) }

// shell runs a command with the pod's arguments if it is built in; otherwise it returns nil.
//
// The command is the first process of its container, to which the kernel delivers only signals that it handles. So only
// SIGKILL ends it, like a real 'sleep' there.
func shell(c *Container, command []string) Running {
	argv := slices.Concat(command, c.Args)
	if len(argv) == 0 || c.Shell == nil || !c.Shell.Has(argv[0]) {
		return nil
	}
	return begin(func(t *task) int {
		if code := c.Shell.Run(t.life, argv, c.Stdin, c.Stdout, c.Stderr); t.life.Err() == nil {
			return code
		}
		return killed(syscall.SIGKILL)
	})
}
