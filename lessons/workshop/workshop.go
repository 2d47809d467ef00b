// Package workshop runs the operators of a lesson that the learner writes in the directory of the lesson: projects, which
// are built, and programs that answer webhooks. When one is saved, it begins another life with what was saved; the cluster
// stays as it is. A copy of the files is kept for each task, so that an undo brings them back, too.
package workshop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Options are the options of [New].
type Options struct {
	// Dir is the learner's directory for the lesson. It is made if it is missing.
	Dir string
	// Operators are those of the lesson. The bundled ones among them are left out.
	Operators []book.Operator
	// Environment returns variables for programs that run in the sandbox. It is called before each run.
	Environment func() []string
	// Language is that of the notes in the journal.
	Language book.Language
	// Loaded is called after an operator was started for the first time. Default: not called.
	Loaded func()
}

// Workshop runs the operators that a learner writes. All methods may be called from any goroutine.
type Workshop struct {
	options Options
	owns    []own
	lab     *lab.Lab
	watcher *fsnotify.Watcher
	working sync.WaitGroup

	// acting is held by [Workshop.Refresh] and [Workshop.Hold].
	acting sync.Mutex
	mu     sync.Mutex
	stop   context.CancelFunc // ends the refresh under way
}

// own is one of the operators.
type own interface {
	lab.Program
	// path returns the path of its file or folder.
	path() string
	// look starts the operator, or starts it anew, if its files have changed. It returns what to tell the learner, in the
	// journal, and whether it was started for the first time.
	look(context.Context, *lab.Lab) (note string, first bool)
	// forget has the next life begin with what the files are then.
	forget()
	close()
}

// New returns a workshop for the operators that the learner writes; nil if there is none. Nothing runs before
// [Workshop.Follow].
func New(o Options) (*Workshop, error) {
	w := &Workshop{options: o}
	for _, op := range o.Operators {
		switch {
		case op.Project:
			w.owns = append(w.owns, &project{workshop: w, name: op.Name})
		case op.Hook != "":
			w.owns = append(w.owns, newHooked(w, op))
		}
	}
	if len(w.owns) == 0 {
		return nil, nil
	}
	return w, os.MkdirAll(o.Dir, 0o700)
}

// Programs returns the operators for the lab.
func (w *Workshop) Programs() []lab.Program {
	var out []lab.Program
	for _, op := range w.owns {
		out = append(out, op)
	}
	return out
}

// Follow follows changes of the files until the context ends or the workshop is closed.
func (w *Workshop) Follow(ctx context.Context, l *lab.Lab) (err error) {
	w.lab = l
	if w.watcher, err = fsnotify.NewWatcher(); err != nil {
		return err
	}
	if err := w.watchAll(); err != nil {
		return err
	}
	w.working.Go(func() { w.follow(ctx) })
	return nil
}

// watchAll watches the learner's directory and the folders of projects in it.
func (w *Workshop) watchAll() error {
	err := w.watcher.Add(w.options.Dir)
	for _, op := range w.owns {
		if _, is := op.(*project); !is {
			continue
		}
		walked := filepath.WalkDir(op.path(), func(file string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			return w.watcher.Add(file)
		})
		if !errors.Is(walked, fs.ErrNotExist) {
			err = errors.Join(err, walked)
		}
	}
	return err
}

// savePause is how long the files must have been left alone before they are looked at: an editor writes several.
const savePause = 150 * time.Millisecond

func (w *Workshop) follow(ctx context.Context) {
	saved := time.NewTimer(0)
	defer saved.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-w.watcher.Events:
			if !open {
				return
			}
			if !e.Has(fsnotify.Chmod) {
				saved.Reset(savePause)
			}
		case _, open := <-w.watcher.Errors: // some changes may have been missed
			if !open {
				return
			}
			saved.Reset(savePause)
		case <-saved.C:
			_ = w.watchAll() // a folder that is gone again is looked for at the next change
			w.Refresh(ctx)
		}
	}
}

// Refresh has each operator run what its files are now, and returns when what has changed is built and runs, or the learner was
// told why it does not. [Workshop.Follow] was called before.
func (w *Workshop) Refresh(ctx context.Context) {
	w.acting.Lock()
	defer w.acting.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	w.stop = cancel
	w.mu.Unlock()
	for _, op := range w.owns {
		note, first := op.look(ctx, w.lab)
		if note != "" && ctx.Err() == nil {
			w.tell(note)
		}
		if first && w.options.Loaded != nil {
			go w.options.Loaded() // it may wait for who holds the workshop
		}
	}
}

// tell tells the learner something, in the journal.
func (w *Workshop) tell(note string) {
	w.lab.Journal().Append(trace.Event{Kind: trace.KindNote, Actor: "lab", Message: note})
}

// textf formats one of two texts, in the learner's language.
func (w *Workshop) textf(english, japanese string, arguments ...any) string {
	return fmt.Sprintf(w.options.Language.Choose(english, japanese), arguments...)
}

// Hold ends the refresh under way, and keeps others from beginning until release is called.
func (w *Workshop) Hold() (release func()) {
	w.mu.Lock()
	if w.stop != nil {
		w.stop()
	}
	w.mu.Unlock()
	w.acting.Lock()
	return w.acting.Unlock
}

// Close ends following the files, and what is left of the operators' processes. The lab is closed before.
func (w *Workshop) Close() error {
	w.Hold()() // a build may be under way
	var err error
	if w.watcher != nil {
		err = w.watcher.Close()
	}
	w.working.Wait()
	for _, op := range w.owns {
		op.close()
	}
	return err
}
