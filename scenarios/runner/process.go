package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// outputLimit is the number of bytes kept of each of a program's two output streams: half from the beginning, half from
// the end.
const outputLimit = 1 << 20

// output keeps a bounded part of what is written to it.
type output struct {
	mu    sync.Mutex
	head  bytes.Buffer
	tail  []byte // a ring once it is full
	begin int    // start of the ring
	left  int64  // number of bytes left out
}

// Write keeps as much as the limits allow; it never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	if room := outputLimit/2 - o.head.Len(); room > 0 {
		k := min(room, len(p))
		o.head.Write(p[:k])
		p = p[k:]
	}
	if room := outputLimit/2 - len(o.tail); room > 0 {
		k := min(room, len(p))
		o.tail = append(o.tail, p[:k]...)
		p = p[k:]
	}
	o.left += int64(len(p))
	if len(p) > len(o.tail) {
		p = p[len(p)-len(o.tail):]
	}
	for len(p) > 0 {
		k := copy(o.tail[o.begin:], p)
		o.begin = (o.begin + k) % len(o.tail)
		p = p[k:]
	}
	return n, nil
}

// String returns what was kept, with a note where bytes are missing.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b strings.Builder
	b.Write(o.head.Bytes())
	if o.left > 0 {
		fmt.Fprintf(&b, "\n[%d bytes are left out here]\n", o.left)
	}
	b.Write(o.tail[o.begin:])
	b.Write(o.tail[:o.begin])
	return b.String()
}

// program is a program to run.
type program struct {
	path        string
	arguments   []string
	directory   string
	environment []string
}

// lastWords is how long the output of a killed program is still read: a process that left its group may hold it open
// forever.
const lastWords = time.Second

// killedError is the error of a program that was killed because its time was up.
type killedError struct{ error }

// Unwrap returns the error with which the program ended.
func (e killedError) Unwrap() error { return e.error }

func wasKilled(err error) bool {
	_, killed := errors.AsType[killedError](err)
	return killed
}

// run runs a program in its own process group. When ctx ends, the whole group is killed. If processes of the group
// outlive the program, run returns the group; else nil.
func (p program) run(ctx context.Context, g *guard.Guard, stdout, stderr io.Writer) (group *guard.Group, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd := exec.Command(p.path, p.arguments...)
	cmd.Dir, cmd.Env = p.directory, p.environment
	var copied sync.WaitGroup
	pipes := make([]*os.File, 0, 2)
	defer func() {
		for _, r := range pipes {
			_ = r.Close()
		}
	}()
	ends := make([]*os.File, 0, 2)
	for _, to := range []io.Writer{stdout, stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		pipes, ends = append(pipes, r), append(ends, w)
		copied.Go(func() { _, _ = io.Copy(to, r) })
	}
	cmd.Stdout, cmd.Stderr = ends[0], ends[1]
	group, err = g.Start(cmd)
	for _, w := range ends {
		_ = w.Close()
	}
	if err != nil {
		return nil, err
	}
	// The program is over when it has ended and no process holds its output any more, as with a pipe in a shell.
	over := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		copied.Wait()
		over <- err
	}()
	select {
	case err = <-over:
	case <-ctx.Done():
		group.Kill()
		select {
		case err = <-over:
		case <-time.After(lastWords):
			for _, r := range pipes {
				_ = r.SetReadDeadline(time.Now())
			}
			err = <-over
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		return nil, killedError{err}
	}
	if !group.Alive() {
		group = nil
	}
	return group, err
}

// leftovers are the process groups to end with a test: scripts may leave programs running for later steps.
type leftovers struct {
	mu     sync.Mutex
	groups []*guard.Group
}

func (l *leftovers) add(group *guard.Group) {
	if group == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.groups = append(l.groups, group)
}

// end kills the remaining groups.
func (l *leftovers) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, group := range l.groups {
		group.Kill()
	}
	l.groups = nil
}

// lookPath finds a program on a given PATH. A name with a slash is returned as it is.
func lookPath(name, path string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		return name, nil
	}
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "."
		}
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return filepath.Abs(file)
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}
