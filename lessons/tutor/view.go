package tutor

import (
	"slices"

	"github.com/operator-lab/operator-lab/lessons/book"
)

// View is what a learner sees of a lesson. Texts are in markdown.
type View struct {
	// Lesson, its number and its title.
	Lesson string
	Number int
	Title  string
	// Task, its title, and that it is the Index-th of Tasks, counted from 1.
	Task      string
	TaskTitle string
	Index     int
	Tasks     int
	// Text to read: with the first task, the introduction is before it.
	Text string
	// Question is asked before the learner acts; empty without one. Answer is what was answered so far.
	Question string
	Answer   string
	// Checks are the boxes to tick.
	Checks []Check
	// Missing says what is still missing, in a sentence; empty if nothing is, or nobody has looked yet.
	Missing string
	// Notice is what the learner should know: that they are on a wrong turn, or that something is gone that is needed.
	Notice string
	// Hints that were asked for, and whether there are more.
	Hints []string
	More  bool
	// Solution once it was asked for.
	Solution string
	// Done: all checks hold, or have held. DoneText then says what has happened.
	Done     bool
	DoneText string
	// Last says that it is the last task of the lesson; Finally then closes it.
	Last    bool
	Finally string
	// Next is the title of the task or the lesson that comes next, and NextLesson the id if it is another lesson.
	Next       string
	NextLesson string
	// Serial grows when anything changes.
	Serial int64
}

// Check is one box.
type Check struct {
	// Name of its step in the file, and Text for the learner.
	Name string
	Text string
	// Done: it holds now.
	Done bool
	// Detail says why it does not, as the runner does; may be empty.
	Detail []string
}

func (v View) clone() View {
	v.Checks = slices.Clone(v.Checks)
	v.Hints = slices.Clone(v.Hints)
	return v
}

func (v View) same(other View) bool {
	return v.Task == other.Task && v.Text == other.Text && v.Question == other.Question && v.Answer == other.Answer &&
		v.Missing == other.Missing && v.Notice == other.Notice && v.Solution == other.Solution && v.Done == other.Done &&
		v.More == other.More && slices.Equal(v.Hints, other.Hints) &&
		slices.EqualFunc(v.Checks, other.Checks, func(a, b Check) bool {
			return a.Name == b.Name && a.Done == b.Done && slices.Equal(a.Detail, b.Detail)
		})
}

// turnTo shows a task from the beginning.
func (t *Tutor) turnTo(index int) {
	lesson, lang := t.options.Lesson, t.options.Language
	task := lesson.Tasks[index]
	t.mu.Lock()
	t.task = index
	t.mu.Unlock()
	t.show(func(v *View) {
		*v = View{
			Lesson: lesson.ID, Number: lesson.Number, Title: lesson.Title(lang),
			Task: task.ID, TaskTitle: task.Title(lang), Index: index + 1, Tasks: len(lesson.Tasks),
			Text: task.Text(lang), Question: task.Question(lang), More: len(task.Hints(lang)) > 0,
			Last: index == len(lesson.Tasks)-1, Serial: v.Serial,
		}
		if index == 0 {
			v.Text = lesson.Intro(lang) + "\n\n" + v.Text
		}
		for _, check := range task.Checks() {
			v.Checks = append(v.Checks, Check{Name: check.Name, Text: check.Description[lang]})
		}
		t.sayNext(v, index)
	})
}

// turnBack shows a task again as it was shown.
func (t *Tutor) turnBack(was View) {
	t.mu.Lock()
	t.task = was.Index - 1
	t.mu.Unlock()
	t.show(func(v *View) {
		was.Serial = v.Serial
		*v = was
	})
}

func (t *Tutor) sayNext(v *View, index int) {
	lesson, lang := t.options.Lesson, t.options.Language
	switch {
	case !v.Last:
		v.Next = lesson.Tasks[index+1].Title(lang)
	case t.options.Next != nil:
		v.Next, v.NextLesson = t.options.Next.Title(lang), t.options.Next.ID
	}
	if v.Last {
		v.Finally = lesson.Finally(lang)
	}
}

// message of a wrong turn.
func (t *Tutor) message(task *book.Task, wrong string) string {
	return task.Message(wrong, t.options.Language)
}
