package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
)

// tool is a command: argv[0] is what it was called.
type tool func(p *process, argv []string, io streams) int

// builtins are commands that change the shell itself.
func builtins() map[string]tool {
	return map[string]tool{
		":":        func(*process, []string, streams) int { return 0 },
		"cd":       cd,
		"exit":     exit,
		"return":   exit,
		"export":   export,
		"readonly": export,
		"unset":    unset,
		"set":      set,
		"shift":    shift,
		"break":    func(p *process, argv []string, io streams) int { return leaveLoops(p, argv, io, &p.leave) },
		"continue": func(p *process, argv []string, io streams) int { return leaveLoops(p, argv, io, &p.next) },
		"read":     read,
		"eval":     eval,
		"exec":     replace,
		"command":  which,
		"type":     which,
		"trap":     refuse,
		"alias":    refuse,
		"wait":     func(*process, []string, streams) int { return 0 }, // there are no jobs
	}
}

func isShell(name string) bool {
	switch strings.TrimPrefix(strings.TrimPrefix(name, "/usr"), "/bin/") {
	case "sh", "ash":
		return true
	}
	return false
}

func isIncomplete(err error) bool {
	var syntax syntaxError
	return errors.As(err, &syntax) &&
		(strings.Contains(string(syntax), "end of file") || strings.Contains(string(syntax), "unterminated"))
}

// sh runs a script, or what it reads.
func sh(p *process, argv []string, io streams) int {
	args := argv[1:]
	inner := p.child(p.ctx)
	inner.strict, inner.ended, inner.tested = false, false, 0
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		flags := args[0]
		args = args[1:]
		if flags == "--" {
			break
		}
		inner.strict = inner.strict || strings.Contains(flags, "e")
		if strings.Trim(flags, "-celux") != "" {
			fmt.Fprintf(io.err, "sh: %v\n", unsupported("the option "+flags))
			return 2
		}
		if !strings.Contains(flags, "c") {
			continue
		}
		if len(args) == 0 {
			fmt.Fprintln(io.err, "sh: -c requires an argument")
			return 2
		}
		script := args[0]
		if args = args[1:]; len(args) > 0 {
			inner.name, inner.arguments = args[0], args[1:]
		} else {
			inner.arguments = nil
		}
		return inner.script(script, io)
	}
	if len(args) > 0 {
		script, err := p.world.Files.ReadFile(p.path(args[0]), maxText)
		if err != nil {
			fmt.Fprintf(io.err, "sh: can't open '%s': %s\n", args[0], why(err))
			return CodeNotFound
		}
		inner.name, inner.arguments = args[0], args[1:]
		return inner.script(string(script), io)
	}
	return inner.follow(io)
}

func (p *process) script(text string, io streams) int {
	c, err := parse(text)
	if err != nil {
		return p.complain(io, err)
	}
	return c.run(p, io)
}

// follow runs the commands that it reads, each as soon as it is complete.
func (p *process) follow(s streams) int {
	in := bufio.NewReader(s.in)
	s.in = in
	script := ""
	for !p.interrupted() {
		p.invite(s, script != "")
		line, err := in.ReadString('\n')
		script += line
		c, problem := parse(script)
		switch {
		case isIncomplete(problem) && err == nil && len(script) < maxText:
			continue
		case problem != nil && p.world.Foreground != nil:
			p.status, script = p.complain(s, problem), ""
			p.ended = false
			continue
		case problem != nil:
			return p.complain(s, problem)
		}
		script = ""
		p.status = p.inForeground(c, s)
		if err != nil {
			break
		}
	}
	if p.ctx.Err() != nil {
		return codeKilled
	}
	return p.status
}

// invite prompts somebody at a terminal.
func (p *process) invite(s streams, more bool) {
	switch {
	case p.world.Foreground == nil:
	case more:
		fmt.Fprint(s.err, "> ")
	default:
		fmt.Fprint(s.err, p.prompt())
	}
}

// inForeground runs a command, which somebody at a terminal can interrupt.
func (p *process) inForeground(c command, s streams) int {
	if p.world.Foreground == nil {
		return c.run(p, s)
	}
	outer := p.ctx
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	p.ctx = ctx
	p.world.Foreground(cancel)
	code := c.run(p, s)
	p.world.Foreground(nil)
	p.ctx = outer
	if ctx.Err() != nil && outer.Err() == nil {
		return interrupted
	}
	return code
}

func cd(p *process, argv []string, io streams) int {
	to := p.variables["HOME"]
	if to == "" {
		to = "/root"
	}
	if len(argv) > 1 {
		to = argv[1]
	}
	if to == "-" {
		to = p.variables["OLDPWD"]
	}
	dir := p.path(to)
	info, err := p.world.Files.Stat(dir)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		fmt.Fprintf(io.err, "%s: cd: can't cd to %s: %s\n", p.name, to, why(err))
		return 2
	}
	p.variables["OLDPWD"], p.dir = p.dir, dir
	return 0
}

func exit(p *process, argv []string, io streams) int {
	code := p.status
	if len(argv) > 1 {
		n, err := strconv.Atoi(argv[1])
		if err != nil {
			fmt.Fprintf(io.err, "%s: %s: Illegal number: %s\n", p.name, argv[0], argv[1])
			n = 2
		}
		code = n & 0xff
	}
	p.ended, p.status = true, code
	return code
}

