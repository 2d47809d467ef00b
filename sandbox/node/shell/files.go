package shell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
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
	o, err := parse(argv, "u")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	return p.inputs(argv, o.names, s, func(_ string, in io.Reader) error { return p.copy(s.out, in) })
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
	o, err := parse(argv, "l a,all 1 A,almost-all d,directory h,human-readable R,recursive")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	if len(o.names) == 0 {
		o.names = []string{"."}
	}
	code := 0
	for i, name := range o.names {
		info, err := p.stat(name)
		if err != nil {
			code = problem(s, argv, "%s: %s", name, why(err))
			continue
		}
		if !info.IsDir() || o.has("d") {
			info.Name = name
			list(s, []rootfs.Info{info}, o)
			continue
		}
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		if err := p.listDir(o, name, s); err != nil {
			code = problem(s, argv, "%s: %s", name, why(err))
		}
	}
	return code
}

// listDir lists a directory, with -R also those in it.
func (p *process) listDir(o options, name string, s streams) error {
	entries, err := p.container.Files.ReadDir(p.path(name))
	if err != nil {
		return err
	}
	if !o.has("a", "A") {
		entries = slices.DeleteFunc(entries, func(e rootfs.Info) bool { return strings.HasPrefix(e.Name, ".") })
	}
	if o.has("R") || len(o.names) > 1 {
		fmt.Fprintf(s.out, "%s:\n", name)
	}
	list(s, entries, o)
	for _, e := range entries {
		if !o.has("R") || !e.IsDir() {
			continue
		}
		if p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		fmt.Fprintln(s.out)
		if err := p.listDir(o, strings.TrimSuffix(name, "/")+"/"+e.Name, s); err != nil {
			return err
		}
	}
	return nil
}

// walk calls visit with a file and, if it is a directory, with everything below it, which it does not enter if visit
// returns [fs.SkipDir]. It does not follow symbolic links. Names are as the given one begins.
func (p *process) walk(name string, visit func(name string, info rootfs.Info) error) error {
	info, err := p.container.Files.Lstat(p.path(name))
	if err != nil {
		return err
	}
	return p.walkFrom(name, info, visit)
}

func (p *process) walkFrom(name string, info rootfs.Info, visit func(name string, info rootfs.Info) error) error {
	if p.ctx.Err() != nil {
		return p.ctx.Err()
	}
	err := visit(name, info)
	if err != nil || !info.IsDir() {
		if info.IsDir() && errors.Is(err, fs.SkipDir) {
			return nil
		}
		return err
	}
	entries, err := p.container.Files.ReadDir(p.path(name))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := p.walkFrom(strings.TrimSuffix(name, "/")+"/"+e.Name, e, visit); err != nil {
			return err
		}
	}
	return nil
}

func (p *process) stat(name string) (rootfs.Info, error) {
	if full := p.path(name); device(full) {
		return rootfs.Info{Name: path.Base(full), Mode: fs.ModeDevice | fs.ModeCharDevice | 0o666}, nil
	}
	return p.container.Files.Stat(p.path(name))
}

func list(s streams, entries []rootfs.Info, o options) {
	for _, e := range entries {
		if !o.has("l") {
			fmt.Fprintln(s.out, e.Name)
			continue
		}
		name := e.Name
		if e.Link != "" {
			name += " -> " + e.Link
		}
		size := strconv.FormatInt(e.Size, 10)
		if o.has("h") {
			size = human(e.Size)
		}
		fmt.Fprintf(s.out, "%s %4d %-8s %-8s %9s %s %s\n", mode(e.Mode), 1, "root", "root", size,
			e.ModTime.UTC().Format("Jan _2 15:04"), name)
	}
}

