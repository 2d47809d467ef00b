package cli

import (
	"context"
	"errors"
	"sync"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/session"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// onScreen runs a lesson on the full screen until the person quits.
func (l *learner) onScreen(ctx context.Context, lesson *book.Lesson) error {
	g := &guide{learner: l}
	journal := trace.New(trace.Options{Product: version()})
	o := l.look.options(l.io, journal)
	o.Title = lesson.Title(l.language())
	o.Guide, o.Code = g, g.code
	o.Boot = func(ctx context.Context, step func(tui.Step)) (tui.Controls, error) {
		if err := l.begin(ctx, lesson, session.Opening{Step: bootSteps(step), Say: sayStep(step), Journal: journal}); err != nil {
			return tui.Controls{}, err
		}
		g.opened()
		return l.controls()
	}
	err := tui.Run(ctx, o)
	if errors.Is(err, context.Canceled) {
		err = nil // quit while it booted
	}
	return err
}

// bootSteps shows the steps of a boot.
func bootSteps(step func(tui.Step)) func(sandbox.Step) {
	return func(s sandbox.Step) {
		step(tui.Step{Name: s.Name, Done: true, Took: s.Took, Detail: s.Note})
		if s.Name == "data" { // then all programs start at once
			for _, program := range sandbox.Programs() {
				step(tui.Step{Name: program})
			}
		}
	}
}

// sayStep returns a function that shows a message as the next step and marks the one before as done.
func sayStep(step func(tui.Step)) func(string) {
	var mu sync.Mutex
	last := ""
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if last != "" {
			step(tui.Step{Name: last, Done: true})
		}
		last = text
		step(tui.Step{Name: text})
	}
}

// guide implements [tui.Guide] on a learner's session.
type guide struct {
	*learner
	mu    sync.Mutex
	shown int64 // number of the lesson that the screen shows; see [session.Session.Current]
}

var _ tui.Guide = (*guide)(nil)

// opened records that the screen shows the current lesson.
func (g *guide) opened() {
	_, moved, _ := g.Current()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shown = moved
}

// showing returns the number of the lesson that the screen shows.
func (g *guide) showing() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shown
}

// code returns a file of the learner's project, or of a bundled operator.
func (g *guide) code(operator, file string) (text string, changed bool, err error) {
	if running, _, _ := g.Current(); running != nil && running.Workshop != nil {
		if text, changed, err = running.Workshop.Source(operator, file); !errors.Is(err, errors.ErrUnsupported) {
			return text, changed, err
		}
	}
	return bundledSource(false)(operator, file)
}

// Page returns the state of the task.
func (g *guide) Page() tui.Page {
	running, moved, _ := g.Current()
	if running == nil {
		return g.pageBetween(moved << 32)
	}
	v := running.Tutor.View()
	p := tui.Page{
		Lesson: lessonNumber(v.Number, v.Title), Task: session.TaskNumber(v.Index, v.Tasks, v.TaskTitle), Text: v.Text,
		Question: v.Question, Answer: v.Answer, Missing: v.Missing, Notice: v.Notice, Hints: v.Hints, More: v.More,
		Solution: v.Solution, Done: v.Done, DoneText: v.DoneText, Last: v.Last, Next: v.Next, Serial: moved<<32 | v.Serial,
		Moved: moved != g.showing(), Earlier: v.Index > 1, NoOperator: len(running.Lesson.Operators) == 0,
	}
	if v.Done && v.Finally != "" {
		p.DoneText += "\n\n" + v.Finally
	}
	for _, c := range v.Checks {
		p.Checks = append(p.Checks, tui.Task{Text: c.Text, Done: c.Done})
	}
	return p
}

// pageBetween returns the page while no lesson runs. If the next lesson could not be opened, the page lets the learner try
// again.
func (g *guide) pageBetween(serial int64) tui.Page {
	between := g.Between()
	p := tui.Page{Text: between.Error(), Serial: serial}
	lesson, failed := g.Pending()
	if lesson != nil {
		p.Lesson = lessonNumber(lesson.Number, lesson.Title(g.language()))
	}
	if failed != nil {
		p.Notice, p.Text, p.Done, p.Last, p.Next = between.Error(), sandbox.HintOf(between), true, true, lesson.Title(g.language())
	}
	return p
}

// Do carries out the action of a key.
func (g *guide) Do(ctx context.Context, what tui.Action, text string, step func(tui.Step)) (*tui.Source, error) {
	t := g.Tutor()
	if t == nil && what == tui.ActNext {
		return g.goOn(ctx, step)
	}
	if t == nil {
		return nil, g.Between()
	}
	switch what {
	case tui.ActHint:
		return nil, t.Hint()
	case tui.ActCheck:
		return nil, t.Check(ctx)
	case tui.ActSolution:
		t.Solution()
		return nil, nil
	case tui.ActAnswer:
		return nil, t.Answer(ctx, text)
	case tui.ActFollow:
		return g.moveAfter(nil)
	case tui.ActUndo:
		t.Tell(sayStep(step))
		return g.moveAfter(g.Undo(ctx))
	case tui.ActBack:
		t.Tell(sayStep(step))
		return g.moveAfter(g.Back(ctx))
	case tui.ActNext:
		t.Tell(sayStep(step))
		return g.goOn(ctx, step)
	}
	return nil, nil
}

func (g *guide) goOn(ctx context.Context, step func(tui.Step)) (*tui.Source, error) {
	return g.moveAfter(g.Next(ctx, session.Opening{Step: bootSteps(step), Say: sayStep(step)}))
}

// moveAfter returns the source of the running lesson if it is not the one on the screen.
func (g *guide) moveAfter(err error) (*tui.Source, error) {
	running, moved, _ := g.Current()
	g.mu.Lock()
	defer g.mu.Unlock()
	if moved == g.shown || running == nil {
		return nil, err
	}
	g.shown = moved
	controls, failed := g.controls()
	return &tui.Source{Journal: running.Lab.Journal(), Controls: controls, Title: running.Lesson.Title(g.language())}, errors.Join(err, failed)
}
