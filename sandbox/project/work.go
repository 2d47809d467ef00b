package project

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/operator-lab/operator-lab/sandbox"
)

// Work is the private directory of a project or program, which is kept between its runs. A lock keeps other runs out of
// it: those at the same time have others.
type Work struct {
	// Dir is its path.
	Dir  string
	lock *os.File
}

// unused is how long a private directory is kept after its last run. One whose project is gone is not kept.
const unused = 30 * 24 * time.Hour

// Files of a private directory: the lock, whose time is that of the last run, and the path of the project.
const (
	lockName   = "lock"
	sourceName = "source"
)

// OpenWork makes the private directory of a project or program, below the state directory, and locks it until it is
// closed. If another run has it, as when a project runs in a lesson and is verified, it is one with -2 in its name, and
// so on. It removes those of others that are not needed any more.
func OpenWork(of string) (*Work, error) {
	state, err := sandbox.StateDir()
	if err != nil {
		return nil, err
	}
	full, err := filepath.Abs(of)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(full))
	first := filepath.Join(state, "projects", fmt.Sprintf("%s-%x", filepath.Base(full), sum[:4]))
	w := &Work{Dir: first}
	for n := 2; ; n++ {
		if err := os.MkdirAll(w.Dir, 0o700); err != nil {
			return nil, err
		}
		if w.lock, err = lockDir(w.Dir); err == nil {
			break
		} else if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, err
		}
		w.Dir = fmt.Sprintf("%s-%d", first, n)
	}
	now := time.Now()
	// What was killed has left its files.
	if err := errors.Join(os.RemoveAll(filepath.Join(w.Dir, ansibleRuns)), os.Chtimes(w.lock.Name(), now, now), os.WriteFile(filepath.Join(w.Dir, sourceName), []byte(full), 0o600)); err != nil {
		w.Close()
		return nil, err
	}
	clearWork(filepath.Dir(w.Dir), now)
	return w, nil
}

// Close lets others use the directory.
func (w *Work) Close() { _ = w.lock.Close() }

// lockDir locks a directory. The error is EWOULDBLOCK if somebody else has it.
func lockDir(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	held, err := lock.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = os.Stat(lock.Name()); err == nil && !os.SameFile(held, there) {
			err = syscall.EWOULDBLOCK // it was cleared meanwhile, and somebody else has made it anew
		}
	}
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return lock, nil
}

// clearWork removes the private directories below a directory whose projects are gone or were not run for long. One that
// somebody uses stays, and so does one that cannot be removed.
func clearWork(in string, now time.Time) {
	entries, err := os.ReadDir(in)
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(in, e.Name())
		info, err := os.Stat(filepath.Join(dir, lockName))
		if err != nil {
			continue
		}
		needed := now.Sub(info.ModTime()) < unused
		if source, err := os.ReadFile(filepath.Join(dir, sourceName)); err == nil {
			_, err = os.Stat(string(source))
			needed = needed && !errors.Is(err, fs.ErrNotExist)
		}
		if needed {
			continue
		}
		if lock, err := lockDir(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = lock.Close()
		}
	}
}
