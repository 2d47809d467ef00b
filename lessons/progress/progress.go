// Package progress records which lessons are done, in a file that people can read.
package progress

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/operator-lab/operator-lab/lessons/book"
)

// FileName is the name of the file in the state directory.
const FileName = "lessons.txt"

// File is the recorded progress. It has the content of the file when it was opened, and the changes made with it since.
// Each change is applied to the current file, so that concurrent processes do not undo each other's changes.
type File struct {
	path string
	notes
	now func() time.Time
}

// Open reads the file at a path. A missing file means that nothing is done yet. If the error is [*Damaged], the valid
// lines were read all the same.
func Open(path string) (*File, error) {
	f := &File{path: path, now: time.Now}
	_, err := f.load()
	if _, damaged := errors.AsType[*Damaged](err); err != nil && !damaged {
		return nil, err
	}
	return f, err
}

// Damaged is the error for a file that is not a valid file of this version. Its content is not lost: before the file is
// replaced it is kept under another name.
type Damaged struct {
	// Path is the path of the file.
	Path string
	// Line is the number of the invalid line, from 1.
	Line int
	// Reason says what is wrong with the line.
	Reason string
}

// Error names the file, the line and the reason.
func (d *Damaged) Error() string { return fmt.Sprintf("%s:%d: %s", d.Path, d.Line, d.Reason) }

// Hint says what the user can do.
func (d *Damaged) Hint() string {
	return "go on: what can be read counts, and the file is kept as " + filepath.Base(d.Path) + ".bak-<time> before another is written; or set it right"
}

// Done reports whether a task is done.
func (f *File) Done(lesson, task string) bool { return f.find(lesson, task) >= 0 }

// Lesson returns the number of done tasks of a lesson, and of all its tasks.
func (f *File) Lesson(l *book.Lesson) (done, total int) {
	for _, t := range l.Tasks {
		if f.Done(l.ID, t.ID) {
			done++
		}
	}
	return done, len(l.Tasks)
}

// Changed reports whether a task was done in another version of the lesson. It stays done.
func (f *File) Changed(l *book.Lesson) bool {
	return slices.ContainsFunc(l.Tasks, func(t *book.Task) bool {
		i := f.find(l.ID, t.ID)
		return i >= 0 && f.done[i].digest != l.Digest
	})
}

// Last returns where the learner was last; both are empty at the beginning.
func (f *File) Last() (lesson, task string) { return f.last[0], f.last[1] }

// Mark records that a task is done; digest is the lesson's digest.
func (f *File) Mark(lesson, task, digest string) error {
	if err := words(lesson, task, digest); err != nil {
		return err
	}
	return f.change(func(n *notes) bool {
		i := n.find(lesson, task)
		if i >= 0 && n.done[i].digest == digest {
			return false
		}
		if i >= 0 {
			n.done = slices.Delete(n.done, i, i+1)
		}
		n.done = append(n.done, note{lesson, task, f.now().UTC().Truncate(time.Second), digest})
		return true
	})
}

// SetLast records where the learner is.
func (f *File) SetLast(lesson, task string) error {
	if err := words(lesson, task); err != nil {
		return err
	}
	return f.change(func(n *notes) bool {
		was := n.last
		n.last = [2]string{lesson, task}
		return n.last != was
	})
}

// words returns an error for a word that the file format cannot hold.
func words(all ...string) error {
	for _, w := range all {
		if len(w) > longestWord || len(strings.Fields(w)) != 1 || strings.TrimSpace(w) != w || !printable(w) {
			return fmt.Errorf("%q cannot be kept: it is not a word", w)
		}
	}
	return nil
}

// change changes the current file. do reports whether it changed anything.
func (f *File) change(do func(*notes) bool) error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("keep the progress: %w", err)
	}
	unlock, err := lock(f.path + ".lock")
	if err != nil {
		return fmt.Errorf("keep the progress: %w", err)
	}
	defer unlock()
	old, err := f.load()
	_, damaged := errors.AsType[*Damaged](err)
	if err != nil && !damaged {
		return err
	}
	if !do(&f.notes) {
		return nil
	}
	if damaged {
		if err := keep(f.path, old, f.now()); err != nil {
			return fmt.Errorf("keep the damaged file: %w", err)
		}
	}
	return write(f.path, f.write())
}

// load reads the current file.
func (f *File) load() ([]byte, error) {
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.notes = notes{}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the progress: %w", err)
	}
	found, wrong := parse(data)
	f.notes = found
	if wrong != nil {
		wrong.Path = f.path
		return data, wrong
	}
	return data, nil
}

// lock takes a lock, and waits for its holder, which never holds it longer than it takes to write the file.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// keep writes the old content of a file under a free name.
func keep(path string, data []byte, now time.Time) error {
	base := path + ".bak-" + now.UTC().Format("20060102-150405")
	for name, n := base, 2; ; name, n = fmt.Sprintf("%s-%d", base, n), n+1 {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		return errors.Join(err, f.Sync(), f.Close())
	}
}

// write replaces a file atomically, so that a crash leaves either the old or the new one.
func write(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("keep the progress: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("keep the progress: %w", err), os.Remove(f.Name()))
		}
	}()
	_, err = bytes.NewReader(data).WriteTo(f)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
