package tui

import (
	"context"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Guide leads a learner through a lesson.
type Guide interface {
	// Page returns what is to be shown now. It is called on every tick, but not while Do runs, and must return at once.
	Page() Page
	// Do does what a key asks for, and returns where it goes on: nil is here,
	// with the same journal. It may take seconds; its steps are shown meanwhile.
	// Its context ends when the user quits, and [Run] does not return before it
	// has. An error is shown, and the lesson stays where it is, unless there is a
	// Room even so.
	Do(ctx context.Context, what Action, text string, step func(Step)) (*Room, error)
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
	// ActNext goes on to the next task, or the next lesson; asked for only of a page that is done and has a next.
	ActNext
	// ActAnswer answers the question of a prediction.
	ActAnswer
	// ActFollow returns the room the lesson is in by now; asked for once of a page that says Moved.
	ActFollow
)

// Room is where a lesson goes on: what was shown before is forgotten.
type Room struct {
	// Journal to show.
	Journal *trace.Journal
	// Controls of the journal's cluster.
	Controls Controls
	// Title of what runs. Default: as before.
	Title string
}

// Page holds what the lesson pane and the lines at the bottom show. All may be
// empty. Texts, where it says so, are Markdown; see [Plain].
type Page struct {
	// Lesson such as "7/31  Run zundoko".
	Lesson string
	// Task such as "2/3  Count the writes". When this or Lesson changes, a new task has begun, and the learner is to read it.
	Task string
	// Text is the introduction and the task, in Markdown.
	Text string
	// Question of a prediction, and what was Answered so far. No Question: there is none.
	Question, Answer string
	// Checks are the boxes that tick themselves.
	Checks []Task
	// Missing names in words what is not done yet.
	Missing string
	// Notice is a wrong turn, or something that is gone: it is shown first, with the key that undoes it. In Markdown.
	Notice string
	// Hints that are revealed, in Markdown, and whether there are More.
	Hints []string
	More  bool
	// Solution in Markdown, once revealed.
	Solution string
	// Done is true when the task is done; DoneText explains what happened and why, in Markdown.
	Done     bool
	DoneText string
	// Last is true for the last task of a lesson.
	Last bool
	// Next is the title of what comes next; empty at the very end.
	Next string
	// Moved is true when the lesson has gone on in another room than the screen
	// shows, such as after a word from another terminal.
	Moved bool
	// Serial changes when anything of the page does.
	Serial int64
}

// Task is something the learner is to do.
type Task struct {
	Text string
	Done bool
}
