package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/operator-lab/operator-lab/sandbox/node/rootfs"
)

// process is a shell at work, or what a command is given of one.
type process struct {
	world     *World
	ctx       context.Context //nolint:containedctx // a process is as long as its context
	variables map[string]string
	exported  map[string]bool
	dir       string
	name      string
	arguments []string
	// status of the last command.
	status int
	// strict: a command that fails ends the shell (set -e).
	strict bool
	// tested is more than 0 where a command may fail nevertheless: in the test of an if.
	tested int
	// ended: the shell is to end.
	ended bool
	// leave and next are how many loops are to be ended, or gone on with.
	leave, next int
	loops       int
}

// child is a process that has everything of this one, and changes nothing of it.
func (p *process) child(ctx context.Context) *process {
	c := *p
	c.ctx = ctx
	c.variables, c.exported = maps.Clone(p.variables), maps.Clone(p.exported)
	return &c
}

// interrupted: commands that follow are not run.
func (p *process) interrupted() bool {
	return p.ended || p.leave > 0 || p.next > 0 || p.ctx.Err() != nil
}

func (p *process) environment() []string {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(p.exported)) {
		if value, ok := p.variables[name]; ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// path makes a path absolute.
func (p *process) path(name string) string {
	if path.IsAbs(name) {
		return rootfs.Clean(name)
	}
	return path.Join(p.dir, name)
}

// codeKilled is that of what ended with its context.
const codeKilled = 137

func (s sequence) run(p *process, io streams) int {
	for _, c := range s {
		if p.interrupted() {
			break
		}
		p.status = c.run(p, io)
		if p.strict && p.tested == 0 && p.status != 0 && !tolerant(c) {
			p.ended = true
		}
	}
	if p.ctx.Err() != nil {
		return codeKilled
	}
	return p.status
}

// tolerant commands have had their failure looked at.
func tolerant(c command) bool {
	switch c := c.(type) {
	case either, both:
		return true
	case pipeline:
		return c.not
	}
	return false
}

func (p *process) test(c command, io streams) int {
	p.tested++
	defer func() { p.tested-- }()
	p.status = c.run(p, io)
	return p.status
}

func (e either) run(p *process, io streams) int {
	if code := p.test(e.first, io); code == 0 || p.interrupted() {
		return code
	}
	return e.second.run(p, io)
}

func (b both) run(p *process, io streams) int {
	if code := p.test(b.first, io); code != 0 || p.interrupted() {
		return code
	}
	return b.second.run(p, io)
}

func (l pipeline) run(p *process, io streams) int {
	code := l.pipe(p, io)
	if !l.not {
		return code
	}
	if code == 0 {
		return 1
	}
	return 0
}

// pipe runs all commands at once. One that writes to a command which has ended ends, too.
func (l pipeline) pipe(p *process, s streams) int {
	if len(l.commands) == 1 {
		return p.test(l.commands[0], s)
	}
	codes := make([]int, len(l.commands))
	var all sync.WaitGroup
	in := s.in
	var before *io.PipeReader
	for i, c := range l.commands {
		ctx, cancel := context.WithCancel(p.ctx)
		stage := streams{in, s.out, s.err}
		reads := before
		var writes *io.PipeWriter
		if i < len(l.commands)-1 {
			before, writes = io.Pipe()
			in, stage.out = before, &ending{writes, cancel}
		}
		all.Go(func() {
			defer cancel()
			codes[i] = c.run(p.child(ctx), stage)
			if writes != nil {
				_ = writes.Close()
			}
			if reads != nil {
				_ = reads.Close()
			}
		})
	}
	all.Wait()
	return codes[len(codes)-1]
}

// ending ends the writer's process when nobody reads any more.
type ending struct {
	io.Writer
	cancel context.CancelFunc
}

func (e *ending) Write(b []byte) (int, error) {
	n, err := e.Writer.Write(b)
	if err != nil {
		e.cancel()
	}
	return n, err
}

func (g group) run(p *process, io streams) int {
	inner := p
	if g.subshell {
		inner = p.child(p.ctx)
	}
	io, undo, err := p.redirect(g.redirections, io)
	defer undo()
	if err != nil {
		return p.complain(io, err)
	}
	return g.body.run(inner, io)
}

func (c conditional) run(p *process, io streams) int {
	switch {
	case p.test(c.test, io) == 0 && !p.interrupted():
		return c.then.run(p, io)
	case p.interrupted():
		return p.status
	case c.otherwise != nil:
		return c.otherwise.run(p, io)
	}
	return 0
}

func (l loop) run(p *process, io streams) int {
	p.loops++
	defer func() { p.loops-- }()
	code := 0
	for p.ctx.Err() == nil && !p.ended {
		if (p.test(l.test, io) == 0) == l.until || p.interrupted() {
			break
		}
		code = l.body.run(p, io)
		if p.loopEnds() {
			break
		}
	}
	return code
}

func (f iteration) run(p *process, io streams) int {
	words := p.arguments
	if !f.arguments {
		var err error
		if words, err = p.fields(f.words, io); err != nil {
			return p.complain(io, err)
		}
	}
	p.loops++
	defer func() { p.loops-- }()
	code := 0
	for _, w := range words {
		if p.interrupted() {
			break
		}
		p.variables[f.name] = w
		code = f.body.run(p, io)
		if p.loopEnds() {
			break
		}
	}
	return code
}

// loopEnds takes one of the breaks and continues that were asked for.
func (p *process) loopEnds() bool {
	if p.leave > 0 {
		p.leave--
		return true
	}
	if p.next > 0 {
		p.next--
		return p.next > 0
	}
	return false
}

func (c simple) run(p *process, io streams) int {
	argv, err := p.fields(c.words, io)
	if err != nil {
		return p.complain(io, err)
	}
	io, undo, err := p.redirect(c.redirections, io)
	defer undo()
	if err != nil {
		return p.complain(io, err)
	}
	if len(argv) == 0 {
		p.status = 0
		if err := p.assign(c.assignments, io, false); err != nil {
			return p.complain(io, err)
		}
		return p.status // that of a command in a value
	}
	if b, ok := builtins()[argv[0]]; ok {
		if err := p.assign(c.assignments, io, false); err != nil {
			return p.complain(io, err)
		}
		return b(p, argv, io)
	}
	inner := p.child(p.ctx)
	if err := inner.assign(c.assignments, io, true); err != nil {
		return p.complain(io, err)
	}
	return inner.execute(argv, io)
}

// execute runs a command that is no part of the shell.
func (p *process) execute(argv []string, io streams) int {
	if p.ctx.Err() != nil {
		return codeKilled
	}
	run, ok := find(argv[0])
	if !ok {
		fmt.Fprintf(io.err, "%s: %s: not found\n", p.name, argv[0])
		return CodeNotFound
	}
	return run(p, argv, io)
}

func (p *process) assign(list []assignment, io streams, export bool) error {
	for _, a := range list {
		value, err := p.text(a.value, io)
		if err != nil {
			return err
		}
		p.variables[a.name] = value
		if export {
			p.exported[a.name] = true
		}
	}
	return nil
}

// complain says what went wrong with a command before it ran.
func (p *process) complain(io streams, err error) int {
	fmt.Fprintf(io.err, "%s: %v\n", p.name, reason(err))
	if _, is := errors.AsType[syntaxError](err); is {
		p.ended = true
		return 2
	}
	return 1
}

// reason says it as commands do: the file, then what is wrong with it.
func reason(err error) string {
	var at *fs.PathError
	if !errors.As(err, &at) {
		return err.Error()
	}
	return at.Path + ": " + why(at.Err)
}

// redirect opens what streams are redirected to. The undo closes it, also after an error.
func (p *process) redirect(list []redirection, s streams) (now streams, undo func(), err error) {
	var opened []io.Closer
	undo = func() {
		for _, c := range opened {
			_ = c.Close()
		}
	}
	for _, r := range list {
		target, err := p.text(r.target, s)
		if err != nil {
			return s, undo, err
		}
		switch r.kind {
		case "<":
			in, err := p.open(target, s)
			if err != nil {
				return s, undo, err
			}
			opened = append(opened, in)
			s.in = in
			continue
		case ">&":
			if s, err = duplicate(s, r.stream, target); err != nil {
				return s, undo, err
			}
			continue
		}
		out, err := p.create(target, r.kind == ">>", s)
		if err != nil {
			return s, undo, err
		}
		opened = append(opened, out)
		if r.stream == 1 || r.stream == 3 {
			s.out = out
		}
		if r.stream == 2 || r.stream == 3 {
			s.err = out
		}
	}
	return s, undo, nil
}

func duplicate(s streams, stream int, of string) (streams, error) {
	from := map[string]io.Writer{"1": s.out, "2": s.err, "-": io.Discard}[of]
	if from == nil {
		return s, fmt.Errorf("%s: bad file descriptor", of)
	}
	switch stream {
	case 1:
		s.out = from
	case 2:
		s.err = from
	}
	return s, nil
}
