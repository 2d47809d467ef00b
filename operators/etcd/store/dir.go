package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Dir is a directory, such as a volume. Nothing outside of it is reached, also not by a symbolic link.
type Dir struct {
	root *os.Root
}

var _ Store = (*Dir)(nil)

// NewDir opens a directory, which has to be there.
func NewDir(dir string) (*Dir, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the volume: %w", err)
	}
	return &Dir{root: root}, nil
}

// Close ends the use of the directory.
func (d *Dir) Close() error { return d.root.Close() }

// partial is the name of a file while it is being written.
const partial = ".partial"

// Put writes a file beside its place, brings it to the disk, and moves it there: a reader never meets half of it, not
// even after the machine has lost its power.
func (d *Dir) Put(_ context.Context, name string, content io.Reader, size int64) (err error) {
	if err := d.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return fmt.Errorf("make the directory of %s: %w", name, err)
	}
	part := name + partial
	f, err := d.root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("store %s: %w", name, err)
			if left := d.root.Remove(part); left != nil && !errors.Is(left, fs.ErrNotExist) {
				err = errors.Join(err, left)
			}
		}
	}()
	written, err := io.Copy(f, content)
	if err == nil && written != size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := d.root.Rename(part, name); err != nil {
		return err
	}
	return d.sync(path.Dir(name))
}

// sync brings the names in a directory to the disk.
func (d *Dir) sync(dir string) error {
	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Get opens a file.
func (d *Dir) Get(_ context.Context, name string) (io.ReadCloser, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// List returns the files whose names begin with a prefix. It looks into the one directory that the prefix is in.
func (d *Dir) List(_ context.Context, prefix string) ([]Object, error) {
	dir, beginning := path.Split(prefix)
	entries, err := fs.ReadDir(d.root.FS(), path.Clean(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	var objects []Object
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !strings.HasPrefix(entry.Name(), beginning) || strings.HasSuffix(entry.Name(), partial) {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", prefix, err)
		}
		objects = append(objects, Object{Name: path.Join(dir, entry.Name()), Size: info.Size()})
	}
	return objects, nil
}

// Delete deletes a file.
func (d *Dir) Delete(_ context.Context, name string) error {
	if err := d.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	return nil
}

// Location is the path on the volume.
func (d *Dir) Location(name string) string { return filepath.ToSlash(name) }
