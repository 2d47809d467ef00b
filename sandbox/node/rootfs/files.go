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
	"syscall"
)

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
