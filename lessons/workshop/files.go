package workshop

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Files are the files of the operators at some time, by their paths.
type Files map[string][]byte

// Save returns the files as they are now.
func (w *Workshop) Save() (Files, error) {
	out := Files{}
	for _, op := range w.owns {
		if err := read(op.path(), out, func(string) bool { return true }); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Restore brings files back, and removes those that came later. Operators that begin from now on begin with them. The
// workshop is held meanwhile.
func (w *Workshop) Restore(files Files) error {
	now, err := w.Save()
	if err != nil {
		return err
	}
	var errs []error
	for file := range now {
		if _, there := files[file]; !there {
			errs = append(errs, os.Remove(file))
		}
	}
	for file, text := range files {
		if have, there := now[file]; !there || string(have) != string(text) {
			errs = append(errs, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, text, 0o600))
		}
	}
	for _, op := range w.owns {
		errs = append(errs, removeEmpty(op.path()))
		op.forget()
	}
	return errors.Join(errs...)
}

// removeEmpty removes a directory and those in it, as far as no file is in them.
func removeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil //nolint:nilerr // it is gone, or a file
	}
	for _, e := range entries {
		if err := removeEmpty(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if entries, err = os.ReadDir(dir); err != nil || len(entries) > 0 {
		return err
	}
	return os.Remove(dir)
}

// SetAside renames what an earlier sitting has left of the operators, with setAside, and returns the names as they were.
// original returns the text that a file has at the beginning of the lesson: one that still has it stays.
func (w *Workshop) SetAside(original func(name string) ([]byte, error), setAside func(path string) (string, error)) (moved map[string]string, err error) {
	moved = map[string]string{}
	for _, op := range w.owns {
		name := filepath.Base(op.path())
		if _, err := os.Lstat(op.path()); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if have, err := os.ReadFile(op.path()); err == nil {
			if text, err := original(name); err == nil && string(text) == string(have) {
				continue
			}
		}
		to, err := setAside(op.path())
		if err != nil {
			return moved, err
		}
		moved[name] = filepath.Base(to)
	}
	return moved, nil
}

// read reads a file, or the files below a directory that are wanted. One that is missing has none.
func read(path string, into Files, wanted func(path string) bool) error {
	err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !d.Type().IsRegular() || !wanted(file) {
			return err
		}
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) { // an editor's own file, which has gone meanwhile
			return nil
		}
		into[file] = text
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// digestOf returns a digest of the files of an operator that decide how it runs; empty if there are none.
func digestOf(path string) string {
	files := Files{}
	if err := read(path, files, decides); err != nil || len(files) == 0 {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", files)) // maps are printed in the order of their keys
	return hex.EncodeToString(sum[:])
}

// decides reports whether a file decides how an operator runs, and is not an editor's own, or documentation.
func decides(file string) bool {
	name := filepath.Base(file)
	return !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, "~") && filepath.Ext(name) != ".md" && !strings.HasSuffix(name, "_test.go")
}
