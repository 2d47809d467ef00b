package tutor

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/text/width"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/sandbox"
)

// problem returns an error for something the learner cannot do now; hint says what can be done instead.
func problem(text, hint string) error {
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
		return problem(t.textf("there are no more hints", "ヒントはこれで全部です"), t.textf("look at the solution", "解答を見ることもできます"))
	}
	return nil
}

// Solution reveals the text of the solution. It does not carry the solution out.
func (t *Tutor) Solution() {
	text := t.current().Solution(t.options.Language)
	t.show(func(v *View) { v.Solution = text })
}

// Check runs the checks of the task at once.
func (t *Tutor) Check(ctx context.Context) error {
	t.acting.Lock()
	defer t.acting.Unlock()
	return t.look(ctx)
}

// Answer answers the question of the task; a later answer replaces it. Then it runs the checks. The first answer is a
// prediction: it is refused once the deed is done.
func (t *Tutor) Answer(ctx context.Context, text string) error {
	_, number := valueOf(t.current().Answer).(float64)
	text = answered(text, number)
	switch {
	case t.View().Question == "":
		return problem(
			t.textf("there is no question here", "このタスクに質問はありません"),
			t.textf("do what the task says: the boxes tick themselves", "タスクのとおりに操作すれば、チェックは自動で付きます"),
		)
	case t.View().Done:
		return problem(t.textf("the task is done, and its answer stands", "タスクは完了していて、答えは変えられません"), t.textf("'u' brings back its start", "u で開始時点に戻せます"))
	case text == "":
		return problem(t.textf("the answer is empty", "答えが空です"), t.textf("give a number or a word", "数か単語を入力してください"))
	}
	if number {
		if _, is := valueOf(text).(float64); !is {
			return problem(t.textf("%q is not a number", "%q は数ではありません", text), t.textf("the question asks for one", "質問は数を尋ねています"))
		}
	}
	t.acting.Lock()
	defer t.acting.Unlock()
	if t.View().Answer == "" {
		if err := t.look(ctx); err != nil {
			return err
		}
		if v := t.View(); tooLate(&v, t.current().Checks()) {
			return problem(
				t.textf("the question asks what will happen, and it has happened: 'u' brings back the start", "質問は操作の前の予想です。u で開始時点に戻してから答えてください"),
				t.textf("go back to the start of the task, answer, then act", "タスクの開始時点に戻し、答えてから操作してください"),
			)
		}
	}
	t.show(func(v *View) { v.Answer = text })
	return t.look(ctx)
}

// tooLate reports whether the question was not answered before the deed: all checks hold but those that judge the answer.
func tooLate(v *View, checks []book.Check) bool {
	if v.Question == "" || v.Answer != "" {
		return false
	}
	done := false
	for i, check := range checks {
		if check.JudgesAnswer() {
			continue
		}
		if !v.Checks[i].Done {
			return false
		}
		done = true
	}
	return done
}

// answered normalizes an answer: full-width digits of Japanese keyboards become ASCII, and a counter word after a
// number is dropped.
func answered(text string, number bool) string {
	text = strings.TrimSpace(width.Narrow.String(text))
	if number {
		return strings.TrimSpace(strings.TrimRight(text, "回個番件語つ"))
	}
	return text
}

// ErrLessonOver is returned by [Tutor.Next] after the last task of the lesson.
var ErrLessonOver = errors.New("this was the last task of the lesson")

// Next goes on to the next task of the lesson. It fails while the current task is not done, because each task starts
// where the one before it ends.
func (t *Tutor) Next(ctx context.Context) error {
	t.acting.Lock()
	defer t.acting.Unlock()
	v := t.View()
	switch {
	case !v.Done:
		return problem(
			t.textf("this task is not done yet", "このタスクはまだ終わっていません"),
			t.textf("ask for a hint, or for the solution", "ヒントや解答を見ることができます"),
		)
	case v.Last:
		return ErrLessonOver
	}
	t.letGo()
	t.turnTo(v.Index) // counted from 1: it is the index of the next
	if err := t.startTask(ctx); err != nil {
		t.turnBack(v) // a later undo still restores the old task's start
		return err
	}
	return nil
}

// letGo resumes the loops that the learner paused with a key: the start of the next task may wait for them.
func (t *Tutor) letGo() {
	for _, op := range t.options.Lab.Operators() {
		if loop := t.options.Lab.Taps(op.Name); loop != nil && !op.Spec.Paused {
			loop.Resume()
		}
	}
}

// Solve carries out the solution as the learner would, and waits until all checks hold.
func (t *Tutor) Solve(ctx context.Context) error {
	t.acting.Lock()
	defer t.acting.Unlock()
	if err := t.solve(ctx); err != nil {
		return err
	}
	if err := t.parts.awaitAll(ctx, t.current().Checks()); err != nil {
		return err
	}
	return t.look(ctx)
}
