// Package rootfs is the file system of a container of a simulated node: the mounted volumes, the image's own files, and
// a scratch directory for all other files. Nothing else of the machine can be reached: paths are resolved within each
// of these, also through symbolic links.
package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
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
