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

// MaxFileSize is how many bytes a file may have. The largest manifests that people apply, all definitions of a big
// operator in one file, have some 5 MiB.
const MaxFileSize = 8 << 20

// source is where files are: a file system, or the operating system if it is nil.
type source struct{ fs.FS }

// join puts a path in a folder. A path that is absolute stays what it is.
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

// dir is the folder of a file.
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

// readAll reads what is not too much.
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

// plain is an error of the operating system without the path, which the reader is told anyway.
func plain(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}
