package tutor

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/lessons/book"
)

// Review remembers what a learner did in one sitting, over all lessons, for the summary at the end of a track. Its methods
// may be called from any goroutine; a nil Review remembers nothing.
type Review struct {
	mu    sync.Mutex
	began time.Time
	tasks []reviewed
}

// reviewed is a task of a sitting.
type reviewed struct {
	lesson, task, title string
	done                bool
	// answer is the first wrong prediction, and really what was counted; empty if none was wrong.
	answer, really string
}

// NewReview returns a review that begins now.
func NewReview() *Review { return &Review{began: time.Now()} }

// change changes what is remembered of a task.
func (r *Review) change(lesson *book.Lesson, task *book.Task, in book.Language, change func(*reviewed)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.tasks, func(t reviewed) bool { return t.lesson == lesson.ID && t.task == task.ID })
	if i < 0 {
		i = len(r.tasks)
		r.tasks = append(r.tasks, reviewed{lesson: lesson.ID, task: task.ID, title: task.Title(in)})
	}
	change(&r.tasks[i])
}

// text is the summary in Markdown, after a time; empty before a task is done.
func (r *Review) text(in book.Language, now time.Time) string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var titles, wrong []string
	for _, t := range r.tasks {
		if t.done {
			titles = append(titles, "- "+t.title)
		}
		if t.answer != "" {
			wrong = append(wrong, fmt.Sprintf(in.Choose("- %s: you predicted %s, it was %s", "- %s: 予想は %s、実際は %s"), t.title, t.answer, t.really))
		}
	}
	if len(titles) == 0 {
		return ""
	}
	minutes := max(1, int(now.Sub(r.began).Round(time.Minute)/time.Minute))
	text := fmt.Sprintf(in.Choose("**You did %d tasks in %d min:**\n\n%s", "**今回終えたタスク: %d 個 (%d 分)**\n\n%s"),
		len(titles), minutes, strings.Join(titles, "\n"))
	if len(wrong) == 0 {
		return text
	}
	return text + in.Choose("\n\n**What was not as you predicted:**\n\n", "\n\n**予想と違ったこと:**\n\n") + strings.Join(wrong, "\n")
}
