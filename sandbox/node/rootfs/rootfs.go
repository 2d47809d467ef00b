// Package rootfs is the file system of a container of a simulated node: the mounted volumes, the image's own files, and
// a scratch directory for all other files. Nothing else of the machine can be reached: paths are resolved within each
// of these, also through symbolic links.
package rootfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mount is a volume: a directory or a file of this machine.
type Mount struct {
	// Path in the container.
	Path string
	// Host is the path on this machine.
	Host string
	// ReadOnly rejects all changes.
	ReadOnly bool
}

// Options of [New].
type Options struct {
	// Scratch is a directory of this machine for files outside of mounts.
	Scratch string
	// ReadOnly forbids that.
	ReadOnly bool
	// Mounts of volumes; of two at the same place the later holds.
	Mounts []Mount
	// File is the content of one of the image's own files, by its absolute path.
	File func(path string) (string, bool)
}

// View is a container's file system. Its methods take absolute paths in the container, and may be called from any
// goroutine.
type View struct {
	options Options

	mu sync.Mutex
	// removed are the image's files that were deleted.
	removed map[string]bool
}

// New returns a view.
func New(o Options) *View {
	if o.File == nil {
		o.File = func(string) (string, bool) { return "", false }
	}
	o.Mounts = slices.Clone(o.Mounts)
	for i := range o.Mounts {
		o.Mounts[i].Path = Clean(o.Mounts[i].Path)
	}
	// The innermost first.
	slices.Reverse(o.Mounts)
	slices.SortStableFunc(o.Mounts, func(a, b Mount) int { return len(b.Path) - len(a.Path) })
	return &View{options: o, removed: map[string]bool{}}
}

// Clean makes a path absolute and removes redundant elements; a path above the root becomes the root.
func Clean(name string) string { return path.Clean("/" + name) }

// directories exist in every container, even if they are empty.
var directories = []string{
	"/", "/bin", "/dev", "/etc", "/home", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr",
	"/usr/bin", "/usr/local", "/usr/local/bin", "/usr/share", "/var", "/var/lib", "/var/log", "/var/run",
}

// place is the location of a path on this machine.
type place struct {
	root     *os.Root
	name     string // in the root
	readOnly bool
	mounted  bool
}

func (p *place) close() { _ = p.root.Close() }

// locate finds the mount that a path is in, or the scratch directory.
func (v *View) locate(name string) (*place, error) {
	for _, m := range v.options.Mounts {
		rest, in := within(m.Path, name)
		if !in {
			continue
		}
		p := &place{readOnly: m.ReadOnly, mounted: true}
		info, err := os.Stat(m.Host)
		if err != nil {
			return nil, bare(err)
		}
		host := m.Host
		p.name = rest
		if !info.IsDir() {
			if rest != "." {
				return nil, syscall.ENOTDIR
			}
			host, p.name = filepath.Dir(m.Host), filepath.Base(m.Host)
		}
		if p.root, err = os.OpenRoot(host); err != nil {
			return nil, bare(err)
		}
		return p, nil
	}
	root, err := os.OpenRoot(v.options.Scratch)
	if err != nil {
		return nil, bare(err)
	}
	return &place{root: root, name: relative(name), readOnly: v.options.ReadOnly}, nil
}

func relative(name string) string {
	if name == "/" {
		return "."
	}
	return name[1:]
}

// within reports whether a path is a directory or in it, and where.
func within(dir, name string) (rest string, in bool) {
	switch {
	case dir == name:
		return ".", true
	case dir == "/":
		return name[1:], true
	case strings.HasPrefix(name, dir+"/"):
		return name[len(dir)+1:], true
	}
	return "", false
}

// bare leaves out where on this machine it went wrong.
func bare(err error) error {
	if at, is := errors.AsType[*fs.PathError](err); is {
		err = at.Err
	}
	if at, is := errors.AsType[*os.LinkError](err); is {
		err = at.Err
	}
	return err
}

// failure returns the error for the path in the container.
func failure(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: bare(err)}
}

// Open opens a file for reading.
func (v *View) Open(name string) (io.ReadCloser, error) {
	f, err := v.open(Clean(name))
	return f, failure("open", name, err)
}

func (v *View) open(name string) (io.ReadCloser, error) {
	p, err := v.locate(name)
	if err != nil {
		return nil, err
	}
	defer p.close()
	// A pipe must not hold us up.
	f, err := p.root.OpenFile(p.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		return regular(f)
	}
	if p.mounted || !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if content, ok := v.own(name); ok {
		return io.NopCloser(strings.NewReader(content)), nil
	}
	if v.isDirectory(name) {
		return nil, syscall.EISDIR
	}
	return nil, err
}

