package shell

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// tool is a command; argv[0] is the name by which it was called.
type tool func(p *process, argv []string, io streams) int

// builtin reports whether a command is one of the shell's own.
func builtin(name string) bool { return interp.IsBuiltin(name) }

// command returns the arguments that the interpreter runs instead of one of its own commands.
type command func(hc interp.HandlerContext, args []string) []string

// own returns the shell's own commands. No other command of the interpreter may run.
func (s *session) own() map[string]command {
	return map[string]command{
		"[": asTool, "test": asTool, "echo": asTool, "printf": asTool, "pwd": asTool, "kill": asTool, "type": asTool,
		"cd": s.cd, "shift": s.shift, "unset": s.unset, "break": s.leave, "continue": s.leave,
		"export": s.declare, "readonly": s.declare, "local": s.declare,
		"eval": s.eval, ".": s.source, "source": s.source, "trap": s.trap, "set": s.set,
		":": asItIs, "true": asItIs, "false": asItIs, "exit": asItIs, "return": asItIs, "exec": asItIs, "wait": asItIs,
		"hash": asItIs,
	}
}

func asItIs(_ interp.HandlerContext, args []string) []string { return args }

// asTool runs the tool of the name.
func asTool(_ interp.HandlerContext, args []string) []string {
	args[0] = internal + args[0]
	return args
}

// failure is a command that does nothing but fail.
func failure(code int) []string { return []string{internal + "status " + strconv.Itoa(code)} }

// call returns the arguments that the interpreter runs for a command. Some of the interpreter's own commands would look at
// this machine, panic, or use up all memory.
func (s *session) call(ctx context.Context, args []string) ([]string, error) {
	hc := interp.HandlerCtx(ctx)
	if err := exhausted(hc, args); err != nil {
		return nil, err
	}
	args = slices.Clone(args)
	for len(args) > 1 && (args[0] == "command" || args[0] == "builtin") {
		if args[1] == "-v" || args[1] == "-V" {
			return asTool(hc, args), nil
		}
		args = args[1:]
	}
	if !builtin(args[0]) {
		args[0] = strings.ReplaceAll(args[0], internal, "")
		if args[0] == "" {
			fmt.Fprintf(hc.Stderr, "%s: : not found\n", s.name)
			return failure(CodeNotFound), nil
		}
		return args, nil
	}
	if args[0] == "read" {
		return s.read(ctx, hc, args), nil
	}
	if replace, ok := s.commands[args[0]]; ok {
		return replace(hc, args), nil
	}
	if args[0] == "command" || args[0] == "builtin" {
		return []string{"true"}, nil
	}
	return s.refuse(hc, 2, "%v", unsupported(args[0])), nil
}

// refuse reports an error.
func (s *session) refuse(hc interp.HandlerContext, code int, format string, args ...any) []string {
	fmt.Fprintf(hc.Stderr, "%s: %s\n", s.name, fmt.Sprintf(format, args...))
	return failure(code)
}

func (s *session) cd(hc interp.HandlerContext, args []string) []string {
	to := "/root"
	if home := hc.Env.Get("HOME").Str; home != "" {
		to = home
	}
	if len(args) > 1 {
		to = args[1]
	}
	if to == "-" {
		to = hc.Env.Get("OLDPWD").Str
	}
	found, err := s.process.container.Files.Stat(absolute(hc.Dir, to))
	if err == nil && !found.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return s.refuse(hc, 2, "cd: can't cd to %s: %s", to, why(err))
	}
	if to == "" {
		to = "."
	}
	return []string{"cd", absolute(hc.Dir, to)}
}

func (s *session) shift(hc interp.HandlerContext, args []string) []string {
	n := 1
	if len(args) > 1 {
		var err error
		if n, err = strconv.Atoi(args[1]); err != nil || n < 0 {
			return s.refuse(hc, 1, "shift: can't shift that many")
		}
	}
	return []string{"shift", strconv.Itoa(n)}
}

func (s *session) leave(hc interp.HandlerContext, args []string) []string {
	if len(args) > 1 {
		if n, err := strconv.Atoi(args[1]); err != nil || n < 1 {
			return s.refuse(hc, 2, "%s: Illegal number: %s", args[0], args[1])
		}
	}
	return args[:min(2, len(args))]
}

func (s *session) unset(hc interp.HandlerContext, args []string) []string {
	for _, name := range args[1:] {
		if name != "-v" && name != "-f" && !syntax.ValidName(name) {
			return s.refuse(hc, 2, "unset: %s: bad variable name", name)
		}
	}
	return args
}

