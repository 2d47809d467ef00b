package tui

import (
	"context"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Guide supplies the lesson pane, and carries out the learner's actions.
type Guide interface {
	// Page returns what is to be shown now. It is called on every tick, but not while Do runs, and must return at once.
	Page() Page
	// Do carries out an action and returns the source to show from now on; nil
	// keeps the current one. It may take seconds; its steps are shown meanwhile.
	// Its context ends when the user quits, and [Run] does not return before Do
	// has. An error is shown; a source that is returned with it is used all the same.
	Do(ctx context.Context, what Action, text string, step func(Step)) (*Source, error)
}

// Action is a request of a key to a [Guide].
type Action int

// The actions. The text that comes with them is empty but for an answer.
const (
	// ActHint reveals one more hint.
	ActHint Action = iota
	// ActCheck checks the task now.
	ActCheck
	// ActSolution reveals the solution.
	ActSolution
	// ActUndo brings the cluster back to the start of the task.
	ActUndo
	// ActBack brings the cluster back to the start of the task before; requested only for a page with Earlier.
	ActBack
	// ActNext begins the next task or lesson; requested only for a page with Done and Next.
	ActNext
	// ActAnswer answers the question of a prediction.
	ActAnswer
	// ActFollow returns the source of the running lesson; requested once for a page with Moved.
	ActFollow
)

// Source holds a journal to show instead of the current one, and the controls of its cluster.
type Source struct {
	// Journal is the journal.
	Journal *trace.Journal
	// Controls are the controls of the journal's cluster.
	Controls Controls
	// Title is the title of the screen. Default: as before.
	Title string
}

// Page holds what the lesson pane and the lines at the bottom show. All may be
// empty. Texts, where it says so, are Markdown; see [Plain].
type Page struct {
	// Lesson is the number and the title of the lesson, such as "7/31  Run zundoko".
	Lesson string
	// Task is the position and the title of the task, such as "2/3  Count the writes". When this or Lesson changes, a new
	// task has begun.
	Task string
	// Text is the introduction and the task, in Markdown.
	Text string
	// Question asks for a prediction; empty if there is none. Answer is the learner's last answer.
	Question, Answer string
	// Checks are the checks of the task.
	Checks []Task
	// Missing describes what is not done yet.
	Missing string
	// Notice tells of a wrong turn or a missing object, in Markdown. It is shown first, with the key for undo.
	Notice string
	// Hints are the revealed hints in Markdown; More reports whether there are more.
	Hints []string
	More  bool
	// Solution is the solution in Markdown, once revealed.
	Solution string
	// Done is true when the task is done; DoneText explains what happened and why, in Markdown.
	Done     bool
	DoneText string
	// Earlier is true when the lesson has a task before this one.
	Earlier bool
	// NoOperator is true when the lesson has no operator, so that there is no loop to show.
	NoOperator bool
	// Last is true for the last task of a lesson.
	Last bool
	// Next is the title of what comes next; empty at the very end.
	Next string
	// Moved is true when the lesson has another source than the screen shows,
	// such as after a command in another terminal.
	Moved bool
	// Serial changes whenever the page does.
	Serial int64
}

// Task is one check of the task.
type Task struct {
	// Text describes what is checked.
	Text string
	// Done reports whether it holds.
	Done bool
}
