package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// session is a shell at work. The interpreter is that of mvdan.cc/sh; all it opens, looks at and runs comes from here,
// and nothing of this machine is reached:
//
//   - files through the handlers, which know the container's only
//   - users of this machine (~name), its processes ($$), fifos for <(…) are refused or replaced in the script: see [checker]
//   - commands of the shell that look for themselves (type, command -v, pwd -P, source, test) are not the interpreter's:
//     see [session.call]
type session struct {
	process *process
	name    string
	runner  *interp.Runner
	cancel  context.CancelFunc
	ctx     context.Context //nolint:containedctx // a session is as long as its context
	// nobody takes the place of in for the interpreter, which would read all of it.
	nobody   *os.File
	out, err *sharedStream
	// exited is set when the shell is to end.
	exited bool

	mu sync.Mutex
	in io.Reader // what commands read
	// closed is set when nothing new may begin; active counts the work that still runs.
	closed bool
	active sync.WaitGroup
	// sources are scripts that are about to be read by 'source'.
	sources map[string]string
	// commands replace the interpreter's own commands.
	commands map[string]command
}

// nowhere is no directory: the interpreter's directory for temporary files.
const nowhere = "/\x00"

// newSession starts a shell, with options as of sh.
func newSession(p *process, name string, options, arguments []string, s streams) (*session, error) {
	// All that is read from it is its end.
	nobody, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_ = end.Close()
	ctx, cancel := context.WithCancel(p.ctx)
	one := &session{
		process: p, name: name, ctx: ctx, cancel: cancel, in: s.in, nobody: nobody, sources: map[string]string{},
		out: &sharedStream{ctx: ctx, to: s.out}, err: &sharedStream{ctx: ctx, to: s.err},
	}
	one.commands = one.own()
	environment := one.environment()
	withoutFiles := maps.Clone(environment)
	withoutFiles["TMPDIR"] = text(nowhere)
	one.runner, err = interp.New(
		interp.Env(withoutFiles),
		func(r *interp.Runner) error { // interp.Dir looks at this machine
			r.Dir = p.dir
			return nil
		},
		interp.Params(append(append(options, "--"), arguments...)...),
		interp.StdIO(nobody, one.out, one.err),
		interp.CallHandler(func(ctx context.Context, args []string) ([]string, error) {
			return during(one, func() ([]string, error) { return one.call(ctx, args) })
		}),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
			return func(ctx context.Context, args []string) error {
				_, err := during(one, func() (any, error) { return nil, one.exec(ctx, args) })
				return err
			}
		}),
		interp.OpenHandler(func(ctx context.Context, name string, flag int, _ fs.FileMode) (io.ReadWriteCloser, error) {
			return during(one, func() (io.ReadWriteCloser, error) { return one.open(ctx, name, flag) })
		}),
		interp.ReadDirHandler2(func(_ context.Context, name string) ([]fs.DirEntry, error) {
			return during(one, func() ([]fs.DirEntry, error) { return one.readDir(name) })
		}),
		interp.StatHandler(func(ctx context.Context, name string, _ bool) (fs.FileInfo, error) {
			return during(one, func() (fs.FileInfo, error) { return one.stat(ctx, name) })
		}),
		interp.AccessHandler(func(ctx context.Context, name string, mode interp.AccessMode) error {
			_, err := during(one, func() (any, error) { return nil, one.access(ctx, name, mode) })
			return err
		}),
	)
	if err != nil {
		cancel()
		_ = nobody.Close()
		return nil, err
	}
	one.runner.Reset() // from now on the directory for temporary files stays
	_ = interp.Env(environment)(one.runner)
	one.runner.Reset()
	return one, nil
}

// environ holds the initial variables of a shell.
type environ map[string]expand.Variable

func text(value string) expand.Variable {
	return expand.Variable{Set: true, Kind: expand.String, Str: value}
}

func (s *session) environment() environ {
	e := environ{"HOME": text("/root")}
	for name, id := range map[string]int64{"UID": s.process.container.UID, "EUID": s.process.container.UID, "GID": s.process.container.GID} {
		e[name] = text(strconv.FormatInt(id, 10))
	}
	for name, value := range s.process.environment {
		v := text(strings.ToValidUTF8(value, "\uFFFD"))
		v.Exported = true
		e[name] = v
	}
	return e
}

// Get implements [expand.Environ]. The interpreter asks for "HOME name" to expand ~name, which stays unchanged.
func (e environ) Get(name string) expand.Variable {
	if user, is := strings.CutPrefix(name, "HOME "); is {
		return text("~" + user)
	}
	return e[name]
}

