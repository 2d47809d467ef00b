package format

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// MaxFileSize is the largest size of a file in bytes. The largest common manifests, all definitions of a big operator
// in one file, have about 5 MiB.
const MaxFileSize = 8 << 20

// source is the file system to read from; the operating system's if it is nil.
type source struct{ fs.FS }

// join puts a path in a folder. An absolute path stays unchanged.
func (s source) join(folder, name string) string {
	if s.FS != nil {
		if path.IsAbs(name) {
			return name
		}
		return path.Join(folder, name)
	}
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(folder, name)
}

// dir returns the folder of a file.
func (s source) dir(name string) string {
	if s.FS != nil {
		return path.Dir(name)
	}
	return filepath.Dir(name)
}

func (s source) stat(name string) (fs.FileInfo, error) {
	if s.FS != nil {
		return fs.Stat(s.FS, path.Clean(name))
	}
	return os.Stat(name)
}

func (s source) readDir(name string) ([]fs.DirEntry, error) {
	if s.FS != nil {
		return fs.ReadDir(s.FS, path.Clean(name))
	}
	return os.ReadDir(name)
}

func (s source) glob(pattern string) ([]string, error) {
	if s.FS != nil {
		return fs.Glob(s.FS, pattern)
	}
	return filepath.Glob(pattern)
}

func (s source) open(name string) (fs.File, error) {
	if s.FS != nil {
		return s.Open(path.Clean(name))
	}
	return os.Open(name)
}

// read returns the whole file. The error is a Problem.
func (s source) read(name string) ([]byte, error) {
	f, err := s.open(name)
	if err != nil {
		return nil, Problem{File: name, Message: plain(err)}
	}
	defer f.Close() //nolint:errcheck // it was only read
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, Problem{File: name, Message: "is a folder, not a file"}
	}
	return readAll(f, name)
}

// readAll reads a file of limited size.
func readAll(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxFileSize+1))
	if err != nil {
		return nil, Problem{File: name, Message: plain(err)}
	}
	if len(data) > MaxFileSize {
		return nil, Problem{
			File:    name,
			Message: fmt.Sprintf("is larger than %d MiB", MaxFileSize>>20),
			Hint:    "split it into several files, a pattern such as manifests/*.yaml names them all",
		}
	}
	return data, nil
}

// plain returns the text of an error of the operating system without the path, which the message names anyway.
func plain(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}
