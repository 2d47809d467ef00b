package tutor

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/text/width"

	"github.com/operator-lab/operator-lab/sandbox"
)

// problem is a wish of the learner that cannot be fulfilled now, and what can be done instead.
func (t *Tutor) problem(text, hint string) error {
	return &sandbox.Problem{Err: errors.New(text), Hint: hint}
}

// Hint reveals one more hint.
func (t *Tutor) Hint() error {
	hints := t.current().Hints(t.options.Language)
	left := false
	t.show(func(v *View) {
		if n := len(v.Hints); n < len(hints) {
			v.Hints, left = append(v.Hints, hints[n]), true
		}
		v.More = len(v.Hints) < len(hints)
	})
	if !left {
		return t.problem(t.t("there are no more hints", "ヒントはこれで全部です"), t.t("look at the solution", "解答を見ることもできます"))
	}
	return nil
}

// Solution reveals how it can be done. It does not do it.
func (t *Tutor) Solution() {
	text := t.current().Solution(t.options.Language)
	t.show(func(v *View) { v.Solution = text })
}

// Check looks at once.
func (t *Tutor) Check(ctx context.Context) error {
	t.acting.Lock()
	defer t.acting.Unlock()
	return t.look(ctx)
}

// Answer answers the question of the task, again if need be.
func (t *Tutor) Answer(ctx context.Context, text string) error {
	_, number := valueOf(t.current().Answer).(float64)
	text = answered(text, number)
	switch {
	case t.View().Question == "":
		return t.problem(
			t.t("there is no question here", "このタスクに質問はありません"),
			t.t("do what the task says: the boxes tick themselves", "タスクのとおりに操作すれば、チェックは自動で付きます"),
		)
	case text == "":
		return t.problem(t.t("the answer is empty", "答えが空です"), t.t("give a number or a word", "数か単語を入力してください"))
	}
	if number {
		if _, is := valueOf(text).(float64); !is {
			return t.problem(t.t("%q is not a number", "%q は数ではありません", text), t.t("the question asks for one", "質問は数を尋ねています"))
		}
	}
	t.show(func(v *View) { v.Answer = text })
	return t.Check(ctx)
}

// answered is an answer as it is compared: Japanese keyboards give full-width digits, and people add what they counted.
func answered(text string, number bool) string {
	text = strings.TrimSpace(width.Narrow.String(text))
	if number {
		return strings.TrimSpace(strings.TrimRight(text, "回個番件語つ"))
	}
	return text
}

// ErrLessonOver says that there is no further task in the lesson.
var ErrLessonOver = errors.New("this was the last task of the lesson")

// Next goes on to the next task of the lesson. A task that is not done is not left: its end is the start of the next.
func (t *Tutor) Next(ctx context.Context) error {
	t.acting.Lock()
	defer t.acting.Unlock()
	v := t.View()
	switch {
	case !v.Done:
		return t.problem(
			t.t("this task is not done yet", "このタスクはまだ終わっていません"),
			t.t("ask for a hint, or for the solution", "ヒントや解答を見ることができます"),
		)
	case v.Last:
		return ErrLessonOver
	}
	t.letGo()
	t.turnTo(v.Index) // counted from 1: it is the index of the next
	if err := t.startTask(ctx); err != nil {
		t.turnBack(v) // what an undo brings back is still its start
		return err
	}
	return nil
}

// letGo lets the loops go on that the learner holds with a key: the start of the next task may wait for them.
func (t *Tutor) letGo() {
	for _, op := range t.options.Room.Lab.Operators() {
		if loop := t.options.Room.Lab.Taps(op.Name); loop != nil && !op.Spec.Paused {
			loop.Resume()
		}
	}
}

// Solve does what the solution says, as the learner would.
func (t *Tutor) Solve(ctx context.Context) error {
	t.acting.Lock()
	defer t.acting.Unlock()
	if err := t.solve(ctx); err != nil {
		return err
	}
	if err := t.awaitDone(ctx); err != nil {
		return err
	}
	return t.look(ctx)
}