func export(p *process, argv []string, io streams) int {
	for _, a := range argv[1:] {
		name, value, assigned := strings.Cut(a, "=")
		if !isName(name) {
			fmt.Fprintf(io.err, "%s: %s: %s: bad variable name\n", p.name, argv[0], name)
			return 2
		}
		if assigned {
			p.variables[name] = value
		}
		p.exported[name] = true
	}
	if len(argv) == 1 {
		for _, e := range p.environment() {
			fmt.Fprintln(io.out, argv[0], e)
		}
	}
	return 0
}

func unset(p *process, argv []string, _ streams) int {
	for _, name := range argv[1:] {
		delete(p.variables, name)
		delete(p.exported, name)
	}
	return 0
}

func set(p *process, argv []string, io streams) int {
	for i, a := range argv[1:] {
		switch {
		case a == "--":
			p.arguments = argv[i+2:]
			return 0
		case a == "+e":
			p.strict = false
		case strings.HasPrefix(a, "-") && strings.Trim(a, "-eux") == "":
			p.strict = p.strict || strings.Contains(a, "e")
		default:
			fmt.Fprintf(io.err, "%s: %v\n", p.name, unsupported("set "+a))
			return 2
		}
	}
	return 0
}

func shift(p *process, argv []string, io streams) int {
	n, ok := count(argv, 1)
	if !ok || n > len(p.arguments) {
		fmt.Fprintf(io.err, "%s: shift: can't shift that many\n", p.name)
		return 1
	}
	p.arguments = p.arguments[n:]
	return 0
}

func count(argv []string, otherwise int) (int, bool) {
	if len(argv) < 2 {
		return otherwise, true
	}
	n, err := strconv.Atoi(argv[1])
	return n, err == nil && n >= 0
}

func leaveLoops(p *process, argv []string, io streams, what *int) int {
	n, ok := count(argv, 1)
	if !ok || n < 1 {
		fmt.Fprintf(io.err, "%s: %s: Illegal number: %s\n", p.name, argv[0], argv[1])
		return 2
	}
	*what = min(n, p.loops)
	return 0
}

// read reads a line into variables.
func read(p *process, argv []string, io streams) int {
	var names []string
	for _, a := range argv[1:] {
		if a != "-r" {
			names = append(names, a)
		}
	}
	line, err := readLine(io.in)
	for i, name := range names {
		if !isName(name) {
			fmt.Fprintf(io.err, "%s: read: %s: bad variable name\n", p.name, name)
			return 2
		}
		line = strings.TrimLeft(line, " \t")
		value := line
		if i < len(names)-1 {
			value, line = line, ""
			if at := strings.IndexAny(value, " \t"); at >= 0 {
				value, line = value[:at], value[at+1:]
			}
		}
		p.variables[name] = strings.TrimRight(value, " \t\r")
	}
	if err != nil {
		return 1
	}
	return 0
}

// readLine takes no more than a line: the rest is for whoever reads next.
func readLine(in io.Reader) (string, error) {
	var line strings.Builder
	one := make([]byte, 1)
	for line.Len() < maxText {
		n, err := in.Read(one)
		if n == 1 && one[0] == '\n' {
			return line.String(), nil
		}
		line.Write(one[:n])
		if err != nil {
			return line.String(), err
		}
	}
	return line.String(), errTooLong
}

func eval(p *process, argv []string, io streams) int {
	return p.script(strings.Join(argv[1:], " "), io)
}

// replace is exec: the shell ends with the command.
func replace(p *process, argv []string, io streams) int {
	if len(argv) == 1 {
		return 0
	}
	code := p.execute(argv[1:], io)
	p.ended, p.status = true, code
	return code
}

func refuse(p *process, argv []string, io streams) int {
	fmt.Fprintf(io.err, "%s: %v\n", p.name, unsupported(argv[0]))
	return 2
}

// which says where commands are, or runs one.
func which(p *process, argv []string, io streams) int {
	names := argv[1:]
	if argv[0] == "command" {
		if len(names) == 0 {
			return 0
		}
		if names[0] != "-v" && names[0] != "-V" {
			return p.execute(names, io)
		}
		names = names[1:]
	}
	code := 0
	for _, name := range names {
		_, builtin := builtins()[name]
		_, known := find(name)
		switch {
		case builtin && argv[0] != "which":
			fmt.Fprintln(io.out, name)
		case known && strings.Contains(name, "/"):
			fmt.Fprintln(io.out, name)
		case known:
			fmt.Fprintln(io.out, "/bin/"+name)
		default:
			code = 1
			if argv[0] == "type" {
				fmt.Fprintf(io.err, "%s: %s: not found\n", p.name, name)
				code = CodeNotFound
			}
		}
	}
	return code
}

// interruptible lets reading end with a context. The reader that waits stays behind until there is something to read.
func interruptible(ctx context.Context, in io.Reader) io.Reader {
	return &patient{ctx: ctx, in: in}
}

type patient struct {
	ctx    context.Context //nolint:containedctx // it is that of one command
	in     io.Reader
	result chan chunk // of the read under way; nil: none is
	rest   chunk
}

type chunk struct {
	text []byte
	err  error
}

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