// set sets options and arguments.
func (s *session) set(hc interp.HandlerContext, args []string) []string {
	for i, a := range args[1:] {
		if a == "--" || a == "" || a[0] != '-' && a[0] != '+' {
			break
		}
		if strings.Trim(a[1:], "aefuxo") != "" || len(a) < 2 || strings.Contains(a, "o") && i+2 == len(args) {
			return s.refuse(hc, 2, "%v", unsupported("set "+a))
		}
	}
	return args
}

// declare makes a command of export with arguments that were not known before, which can be run without a look at them.
func (s *session) declare(hc interp.HandlerContext, args []string) []string {
	var script strings.Builder
	script.WriteString(args[0])
	for _, a := range args[1:] {
		name, value, assigned := strings.Cut(a, "=")
		switch {
		case a == "-p":
			continue
		case !syntax.ValidName(name):
			return s.refuse(hc, 2, "%s: %s: bad variable name", args[0], name)
		case assigned && len(value) > maxText:
			return s.refuse(hc, 2, "%s: %s: too long", args[0], name)
		}
		script.WriteString(" " + name)
		if assigned {
			script.WriteString("=" + quote(value))
		}
	}
	if script.Len() == len(args[0]) {
		all := exported(hc.Env)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(hc.Stdout, "%s %s=%s\n", args[0], name, quote(all[name]))
		}
		return []string{"true"}
	}
	return []string{"eval", script.String()}
}

func (s *session) eval(hc interp.HandlerContext, args []string) []string {
	script, err := harmless(strings.Join(args[1:], " "))
	if err != nil {
		fmt.Fprintf(hc.Stderr, "%s: %v\n", s.name, err)
		return []string{"exit", "2"}
	}
	return []string{"eval", script}
}

func (s *session) source(hc interp.HandlerContext, args []string) []string {
	if len(args) < 2 {
		return s.refuse(hc, 2, "%s: filename argument required", args[0])
	}
	content, err := s.process.container.Files.ReadFile(absolute(hc.Dir, args[1]), maxScript+1)
	if err != nil {
		fmt.Fprintf(hc.Stderr, "%s: %s: can't open '%s': %s\n", s.name, args[0], args[1], why(err))
		return []string{"exit", "2"}
	}
	script, err := harmless(string(content))
	if err != nil {
		fmt.Fprintf(hc.Stderr, "%s: %s: %v\n", s.name, args[1], err)
		return []string{"exit", "2"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The interpreter first looks for such a file, which cannot exist under this name.
	name := fmt.Sprintf("%s/source %d", nowhere, len(s.sources))
	s.sources[name] = script
	return append([]string{"source", name}, args[2:]...)
}

func (s *session) trap(hc interp.HandlerContext, args []string) []string {
	for i, a := range args {
		if a == "0" && i > 1 {
			args[i] = "EXIT"
		}
	}
	if len(args) < 3 {
		return args
	}
	script, err := harmless(args[1])
	if err != nil {
		return s.refuse(hc, 2, "trap: %v", err)
	}
	args[1] = script
	return args
}

// read reads a line into variables. The interpreter would read from its own input.
func (s *session) read(ctx context.Context, hc interp.HandlerContext, args []string) []string {
	raw := false
	var names []string
	for i := 1; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-r":
			raw = true
		case a == "-p" && i+1 < len(args):
			i++
			fmt.Fprint(hc.Stderr, args[i])
		case !syntax.ValidName(a):
			return s.refuse(hc, 2, "read: %s: bad variable name", a)
		default:
			names = append(names, a)
		}
	}
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	in, stop := s.input(ctx, hc)
	defer stop()
	line, err := readLine(in)
	for err == nil && !raw && (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1 && len(line) < maxText {
		var more string
		more, err = readLine(in)
		line = line[:len(line)-1] + more
	}
	values := expand.ReadFields(&expand.Config{Env: hc.Env}, strings.ToValidUTF8(line, "\uFFFD"), len(names), raw)
	var script strings.Builder
	for i, name := range names {
		value := ""
		if i < len(values) {
			value = values[i]
		}
		script.WriteString(name + "=" + quote(value) + "; ")
	}
	if err != nil {
		script.WriteString("false")
	}
	return []string{"eval", script.String()}
}

// readLine reads exactly one line, and leaves the rest for the next reader.
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

// maxShells limits the nesting of shells.
const maxShells = 100

// sh runs a script, or its standard input; on a terminal it asks for commands.
func sh(p *process, argv []string, io streams) int {
	args, name := argv[1:], "sh"
	var options []string
	command := false
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		flags := args[0]
		args = args[1:]
		if flags == "--" {
			break
		}
		if strings.Trim(flags[1:], "acefilux") != "" {
			fmt.Fprintf(io.err, "sh: %v\n", unsupported("the option "+flags))
			return 2
		}
		command = command || strings.Contains(flags, "c")
		for _, letter := range flags[1:] {
			if strings.ContainsRune("aefux", letter) {
				options = append(options, flags[:1]+string(letter))
			}
		}
	}
	script := ""
	switch {
	case command && len(args) == 0:
		fmt.Fprintln(io.err, "sh: -c requires an argument")
		return 2
	case command:
		script, args = args[0], args[1:]
	case len(args) > 0:
		content, err := p.container.Files.ReadFile(p.path(args[0]), maxScript+1)
		if err != nil {
			fmt.Fprintf(io.err, "sh: can't open '%s': %s\n", args[0], why(err))
			return CodeNotFound
		}
		script, command = string(content), true
	}
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	if p = p.child(p.ctx); p.depth > maxShells {
		fmt.Fprintln(io.err, "sh: too many shells in each other")
		return 2
	}
	p.depth++
	s, err := newSession(p, name, options, args, io)
	if err != nil {
		fmt.Fprintf(io.err, "sh: %v\n", err)
		return 2
	}
	defer s.close()
	if command {
		return s.script(script)
	}
	if lines, typed := typing(io.in); typed {
		return s.interact(lines)
	}
	return s.follow()
}