// Each implements [expand.Environ].
func (e environ) Each(f func(name string, v expand.Variable) bool) {
	for name, v := range e {
		if !f(name, v) {
			return
		}
	}
}

// exported returns the exported variables of a shell, for a command.
func exported(env expand.Environ) map[string]string {
	all := map[string]string{}
	for name, v := range env.Each {
		if v.IsSet() && v.Exported && v.Kind == expand.String {
			all[name] = v.Str
		} else {
			delete(all, name)
		}
	}
	return all
}

// during calls do, and keeps the shell from closing meanwhile.
func during[T any](s *session, do func() (T, error)) (result T, err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return result, context.Canceled
	}
	s.active.Add(1)
	s.mu.Unlock()
	defer s.active.Done()
	return do()
}

// close ends what still runs in the background.
func (s *session) close() {
	s.cancel()
	wait := &syntax.Stmt{Cmd: &syntax.CallExpr{Args: []*syntax.Word{literal("wait")}}}
	_ = s.runner.Run(context.WithoutCancel(s.ctx), wait)
	// Who runs in the background of what runs in the background is not waited for.
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.active.Wait()
	s.out.close()
	s.err.close()
	_ = s.nobody.Close()
}

// run runs a file or a statement.
func (s *session) run(ctx context.Context, node syntax.Node) (code int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(s.err, "%s: %v\n", s.name, p)
			s.exited, code = true, 2
		}
	}()
	err := s.runner.Run(ctx, node)
	if ctx.Err() != nil {
		return codeKilled
	}
	s.exited = s.runner.Exited()
	if status, is := errors.AsType[interp.ExitStatus](err); is {
		return int(status)
	}
	if err != nil {
		if !errors.Is(err, errTooLong) { // the interpreter has said so
			fmt.Fprintf(s.err, "%s: %v\n", s.name, err)
		}
		return 2
	}
	return 0
}

// parse reads what is to be run by itself.
func (s *session) parse(script string) (*syntax.File, error) {
	c := checker{jobs: true, name: s.name}
	return c.parse(script)
}

// setStatus sets $?.
func (s *session) setStatus(code int) {
	if file, err := s.parse(fmt.Sprintf("(exit %d)", code)); err == nil {
		_ = s.run(s.ctx, file.Stmts[0])
	}
	s.exited = false
}

// sharedStream is an output of a shell, which several commands may write to at once. It refuses writes after the shell
// has ended.
type sharedStream struct {
	ctx context.Context //nolint:containedctx // that of the shell
	to  io.Writer

	mu     sync.Mutex
	closed bool
}

func (s *sharedStream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, io.ErrClosedPipe
	}
	switch string(p) { // what the interpreter says of a command in a variable that was ended
	case context.Canceled.Error() + "\n", context.DeadlineExceeded.Error() + "\n":
		return len(p), nil
	}
	return s.to.Write(p)
}

