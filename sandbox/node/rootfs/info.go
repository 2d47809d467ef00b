package rootfs

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

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
