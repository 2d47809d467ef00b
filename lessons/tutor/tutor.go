// Package tutor runs a lesson: it brings a cluster to the start of a task, checks whether the learner has done it, says
// what is still missing, and undoes everything back to the start on request.
//
// All checks and actions are scenario files of the lesson, which scenarios/runner runs. A task is done when all of its
// checks hold at the same time.
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
	"github.com/operator-lab/operator-lab/lessons/workshop"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// Options are the options of [New]. Sandbox, Lab and Lesson are required.
type Options struct {
	// Sandbox is the running sandbox of the lesson. Nobody else uses it.
	Sandbox *sandbox.Sandbox
	// Lab is the lab in the sandbox.
	Lab *lab.Lab
	// Kubectl is the program that scripts find as kubectl. Default: kubectl on the PATH.
	Kubectl string
	// Environment holds additional variables for scripts, as NAME=value.
	Environment []string
	// Lesson is the lesson.
	Lesson *book.Lesson
	// Next is the lesson that follows; nil at the end of the book.
	Next *book.Lesson
	// Language is the language of the learner's texts. Default: English.
	Language book.Language
	// Progress records which tasks were done. Default: nothing is recorded.
	Progress *progress.File
	// Review remembers the tasks of the sitting, and what was predicted wrongly. Default: nothing is remembered.
	Review *Review
	// Dir is the learner's directory for the lesson's manifests. Default: none are written.
	Dir string
	// Workshop runs the operators that the learner writes in Dir. Default: there are none.
	Workshop *workshop.Workshop
	// Say gets messages about the progress of long actions, in the language of the lesson. Default: they are dropped.
	Say func(text string)
	// Moved is called with the new journal after each undo, before operators write into it. Default: not called.
	Moved func(*trace.Journal)
}

// Tutor runs one lesson. All methods may be called from any goroutine.
type Tutor struct {
	currentView
	options Options
	parts   parts
	delay   noticeDelay

	// acting is held during a look at the checks, a start or an undo, which must not overlap.
	acting sync.Mutex
	poke   chan struct{}

	mu     sync.Mutex
	task   int // index of the task
	start  start
	starts map[int]start // those that can be restored, by the index of the task
}

// start is the state at the beginning of a task.
type start struct {
	checkpoint *sandbox.Checkpoint
	lab        lab.State
	own        workshop.Files
	objects    inventory
	values     map[string]any
}

// New returns a tutor; [Tutor.Begin] starts the lesson. The operators of the lesson need not run yet.
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
	config := o.Sandbox.Config()
	config.UserAgent = Actor
	t := &Tutor{currentView: currentView{changed: make(chan struct{})}, options: o, poke: make(chan struct{}, 1), starts: map[int]start{}}
	t.parts = parts{runner.Options{
		Configuration: configuration(), Connection: runner.Connect(config, o.Sandbox.Kubeconfig()), Kubectl: o.Kubectl,
		Environment: o.Environment, Seed: 1, Name: o.Lesson.ID,
	}, t.values, o.Workshop}
	t.turnTo(0)
	return t
}

// Actor is the actor in the journal for changes that the tutor makes.
const Actor = "lesson"

// Lesson returns the tutor's lesson.
func (t *Tutor) Lesson() *book.Lesson { return t.options.Lesson }

// Language returns the language of the learner's texts.
func (t *Tutor) Language() book.Language { return t.options.Language }

// Begin loads the operators of the lesson and brings the cluster to the start of the first task that is not done, or of
// the first task if all are done. It solves the tasks before it on the way.
func (t *Tutor) Begin(ctx context.Context) error { return t.BeginAt(ctx, t.firstUndone()) }

// BeginAt does the same for the task with an index.
func (t *Tutor) BeginAt(ctx context.Context, index int) error {
	t.acting.Lock()
	defer t.acting.Unlock()
	if err := errors.Join(t.setAside(), t.writeFiles(false)); err != nil {
		return err
	}
	for _, op := range t.options.Lesson.Operators {
		if op.Project { // it runs when the learner has written it
			continue
		}
		spec := v1alpha1.OperatorSpec{Variant: op.Variant, Parameters: op.Parameters}
		if _, err := t.options.Lab.Load(ctx, op.Name, spec); err != nil {
			return fmt.Errorf("operator %s: %w", op.Name, err)
		}
	}
	for i := range index {
		t.options.Say(t.textf("solving task %d, which is done", "完了済みのタスク %d を再現しています", i+1))
		t.turnTo(i)
		if err := t.prepare(ctx); err != nil {
			return err
		}
		if err := t.solve(ctx); err != nil {
			return err
		}
		if err := t.parts.awaitAll(ctx, t.current().Checks()); err != nil {
			return err
		}
	}
	t.turnTo(index)
	return t.startTask(ctx)
}

// firstUndone returns the index of the first task that is not done; 0 if all are.
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
	journal := t.options.Lab.Journal()
	grown, cancel := journal.Subscribe()
	defer func() { cancel() }()
	for t.awaitNews(ctx, grown) {
		if t.acting.TryLock() { // else another action runs and looks itself
			_ = t.look(ctx) // an error passes: the next look tells
			t.acting.Unlock()
		}
		if now := t.options.Lab.Journal(); now != journal { // there was an undo
			cancel()
			journal = now
			grown, cancel = now.Subscribe()
		}
	}
}

// awaitNews waits at least lookPause, then until there may be something new. It reports false when ctx has ended.
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
	case <-time.After(t.delay.untilNextLook(t.View().Notice)):
	}
	return true
}

// Intervals between looks: at least lookPause after a change, and every lookAtLeast without one, for state outside the
// cluster such as a web page.
const (
	lookPause   = 150 * time.Millisecond
	lookAtLeast = 2 * time.Second
)

// Poke triggers a look at the checks, for example after a line of the audit log.
func (t *Tutor) Poke() {
	select {
	case t.poke <- struct{}{}:
	default:
	}
}

// current returns the current task.
func (t *Tutor) current() *book.Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.options.Lesson.Tasks[t.task]
}

// Tell replaces Options.Say.
func (t *Tutor) Tell(say func(text string)) {
	t.acting.Lock()
	defer t.acting.Unlock()
	t.options.Say = say
}

// textf formats one of two texts, in the learner's language.
func (t *Tutor) textf(english, japanese string, arguments ...any) string {
	return fmt.Sprintf(t.options.Language.Choose(english, japanese), arguments...)
}
