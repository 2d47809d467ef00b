package shell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/node/rootfs"
)

// open opens a file, or a stream by the name of a device.
func (p *process) open(name string, s streams) (io.ReadCloser, error) {
	switch p.path(name) {
	case "/dev/null":
		return io.NopCloser(strings.NewReader("")), nil
	case "/dev/stdin", "/dev/fd/0":
		return io.NopCloser(s.in), nil
	}
	return p.container.Files.Open(p.path(name))
}

// kept is a stream that is not closed with the file of its name.
type kept struct{ io.Writer }

func (kept) Close() error { return nil }

func (p *process) create(name string, appending bool, s streams) (io.WriteCloser, error) {
	to := map[string]io.Writer{
		"/dev/null": io.Discard, "/dev/stdout": s.out, "/dev/fd/1": s.out, "/dev/stderr": s.err, "/dev/fd/2": s.err,
		"/proc/1/fd/1": p.container.Stdout, "/proc/1/fd/2": p.container.Stderr,
	}[p.path(name)]
	if to != nil {
		return kept{to}, nil
	}
	return p.container.Files.Create(p.path(name), appending)
}

// inputs reads the named files, or the standard input.
func (p *process) inputs(argv, names []string, s streams, read func(name string, in io.Reader) error) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	code := 0
	for _, name := range names {
		if err := p.input(name, s, read); err != nil {
			if p.ctx.Err() != nil {
				return codeKilled
			}
			code = problem(s, argv, "%s: %s", name, why(err))
		}
	}
	return code
}

func (p *process) input(name string, s streams, read func(name string, in io.Reader) error) error {
	if name == "-" {
		return read(name, s.in)
	}
	f, err := p.open(name, s)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return read(name, f)
}

func cat(p *process, argv []string, s streams) int {
	_, names, err := flags(argv, "u", "")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	return p.inputs(argv, names, s, func(_ string, in io.Reader) error { return p.copy(s.out, in) })
}