func (s *sharedStream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// internal marks the names of tools that are to be run instead of the interpreter's commands.
const internal = "\x00"

// exec runs a tool.
func (s *session) exec(ctx context.Context, argv []string) error {
	hc := interp.HandlerCtx(ctx)
	if code, is := strings.CutPrefix(argv[0], internal+"status "); is {
		n, _ := strconv.Atoi(code)
		return exit(n)
	}
	argv[0] = strings.TrimPrefix(argv[0], internal)
	p := s.process.child(ctx)
	p.dir, p.environment = hc.Dir, exported(hc.Env)
	out := &watched{Writer: hc.Stdout}
	var kept *captured
	if b, is := hc.Stdout.(*strings.Builder); is {
		kept = &captured{room: maxText - b.Len()}
		out.Writer = kept
	}
	in, stop := s.input(ctx, hc)
	defer stop()
	code := p.execute(argv, streams{in, out, hc.Stderr})
	if kept != nil {
		if kept.full {
			return errTooLong
		}
		_, _ = io.WriteString(hc.Stdout, strings.ToValidUTF8(kept.text.String(), "\uFFFD"))
		return exit(code)
	}
	if _, ours := hc.Stdout.(*sharedStream); out.err != nil && (ours || errors.Is(out.err, syscall.EPIPE)) {
		return hc.Builtin(ctx, []string{"exit", "141"}) // as SIGPIPE would
	}
	return exit(code)
}

func exit(code int) error {
	if code == 0 {
		return nil
	}
	return interp.ExitStatus(code) //nolint:gosec // codes are those of commands
}

// watched remembers that its reader has gone.
type watched struct {
	io.Writer
	err error
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}

// captured is output that becomes part of a word.
type captured struct {
	text bytes.Buffer
	room int
	full bool
}

func (v *captured) Write(p []byte) (int, error) {
	if v.text.Len()+len(p) > v.room {
		v.full = true
		return 0, errTooLong
	}
	return v.text.Write(p)
}

// feed sets what commands read.
func (s *session) feed(in io.Reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in = in
}

// input returns a command's input, until the context ends.
func (s *session) input(ctx context.Context, hc interp.HandlerContext) (in io.Reader, stop func() bool) {
	switch f := hc.Stdin.(type) {
	case *os.File:
		if f != s.nobody {
			return f, context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.in, func() bool { return true }
	}
	return strings.NewReader(""), func() bool { return true }
}

// file is a file for writing only.
type file struct{ io.WriteCloser }

func (file) Read([]byte) (int, error) { return 0, syscall.EBADF }

// open opens the target of a redirection. Input must be a file of this machine, because the interpreter would otherwise
// make one that is never closed.
func (s *session) open(ctx context.Context, name string, flag int) (io.ReadWriteCloser, error) {
	hc := interp.HandlerCtx(ctx)
	if n, err := strconv.Atoi(name); err == nil && n < maxScript-guardBase/2 && flag == os.O_RDONLY {
		if n+guardBase > maxText {
			return nil, errTooLong
		}
		return pipe(strings.NewReader(""))
	}
	s.mu.Lock()
	script, is := s.sources[name]
	delete(s.sources, name)
	s.mu.Unlock()
	if is {
		return pipe(strings.NewReader(script))
	}
	p := s.process.child(ctx)
	p.dir = hc.Dir
	in, _ := s.input(ctx, hc)
	if flag != os.O_RDONLY {
		out, err := p.create(name, flag&os.O_APPEND != 0, streams{in, hc.Stdout, hc.Stderr})
		if err != nil {
			return nil, s.complain(name, err)
		}
		return file{out}, nil
	}
	opened, err := p.open(name, streams{in: in})
	if err != nil {
		return nil, s.complain(name, err)
	}
	if f, is := opened.(*os.File); is {
		return f, nil
	}
	return pipe(opened)
}

func (s *session) complain(name string, err error) error {
	return &fs.PathError{Op: s.name + ":", Path: name, Err: errors.New(why(err))}
}

// pipe returns a file with the given content. It ends when it is closed.
func pipe(content io.Reader) (io.ReadWriteCloser, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(in, content)
		_ = in.Close()
	}()
	return out, nil
}

func (s *session) readDir(name string) ([]fs.DirEntry, error) {
	entries, err := s.process.container.Files.ReadDir(name)
	if err != nil {
		// The caller wants to know whether the file exists.
		if info, missing := s.process.container.Files.Stat(name); missing == nil && !info.IsDir() {
			return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
		}
		return nil, err
	}
	var list []fs.DirEntry
	for _, e := range entries {
		list = append(list, fs.FileInfoToDirEntry(info{e.Name, e.Mode, e.Size, e.ModTime}))
	}
	return list, nil
}

// info is an [fs.FileInfo].
type info struct {
	name string
	mode fs.FileMode
	size int64
	time time.Time
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.time }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }

func (s *session) stat(ctx context.Context, name string) (fs.FileInfo, error) {
	found, err := s.process.child(ctx).stat(name)
	if err != nil {
		return nil, err
	}
	return info{path.Base(name), found.Mode, found.Size, found.ModTime}, nil
}

func (s *session) access(ctx context.Context, name string, mode interp.AccessMode) error {
	found, err := s.process.child(ctx).stat(name)
	if mode&interp.AccessExec == 0 {
		return err
	}
	if _, tool := s.process.container.find(name); tool || err == nil && found.IsDir() {
		return nil
	}
	return syscall.EACCES
}

const (
	// maxFrames limits how deeply commands may call each other: the interpreter has no limit.
	maxFrames = 5_000
	// maxRoutines limits the number of the program's goroutines, against commands that multiply.
	maxRoutines = 10_000
)

// exhausted returns an error if one of these limits is exceeded.
func exhausted(hc interp.HandlerContext, args []string) error {
	var frame [1]uintptr
	if runtime.Callers(maxFrames, frame[:]) > 0 {
		return errors.New("too many commands in each other")
	}
	if runtime.NumGoroutine() > maxRoutines {
		return errors.New("can't fork: Resource temporarily unavailable")
	}
	if b, is := hc.Stdout.(*strings.Builder); is && b.Len() > maxText {
		return errTooLong
	}
	size := 0
	for _, a := range args {
		if size += len(a) + 1; size > 2*maxText {
			return fmt.Errorf("%.20s: Argument list too long", args[0])
		}
	}
	return nil
}
