package shell

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"

	"github.com/operator-lab/operator-lab/sandbox/node/rootfs"
)

// process is the environment in which a tool runs.
type process struct {
	container *Container
	ctx       context.Context //nolint:containedctx // a process is as long as its context
	// environment is exported to it.
	environment map[string]string
	dir         string
	// depth is the number of shells around it.
	depth int
}

// child returns a copy of the process that can be changed independently.
func (p *process) child(ctx context.Context) *process {
	c := *p
	c.ctx, c.environment = ctx, maps.Clone(p.environment)
	return &c
}

// list returns the environment, sorted.
func (p *process) list() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(p.environment)) {
		all = append(all, name+"="+p.environment[name])
	}
	return all
}

// path makes a path absolute.
func (p *process) path(name string) string { return absolute(p.dir, name) }

func absolute(dir, name string) string {
	if path.IsAbs(name) {
		return rootfs.Clean(name)
	}
	return path.Join(dir, name)
}

// codeKilled is the exit code of a command that ended with its context.
const codeKilled = 137

// execute runs a tool.
func (p *process) execute(argv []string, io streams) int {
	if p.ctx.Err() != nil {
		return codeKilled
	}
	run, ok := p.container.find(argv[0])
	if !ok {
		fmt.Fprintf(io.err, "sh: %s: not found\n", argv[0])
		return CodeNotFound
	}
	return run(p, argv, io)
}

// patient is a reader that ends with a context. Its waiting goroutine stays until there is something to read.
type patient struct {
	ctx    context.Context //nolint:containedctx // it is that of one command
	in     io.Reader
	result chan chunk // of the read under way; nil: none is
	rest   chunk
}

func interruptible(ctx context.Context, in io.Reader) *patient { return &patient{ctx: ctx, in: in} }

type chunk struct {
	text []byte
	err  error
}

// Read implements [io.Reader].
func (r *patient) Read(p []byte) (int, error) {
	if len(r.rest.text) == 0 && r.rest.err == nil {
		if err := r.wait(min(len(p), 32<<10)); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest.text)
	r.rest.text = r.rest.text[n:]
	if len(r.rest.text) > 0 {
		return n, nil
	}
	return n, r.rest.err
}

func (r *patient) wait(size int) error {
	if r.result == nil {
		result := make(chan chunk, 1)
		r.result = result
		go func() {
			buffer := make([]byte, size)
			n, err := r.in.Read(buffer)
			result <- chunk{buffer[:n], err}
		}()
	}
	select {
	case r.rest = <-r.result:
		r.result = nil
		return nil
	case <-r.ctx.Done():
		return io.EOF
	}
}