func (s *session) script(text string) int {
	c := checker{jobs: true}
	file, err := c.parse(text)
	if err != nil {
		fmt.Fprintf(s.err, "%s: %v\n", s.name, err)
		return 2
	}
	file.Name = s.name
	return s.run(s.ctx, file)
}

// follow runs the commands that it reads, each as soon as it is complete.
func (s *session) follow() int {
	source := interruptible(s.ctx, s.in)
	in := bufio.NewReader(source)
	s.feed(in)
	script, status := "", 0
	foreground := s.process.container.Foreground
	for !s.exited && s.ctx.Err() == nil {
		s.invite(script != "")
		line, err := in.ReadString('\n')
		script += line
		file, problem := s.parse(script)
		switch {
		case isIncomplete(problem) && err == nil:
			continue
		case problem != nil:
			fmt.Fprintf(s.err, "%s: %v\n", s.name, problem)
			if status = 2; foreground == nil || err != nil {
				return status
			}
			s.setStatus(status)
			script = ""
			continue
		}
		script = ""
		status = s.statements(file, status, func(run func(context.Context) int) int {
			if foreground == nil {
				return run(s.ctx)
			}
			return s.inForeground(source, run)
		})
		if err != nil {
			break
		}
	}
	return s.end(status)
}

// end runs what is left to run, such as an exit trap, when a shell ends without having exited.
func (s *session) end(status int) int {
	if s.ctx.Err() != nil {
		return codeKilled
	}
	if !s.exited {
		s.run(s.ctx, &syntax.File{Name: s.name})
	}
	return status
}

// invite prints the prompt on a terminal.
func (s *session) invite(more bool) {
	switch {
	case s.process.container.Foreground == nil:
	case more:
		fmt.Fprint(s.err, "> ")
	default:
		fmt.Fprint(s.err, s.prompt())
	}
}

// statements runs the statements of a script. Ctrl-C ends them all, except for those in the background.
func (s *session) statements(
	file *syntax.File, status int, wait func(run func(context.Context) int) int,
) int {
	status = wait(func(ctx context.Context) int {
		for _, one := range file.Stmts {
			within := ctx
			if one.Background {
				within = s.ctx
			}
			if status = s.run(within, one); s.exited || ctx.Err() != nil {
				break
			}
		}
		return status
	})
	if status == interrupted && s.ctx.Err() == nil && !s.exited {
		s.setStatus(status)
	}
	return status
}

// inForeground runs a command that can be interrupted at a terminal.
func (s *session) inForeground(source *patient, run func(context.Context) int) int {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	source.ctx = ctx
	s.process.container.Foreground(cancel)
	code := run(ctx)
	s.process.container.Foreground(nil)
	source.ctx = s.ctx
	if ctx.Err() != nil && s.ctx.Err() == nil {
		return interrupted
	}
	return code
}

// which prints the paths of commands.
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
		_, known := p.container.find(name)
		switch {
		case builtin(name) && argv[0] != "which":
			fmt.Fprintln(io.out, name)
		case known && strings.Contains(name, "/"):
			fmt.Fprintln(io.out, name)
		case known:
			fmt.Fprintln(io.out, "/bin/"+name)
		default:
			code = 1
			if argv[0] == "type" {
				fmt.Fprintf(io.err, "sh: %s: not found\n", name)
				code = CodeNotFound
			}
		}
	}
	return code
}
