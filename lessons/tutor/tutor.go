// Package tutor holds a lesson: it brings a cluster to where a task starts, looks whether the learner has done it, says
// what is still missing, and takes the cluster back to the start when asked to.
//
// All that it checks and does is in the scenario files of the lesson, and scenarios/runner runs them: there is one
// engine. A task is done when all of its checks hold at the same time.
package tutor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/progress"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// Room is where a lesson is held: a sandbox with a lab in it, which nobody else uses.
type Room struct {
	Sandbox *sandbox.Sandbox
	Lab     *lab.Lab
	// Kubectl is the program that scripts find by that name. Default: that on the PATH.
	Kubectl string
	// Environment has more variables for scripts, as NAME=value.
	Environment []string
}

// Options of [New].
type Options struct {
	Room   Room
	Lesson *book.Lesson
	// Next is the lesson after it; nil at the end of the book.
	Next *book.Lesson
	// Language of what the learner reads. Default: English.
	Language book.Language
	// Progress remembers which tasks were done. Default: nothing does.
	Progress *progress.File
	// Dir is where the learner has the lesson's manifests. Default: none are written.
	Dir string
	// Say is told what is going on while the learner waits, in the language of the lesson. Default: nobody is.
	Say func(text string)
	// Journal is made anew for each undo by the lab; Moved is told of it, before operators write into it. Default: nobody.
	Moved func(*trace.Journal)
}

// Tutor holds one lesson. All methods may be called from any goroutine.
type Tutor struct {
	options    Options
	connection *runner.Connection

	// acting is held by what must not happen at the same time: a look at the checks, a start, an undo.
	acting sync.Mutex
	poke   chan struct{}

	mu      sync.Mutex
	view    View
	task    int // index of the task
	start   start
	changed chan struct{}
	// suspected is what is wrong, if it stays so, and since when.
	suspected      string
	suspectedSince time.Time
}

// start is how it was when a task began.
type start struct {
	checkpoint *sandbox.Checkpoint
	lab        lab.State
	surface    surface
	values     map[string]any
}

// New returns a tutor who has not begun. The operators of the lesson need not run yet.
func New(o Options) *Tutor {
	if o.Language == "" {
		o.Language = book.English
	}
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if o.Moved == nil {
		o.Moved = func(*trace.Journal) {}
	}
	config := o.Room.Sandbox.Config()
	config.UserAgent = Actor
	t := &Tutor{
		options: o, connection: runner.Connect(config, o.Room.Sandbox.Kubeconfig()),
		poke: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	t.turnTo(0)
	return t
}

// Actor is who does in the cluster what the tutor does, in the journal.
const Actor = "lesson"

// Lesson that is held.
func (t *Tutor) Lesson() *book.Lesson { return t.options.Lesson }

// Language of what the learner reads.
func (t *Tutor) Language() book.Language { return t.options.Language }

// Begin loads the operators of the lesson and brings the cluster to the start of the first task that is not done, or
// of the first one if all are. What comes before it is solved on the way.
func (t *Tutor) Begin(ctx context.Context) error { return t.BeginAt(ctx, t.firstUndone()) }

// BeginAt begins with a task by its index.
func (t *Tutor) BeginAt(ctx context.Context, index int) error {
	t.acting.Lock()
	defer t.acting.Unlock()
	if err := t.writeFiles(false); err != nil {
		return err
	}
	for _, op := range t.options.Lesson.Operators {
		spec := v1alpha1.OperatorSpec{Variant: op.Variant, Parameters: op.Parameters}
		if _, err := t.options.Room.Lab.Load(ctx, op.Name, spec); err != nil {
			return fmt.Errorf("operator %s: %w", op.Name, err)
		}
	}
	for i := range index {
		t.options.Say(t.t("solving task %d, which is done", "完了済みのタスク %d を再現しています", i+1))
		t.turnTo(i)
		if err := errors.Join(t.setUp(ctx), t.solve(ctx), t.awaitDone(ctx)); err != nil {
			return err
		}
	}
	t.turnTo(index)
	return t.startTask(ctx)
}

// firstUndone is the index of the first task that is not done; 0 if all are.
func (t *Tutor) firstUndone() int {
	if t.options.Progress == nil {
		return 0
	}
	return max(0, slices.IndexFunc(t.options.Lesson.Tasks, func(task *book.Task) bool {
		return !t.options.Progress.Done(t.options.Lesson.ID, task.ID)
	}))
}

// Watch looks at the checks of the task whenever the cluster or the journal has changed, until ctx ends.
func (t *Tutor) Watch(ctx context.Context) {
	journal := t.options.Room.Lab.Journal()
	grown, cancel := journal.Subscribe()
	defer func() { cancel() }()
	for t.awaitNews(ctx, grown) {
		if t.acting.TryLock() { // else somebody acts, and looks by themselves
			_ = t.look(ctx) // what could not be told is told by the next look
			t.acting.Unlock()
		}
		if now := t.options.Room.Lab.Journal(); now != journal { // there was an undo
			cancel()
			journal = now
			grown, cancel = now.Subscribe()
		}
	}
}

// awaitNews returns when there may be something new to see, but not at once after the last look. It reports false when
// ctx has ended.
func (t *Tutor) awaitNews(ctx context.Context, grown <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(lookPause):
	}
	select {
	case <-ctx.Done():
		return false
	case <-grown:
	case <-t.poke:
	case <-time.After(t.lookAgain()):
	}
	return true
}

// What is written into the cluster is looked at at once, but not more often than this. What nobody writes, such as a
// web page, is looked at every now and then.
const (
	lookPause   = 150 * time.Millisecond
	lookAtLeast = 2 * time.Second
)

// Poke says that something may have changed: a line of the audit log, for one.
func (t *Tutor) Poke() {
	select {
	case t.poke <- struct{}{}:
	default:
	}
}

// View is what the learner is to see now.
func (t *Tutor) View() View {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.view.clone()
}

// Changed is closed when the view next changes.
func (t *Tutor) Changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// show changes the view, and tells those who wait for that.
func (t *Tutor) show(change func(*View)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.view.clone()
	change(&t.view)
	if before.same(t.view) {
		return
	}
	t.view.Serial++
	close(t.changed)
	t.changed = make(chan struct{})
}

// current is the task that is being done.
func (t *Tutor) current() *book.Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.options.Lesson.Tasks[t.task]
}

// Tell says to whom it is told what is going on while the learner waits, from now on.
func (t *Tutor) Tell(say func(text string)) {
	t.acting.Lock()
	defer t.acting.Unlock()
	t.options.Say = say
}

// t chooses between the languages, and fills in.
func (t *Tutor) t(english, japanese string, arguments ...any) string {
	text := english
	if t.options.Language == book.Japanese {
		text = japanese
	}
	return fmt.Sprintf(text, arguments...)
}
