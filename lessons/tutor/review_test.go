package tutor

import (
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/lessons"
	"github.com/operator-lab/operator-lab/lessons/book"
)

// TestReview looks at the summary of a sitting of two tasks, of which one was predicted wrongly first.
func TestReview(t *testing.T) {
	b, err := book.Open(lessons.Bundled())
	if err != nil {
		t.Fatal(err)
	}
	lesson, err := b.Find("run-zundoko")
	if err != nil {
		t.Fatal(err)
	}
	r := NewReview()
	if text := r.text(book.English, r.began); text != "" {
		t.Errorf("before a task is done: %q", text)
	}
	for _, task := range lesson.Tasks[:2] {
		if task.ID == "count" {
			for _, answer := range []string{"15", "20"} {
				r.change(lesson, task, book.English, func(t *reviewed) {
					if t.answer == "" {
						t.answer, t.really = answer, "23"
					}
				})
			}
		}
		r.change(lesson, task, book.English, func(t *reviewed) { t.done = true })
	}
	want := "**You did 2 tasks in 7 min:**\n\n- Ask for a song\n- Predict the writes\n\n" +
		"**What was not as you predicted:**\n\n- Predict the writes: you predicted 15, it was 23"
	if text := r.text(book.English, r.began.Add(7*time.Minute)); text != want {
		t.Errorf("got  %q\nwant %q", text, want)
	}
	var none *Review
	none.change(lesson, lesson.Tasks[0], book.English, func(t *reviewed) { t.done = true })
	if text := none.text(book.English, time.Now()); text != "" {
		t.Errorf("a nil review says %q", text)
	}
}