// regular refuses files that a container cannot have: pipes, sockets and devices.
func regular(f *os.File) (io.ReadCloser, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = syscall.EISDIR
	case !info.Mode().IsRegular():
		err = syscall.EACCES
	default:
		return f, nil
	}
	_ = f.Close()
	return nil, err
}

// own returns the content of a file of the image.
func (v *View) own(name string) (string, bool) {
	v.mu.Lock()
	removed := v.removed[name]
	v.mu.Unlock()
	if removed {
		return "", false
	}
	return v.options.File(name)
}

// isDirectory reports whether a directory exists in the container although it is not stored.
func (v *View) isDirectory(name string) bool {
	if slices.Contains(directories, name) {
		return true
	}
	return slices.ContainsFunc(v.options.Mounts, func(m Mount) bool {
		_, in := within(name, m.Path)
		return in
	})
}

// ReadFile reads a file of at most so many bytes.
func (v *View) ReadFile(name string, limit int64) ([]byte, error) {
	f, err := v.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, limit))
}

// Create opens a file for writing. It keeps the content if appending is set, and removes it otherwise.
func (v *View) Create(name string, appending bool) (io.WriteCloser, error) {
	f, err := v.create(Clean(name), appending)
	if err != nil {
		return nil, failure("create", name, err)
	}
	return f, nil
}