// human formats a size as ls -h does: 1.5K.
func human(size int64) string {
	if size < 1024 {
		return strconv.FormatInt(size, 10)
	}
	value, unit := float64(size)/1024, 0
	for ; value >= 1024; unit++ {
		value /= 1024
	}
	return fmt.Sprintf("%.1f%c", value, "KMGTPE"[unit])
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
	o, err := parse(argv, "")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	code := 0
	for _, name := range o.names {
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
	o, err := parse(argv, "")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	code := 0
	for _, name := range o.names {
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
	o, err := parse(argv, "p,parents v,verbose")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	code := 0
	for _, name := range o.names {
		made := true
		err := p.container.Files.Mkdir(p.path(name))
		if o.has("p") {
			made = err == nil || !errors.Is(err, fs.ErrExist)
			err = p.mkdirAll(p.path(name))
		}
		if err != nil {
			code = problem(s, argv, "can't create directory '%s': %s", name, why(err))
		} else if made && o.has("v") {
			fmt.Fprintf(s.out, "created directory: '%s'\n", name)
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
	o, err := parse(argv, "r,recursive R f,force v,verbose")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	code := 0
	for _, name := range o.names {
		err := p.remove(p.path(name), "", o.has("r", "R"), func(rest string) {
			if o.has("v") {
				fmt.Fprintf(s.out, "removed '%s'\n", strings.TrimSuffix(name, "/")+rest)
			}
		})
		if err != nil && (!o.has("f") || !errors.Is(err, fs.ErrNotExist)) {
			code = problem(s, argv, "can't remove '%s': %s", name, why(err))
		}
	}
	return code
}

// remove removes what is at root+rest, with everything in it or not, and tells of each thing that is done by the rest of its name.
func (p *process) remove(root, rest string, all bool, done func(rest string)) error {
	name := path.Join(root, rest)
	info, err := p.container.Files.Lstat(name)
	if err == nil && info.IsDir() {
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
			if err := p.remove(root, rest+"/"+e.Name, true, done); err != nil {
				return err
			}
		}
	}
	if err = p.container.Files.Remove(name); err == nil {
		done(rest)
	}
	return err
}

// target returns the path to which a file is copied or moved.
func (p *process) target(from, to string) string {
	if info, err := p.container.Files.Stat(p.path(to)); err == nil && info.IsDir() {
		return path.Join(p.path(to), path.Base(from))
	}
	return p.path(to)
}

func cp(p *process, argv []string, s streams) int {
	o, err := parse(argv, "f,force p r,recursive R a,archive v,verbose")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	return p.each(argv, o, s, func(from, to string, done func(rest string)) error {
		info, err := p.container.Files.Stat(from)
		if err != nil || !info.IsDir() {
			if err = p.copyFile(from, to); err == nil {
				done("")
			}
			return err
		}
		if !o.has("r", "R", "a") {
			return errors.New("it is a directory (without -r nothing of it is copied)")
		}
		return p.copyTree(from, to, done)
	})
}

// copyTree copies a directory with everything in it, and tells of each thing that is done by the rest of its name.
func (p *process) copyTree(from, to string, done func(rest string)) error {
	if to == from || strings.HasPrefix(to, strings.TrimSuffix(from, "/")+"/") {
		return fmt.Errorf("it cannot be copied into itself, %s", to)
	}
	return p.walk(from, func(name string, info rootfs.Info) (err error) {
		rest := strings.TrimPrefix(name, from)
		switch target := to + rest; {
		case info.IsDir():
			err = p.mkdirAll(target)
		case info.Link != "":
			err = p.container.Files.Symlink(info.Link, target)
		default:
			err = p.copyFile(name, target)
		}
		if err == nil {
			done(rest)
		}
		return err
	})
}

func mv(p *process, argv []string, s streams) int {
	o, err := parse(argv, "f,force v,verbose")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	return p.each(argv, o, s, func(from, to string, done func(rest string)) error {
		err := p.container.Files.Rename(from, to)
		if errors.Is(err, syscall.EXDEV) || errors.Is(err, fs.ErrNotExist) {
			if info, failed := p.container.Files.Lstat(from); failed == nil && info.IsDir() {
				err = p.copyTree(from, to, func(string) {})
			} else {
				err = p.copyFile(from, to)
			}
			if err == nil {
				err = p.remove(from, "", true, func(string) {})
			}
		}
		if err == nil {
			done("")
		}
		return err
	})
}

// each copies or moves one thing after the other to the last name, and with -v tells what do has done.
func (p *process) each(argv []string, o options, s streams, do func(from, to string, done func(rest string)) error) int {
	if len(o.names) < 2 {
		return problem(s, argv, "missing file operand")
	}
	to := o.names[len(o.names)-1]
	code := 0
	for _, from := range o.names[:len(o.names)-1] {
		target := p.target(from, to)
		err := do(p.path(from), target, func(rest string) {
			if o.has("v") {
				fmt.Fprintf(s.out, "'%s' -> '%s'\n", strings.TrimSuffix(from, "/")+rest, target+rest)
			}
		})
		if err != nil {
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
	if err := errors.Join(p.copy(out, in), out.Close()); err != nil {
		return err
	}
	info, err := p.container.Files.Stat(from)
	if err != nil || info.Mode.Perm()&0o111 == 0 {
		return err
	}
	return p.container.Files.Chmod(to, info.Mode)
}

func tee(p *process, argv []string, s streams) int {
	o, err := parse(argv, "a,append")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	all := []io.Writer{s.out}
	code := 0
	for _, name := range o.names {
		f, err := p.create(name, o.has("a"), s)
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