// copy copies until the end of the file, or of the process.
func (p *process) copy(out io.Writer, in io.Reader) error {
	buffer := make([]byte, 32<<10)
	for p.ctx.Err() == nil {
		n, err := in.Read(buffer)
		if _, err := out.Write(buffer[:n]); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return p.ctx.Err()
}

func ls(p *process, argv []string, s streams) int {
	set, names, err := flags(argv, "la1AdhR", "")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	if has(set, 'R') {
		return problem(s, argv, "%v", unsupported("-R"))
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	code := 0
	for i, name := range names {
		info, err := p.stat(name)
		if err != nil {
			code = problem(s, argv, "%s: %s", name, why(err))
			continue
		}
		if !info.IsDir() || has(set, 'd') {
			info.Name = name
			list(s, []rootfs.Info{info}, has(set, 'l'))
			continue
		}
		entries, err := p.container.Files.ReadDir(p.path(name))
		if err != nil {
			code = problem(s, argv, "%s: %s", name, why(err))
			continue
		}
		if !has(set, 'a') && !has(set, 'A') {
			entries = slices.DeleteFunc(entries, func(e rootfs.Info) bool { return strings.HasPrefix(e.Name, ".") })
		}
		if len(names) > 1 {
			if i > 0 {
				fmt.Fprintln(s.out)
			}
			fmt.Fprintf(s.out, "%s:\n", name)
		}
		list(s, entries, has(set, 'l'))
	}
	return code
}

func (p *process) stat(name string) (rootfs.Info, error) {
	if full := p.path(name); device(full) {
		return rootfs.Info{Name: path.Base(full), Mode: fs.ModeDevice | fs.ModeCharDevice | 0o666}, nil
	}
	return p.container.Files.Stat(p.path(name))
}

func list(s streams, entries []rootfs.Info, long bool) {
	for _, e := range entries {
		if !long {
			fmt.Fprintln(s.out, e.Name)
			continue
		}
		name := e.Name
		if e.Link != "" {
			name += " -> " + e.Link
		}
		fmt.Fprintf(s.out, "%s %4d %-8s %-8s %9d %s %s\n", mode(e.Mode), 1, "root", "root", e.Size,
			e.ModTime.UTC().Format("Jan _2 15:04"), name)
	}
}

// mode formats a mode as ls does: drwxr-xr-x.
func mode(m fs.FileMode) string {
	kind := "-"
	switch {
	case m.IsDir():
		kind = "d"
	case m&fs.ModeSymlink != 0:
		kind = "l"
	case m&fs.ModeCharDevice != 0:
		kind = "c"
	}
	return kind + m.Perm().String()[1:]
}

func stat(p *process, argv []string, s streams) int {
	code := 0
	for _, name := range argv[1:] {
		info, err := p.stat(name)
		if err != nil {
			code = problem(s, argv, "can't stat '%s': %s", name, why(err))
			continue
		}
		fmt.Fprintf(s.out, "  File: %s\n  Size: %d\nAccess: %s\nModify: %s\n", name, info.Size, mode(info.Mode),
			info.ModTime.UTC().Format(time.RFC3339))
	}
	return code
}

func touch(p *process, argv []string, s streams) int {
	code := 0
	for _, name := range argv[1:] {
		f, err := p.create(name, true, s)
		if err != nil {
			code = problem(s, argv, "%s: %s", name, why(err))
			continue
		}
		_ = f.Close()
	}
	return code
}

func mkdir(p *process, argv []string, s streams) int {
	set, names, err := flags(argv, "p", "m")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	code := 0
	for _, name := range names {
		err := p.container.Files.Mkdir(p.path(name))
		if has(set, 'p') {
			err = p.mkdirAll(p.path(name))
		}
		if err != nil {
			code = problem(s, argv, "can't create directory '%s': %s", name, why(err))
		}
	}
	return code
}

func (p *process) mkdirAll(name string) error {
	if info, err := p.container.Files.Stat(name); err == nil {
		if info.IsDir() {
			return nil
		}
		return syscall.EEXIST
	}
	if parent := path.Dir(name); parent != name {
		if err := p.mkdirAll(parent); err != nil {
			return err
		}
	}
	return p.container.Files.Mkdir(name)
}

func rm(p *process, argv []string, s streams) int {
	set, names, err := flags(argv, "rRf", "")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	code := 0
	for _, name := range names {
		err := p.remove(p.path(name), has(set, 'r') || has(set, 'R'))
		if err != nil && (!has(set, 'f') || !errors.Is(err, fs.ErrNotExist)) {
			code = problem(s, argv, "can't remove '%s': %s", name, why(err))
		}
	}
	return code
}

func (p *process) remove(name string, all bool) error {
	info, err := p.container.Files.Stat(name)
	if err != nil || !info.IsDir() {
		return p.container.Files.Remove(name)
	}
	if !all {
		return syscall.EISDIR
	}
	entries, err := p.container.Files.ReadDir(name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		if e.Mode&fs.ModeSymlink != 0 {
			err = p.container.Files.Remove(path.Join(name, e.Name))
		} else {
			err = p.remove(path.Join(name, e.Name), true)
		}
		if err != nil {
			return err
		}
	}
	return p.container.Files.Remove(name)
}

// target returns the path to which a file is copied or moved.
func (p *process) target(from, to string) string {
	if info, err := p.container.Files.Stat(p.path(to)); err == nil && info.IsDir() {
		return path.Join(p.path(to), path.Base(from))
	}
	return p.path(to)
}

func cp(p *process, argv []string, s streams) int {
	_, names, err := flags(argv, "fp", "")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	return p.each(argv, names, s, p.copyFile)
}

func mv(p *process, argv []string, s streams) int {
	_, names, err := flags(argv, "f", "")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	return p.each(argv, names, s, func(from, to string) error {
		err := p.container.Files.Rename(from, to)
		if !errors.Is(err, syscall.EXDEV) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := p.copyFile(from, to); err != nil {
			return err
		}
		return p.container.Files.Remove(from)
	})
}

func (p *process) each(argv, names []string, s streams, do func(from, to string) error) int {
	if len(names) < 2 {
		return problem(s, argv, "missing file operand")
	}
	to := names[len(names)-1]
	code := 0
	for _, from := range names[:len(names)-1] {
		if err := do(p.path(from), p.target(from, to)); err != nil {
			code = problem(s, argv, "%s: %s", from, why(err))
		}
	}
	return code
}

func (p *process) copyFile(from, to string) error {
	in, err := p.container.Files.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if from == to {
		return fmt.Errorf("it and %s are the same file", to)
	}
	out, err := p.container.Files.Create(to, false)
	if err != nil {
		return err
	}
	return errors.Join(p.copy(out, in), out.Close())
}

func tee(p *process, argv []string, s streams) int {
	set, names, err := flags(argv, "a", "")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	all := []io.Writer{s.out}
	code := 0
	for _, name := range names {
		f, err := p.create(name, has(set, 'a'), s)
		if err != nil {
			code = problem(s, argv, "%s: %s", name, why(err))
			continue
		}
		defer func() { _ = f.Close() }()
		all = append(all, f)
	}
	if err := p.copy(io.MultiWriter(all...), s.in); err != nil {
		return 1
	}
	return code
}
