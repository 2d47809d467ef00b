package tutor

import (
	"slices"
	"sync"
)

// View holds the state of a lesson for the learner. Its texts are Markdown.
type View struct {
	// Lesson is the lesson's ID.
	Lesson string
	// Number is the lesson's number.
	Number int
	// Title is the lesson's title.
	Title string
	// Task is the task's ID.
	Task string
	// TaskTitle is the task's title.
	TaskTitle string
	// Index is the task's position in the lesson, counted from 1.
	Index int
	// Tasks is the number of tasks in the lesson.
	Tasks int
	// Text is the task's text; the first task's begins with the introduction.
	Text string
	// Question is asked before the learner acts; empty without one.
	Question string
	// Answer is the learner's last answer; empty without one.
	Answer string
	// Checks are the task's checks with their state.
	Checks []Check
	// Missing is the text of the first check that does not hold, or asks for the answer; empty if nothing is missing,
	// or before the first look.
	Missing string
	// Notice tells of a wrong turn, a missing object or a failed operator; may be empty.
	Notice string
	// Hints are the hints revealed so far.
	Hints []string
	// More reports whether there are more hints.
	More bool
	// Solution is the solution, once revealed.
	Solution string
	// Done reports whether all checks have held at the same time.
	Done bool
	// DoneText says what has happened, once the task is done.
	DoneText string
	// Last reports whether it is the last task of the lesson.
	Last bool
	// Finally is the closing text of the lesson; only with the last task.
	Finally string
	// Next is the title of the task or lesson that follows; empty at the end of the book.
	Next string
	// NextLesson is the ID of the lesson that follows the last task.
	NextLesson string
	// Serial increases with every change.
	Serial int64
}

// Check is one check of the task.
type Check struct {
	// Name is the name of the check's step in the file.
	Name string
	// Text is its description for the learner.
	Text string
	// Done reports whether it holds now.
	Done bool
	// Detail says why it does not hold, in the runner's words; may be empty.
	Detail []string
}

// currentView holds the view of the moment and tells when it changes.
type currentView struct {
	mu      sync.Mutex
	view    View
	changed chan struct{}
}

// View returns what the learner is to see now.
func (c *currentView) View() View {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view.clone()
}

// Changed returns a channel that is closed at the next change of the view.
func (c *currentView) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// show changes the view, and closes the channel of [Tutor.Changed] if it differs.
func (c *currentView) show(change func(*View)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.view.clone()
	change(&c.view)
	if before.same(c.view) {
		return
	}
	c.view.Serial++
	close(c.changed)
	c.changed = make(chan struct{})
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

// turnTo shows a task from its beginning.
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
		switch {
		case !v.Last:
			v.Next = lesson.Tasks[index+1].Title(lang)
		case t.options.Next != nil:
			v.Next, v.NextLesson = t.options.Next.Title(lang), t.options.Next.ID
		}
		if v.Last {
			v.Finally = lesson.Finally(lang)
		}
	})
}

// turnBack restores an earlier view.
func (t *Tutor) turnBack(was View) {
	t.mu.Lock()
	t.task = was.Index - 1
	t.mu.Unlock()
	t.show(func(v *View) {
		was.Serial = v.Serial
		*v = was
	})
}