func (v *View) create(name string, appending bool) (io.WriteCloser, error) {
	p, err := v.locate(name)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if p.readOnly {
		return nil, syscall.EROFS
	}
	if !p.mounted {
		if err := v.makeParent(p, name); err != nil {
			return nil, err
		}
		if v.isDirectory(name) {
			return nil, syscall.EISDIR
		}
	}
	if info, err := p.root.Stat(p.name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, syscall.EACCES
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if appending {
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	_, statErr := p.root.Stat(p.name)
	f, err := p.root.OpenFile(p.name, flags, 0o644)
	if err != nil {
		return nil, err
	}
	if content, ok := v.own(name); ok && appending && !p.mounted && errors.Is(statErr, fs.ErrNotExist) {
		if _, err := io.WriteString(f, content); err != nil { // from now on it is ours
			_ = f.Close()
			return nil, err
		}
	}
	return f, nil
}

// makeParent creates the parent directory in the scratch directory, if it exists in the container.
func (v *View) makeParent(p *place, name string) error {
	parent := path.Dir(name)
	if _, err := p.root.Stat(relative(parent)); err == nil || !v.isDirectory(parent) {
		return nil
	}
	return p.root.MkdirAll(relative(parent), 0o755)
}

// Mkdir makes a directory.
func (v *View) Mkdir(name string) error {
	return failure("mkdir", name, v.mkdir(Clean(name)))
}

func (v *View) mkdir(name string) error {
	return v.make(name, func(p *place) error { return p.root.Mkdir(p.name, 0o755) })
}

// Symlink makes a symbolic link. Its target must be beside or below it: programs of this machine that use the container's
// directories follow links, too, and no such link leads them out, even if it is moved.
func (v *View) Symlink(target, name string) error {
	if !filepath.IsLocal(target) {
		return failure("symlink", name, syscall.EPERM)
	}
	return failure("symlink", name, v.make(Clean(name), func(p *place) error { return p.root.Symlink(target, p.name) }))
}

// make calls do with the place of something new.
func (v *View) make(name string, do func(*place) error) error {
	if _, err := v.lstat(name); err == nil {
		return syscall.EEXIST
	}
	p, err := v.locate(name)
	if err != nil {
		return err
	}
	defer p.close()
	if p.readOnly {
		return syscall.EROFS
	}
	if !p.mounted {
		if err := v.makeParent(p, name); err != nil {
			return err
		}
	}
	return do(p)
}

// Chmod sets the permissions of a stored file or directory. Its owner, who is the user of this machine, keeps his.
func (v *View) Chmod(name string, mode fs.FileMode) error {
	p, err := v.locate(Clean(name))
	if err != nil {
		return failure("chmod", name, err)
	}
	defer p.close()
	if p.readOnly {
		return failure("chmod", name, syscall.EROFS)
	}
	keep := fs.FileMode(0o600)
	if info, err := p.root.Stat(p.name); err == nil && info.IsDir() {
		keep = 0o700
	}
	return failure("chmod", name, p.root.Chmod(p.name, mode.Perm()|keep))
}

// Remove removes a file, or a directory with nothing in it.
func (v *View) Remove(name string) error {
	return failure("remove", name, v.remove(Clean(name)))
}

func (v *View) remove(name string) error {
	if v.isDirectory(name) {
		return syscall.EBUSY
	}
	p, err := v.locate(name)
	if err != nil {
		return err
	}
	defer p.close()
	if p.mounted && p.name == "." {
		return syscall.EBUSY
	}
	_, own := v.own(name)
	own = own && !p.mounted
	if _, err := p.root.Lstat(p.name); err != nil && !own {
		return err
	}
	if p.readOnly {
		return syscall.EROFS
	}
	err = p.root.Remove(p.name)
	if own && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		v.mu.Lock()
		v.removed[name] = true
		v.mu.Unlock()
		return nil
	}
	return err
}

// Rename moves a file within the scratch directory or a mount.
func (v *View) Rename(from, to string) error {
	return failure("rename", from, v.rename(Clean(from), Clean(to)))
}

func (v *View) rename(from, to string) error {
	source, err := v.locate(from)
	if err != nil {
		return err
	}
	defer source.close()
	target, err := v.locate(to)
	if err != nil {
		return err
	}
	defer target.close()
	if source.root.Name() != target.root.Name() || !source.mounted && v.isDirectory(path.Dir(to)) {
		return syscall.EXDEV // the caller copies
	}
	if source.readOnly || target.readOnly {
		return syscall.EROFS
	}
	return source.root.Rename(source.name, target.name)
}

// Info describes a file.
type Info struct {
	// Name is the base name.
	Name string
	// Size is the length in bytes.
	Size int64
	// Mode holds the file's type and permissions.
	Mode fs.FileMode
	// ModTime is the time of the last change.
	ModTime time.Time
	// Link is the target of a symbolic link; empty for other files.
	Link string
}

// IsDir reports whether it is a directory.
func (i Info) IsDir() bool { return i.Mode.IsDir() }

// Stat follows symbolic links.
func (v *View) Stat(name string) (Info, error) {
	info, err := v.stat(Clean(name))
	return info, failure("stat", name, err)
}

// Lstat describes a symbolic link itself.
func (v *View) Lstat(name string) (Info, error) {
	info, err := v.lstat(Clean(name))
	return info, failure("lstat", name, err)
}

func (v *View) lstat(name string) (Info, error) {
	p, err := v.locate(name)
	if err != nil {
		return Info{}, err
	}
	defer p.close()
	if info, err := p.root.Lstat(p.name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return p.describe(p.name, path.Base(name), info), nil
	}
	return v.stat(name)
}

// describe returns what is known about a file, by its name in the root.
func (p *place) describe(at, name string, info fs.FileInfo) Info {
	i := Info{Name: name, Size: info.Size(), Mode: info.Mode(), ModTime: info.ModTime()}
	if info.Mode()&fs.ModeSymlink != 0 {
		i.Link, _ = p.root.Readlink(at)
	}
	return i
}

func (v *View) stat(name string) (Info, error) {
	p, err := v.locate(name)
	if err != nil {
		return Info{}, err
	}
	defer p.close()
	info, err := p.root.Stat(p.name)
	if err == nil {
		return p.describe(p.name, path.Base(name), info), nil
	}
	if p.mounted || !errors.Is(err, fs.ErrNotExist) {
		return Info{}, err
	}
	if content, ok := v.own(name); ok {
		return Info{Name: path.Base(name), Size: int64(len(content)), Mode: 0o644}, nil
	}
	if v.isDirectory(name) {
		return Info{Name: path.Base(name), Mode: fs.ModeDir | 0o755}, nil
	}
	return Info{}, err
}

// ReadDir lists a directory, sorted by name. It does not list the image's own files, whose names are not known.
func (v *View) ReadDir(name string) ([]Info, error) {
	list, err := v.readDir(Clean(name))
	return list, failure("open", name, err)
}

func (v *View) readDir(name string) ([]Info, error) {
	p, err := v.locate(name)
	if err != nil {
		return nil, err
	}
	defer p.close()
	found := map[string]Info{}
	if err := p.list(found); err != nil && (p.mounted || !v.isDirectory(name) || !errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	for _, dir := range slices.Concat(directories, v.mountPoints()) {
		rest, in := within(name, dir)
		if !in || rest == "." {
			continue
		}
		child, _, _ := strings.Cut(rest, "/")
		if _, known := found[child]; known || p.mounted && !slices.Contains(v.mountPoints(), dir) {
			continue
		}
		if info, err := v.stat(path.Join(name, child)); err == nil {
			found[child] = info
		}
	}
	list := make([]Info, 0, len(found))
	for _, info := range found {
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func (v *View) mountPoints() []string {
	var points []string
	for _, m := range v.options.Mounts {
		points = append(points, m.Path)
	}
	return points
}

func (p *place) list(found map[string]Info) error {
	info, err := p.root.Stat(p.name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return syscall.ENOTDIR
	}
	dir, err := p.root.Open(p.name)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // gone meanwhile
		}
		found[e.Name()] = p.describe(filepath.Join(p.name, e.Name()), e.Name(), info)
	}
	return nil
}
