package tutor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

// Verdict is the result of verifying a lesson.
type Verdict struct {
	// Tasks counts the tasks gone through, Checks the checks that failed before the solution and held after it, Wrong
	// the wrong turns that gave their message, and Undos the undos that restored the start.
	Tasks, Checks, Wrong, Undos int
	// Problems has one line for each thing that is not as it should be.
	Problems []string
	// Took is the duration without the boot.
	Took time.Duration
}

// verification goes through a lesson like a learner who makes every mistake.
type verification struct {
	tutor   *Tutor
	verdict *Verdict
	task    *book.Task
	began   inventory // objects at the start of the task
}

// Verify checks for each task that all its checks fail at the start and hold after the solution, that each wrong turn
// gives its message, and that an undo restores the start. It must be called instead of Begin. If an error ends it
// early, the verdict holds what was found until then.
func (t *Tutor) Verify(ctx context.Context) (*Verdict, error) {
	v := &Verdict{}
	began := time.Now()
	defer func() { v.Took = time.Since(began) }()
	if err := t.BeginAt(ctx, 0); err != nil {
		return v, err
	}
	for i, task := range t.options.Lesson.Tasks {
		if i > 0 {
			t.turnTo(i)
			if err := t.startTask(ctx); err != nil {
				return v, err
			}
		}
		check := &verification{tutor: t, verdict: v, task: task}
		check.began = check.atStart()
		if err := check.all(ctx, i < len(t.options.Lesson.Tasks)-1); err != nil {
			return v, fmt.Errorf("task %s: %w%s", task.ID, err, t.standstill())
		}
		v.Tasks++
	}
	return v, nil
}

// standstill says which operators do not run, and why, to be added to an error; empty if all do.
func (t *Tutor) standstill() (text string) {
	for _, o := range t.options.Lab.Operators() {
		if state := o.Status.State; state != v1alpha1.OperatorRunning && state != v1alpha1.OperatorPaused {
			text += strings.TrimSuffix(fmt.Sprintf("; the operator %s is %s: %s", o.Name, state, o.Status.Message), ": ")
		}
	}
	return text
}

func (v *verification) problem(format string, arguments ...any) {
	v.verdict.Problems = append(v.verdict.Problems, "task "+v.task.ID+": "+fmt.Sprintf(format, arguments...))
}

// all goes through one task. It leaves the cluster at the task's start, or at its end if another task follows.
func (v *verification) all(ctx context.Context, another bool) error {
	if err := v.fails(ctx, "before the solution"); err != nil {
		return err
	}
	if err := v.noWrongTurn(ctx, "at the start"); err != nil {
		return err
	}
	for _, w := range v.task.Wrong {
		if err := v.wrongTurn(ctx, w); err != nil {
			return fmt.Errorf("wrong turn %s: %w", w.ID, err)
		}
	}
	if err := v.passes(ctx); err != nil {
		return err
	}
	if err := v.undoes(ctx); err != nil {
		return err
	}
	if err := v.fails(ctx, "after an undo"); err != nil {
		return err
	}
	if !another {
		return nil
	}
	return errors.Join(v.tutor.solve(ctx), v.tutor.parts.awaitAll(ctx, v.task.Checks()))
}

// fails verifies that each check fails.
func (v *verification) fails(ctx context.Context, when string) error {
	for _, c := range v.task.Checks() {
		failed, err := v.tutor.parts.failing(ctx, []book.Check{c})
		if err != nil {
			return err
		}
		if len(failed) == 0 {
			v.problem("%s holds %s", c.Name, when)
		}
	}
	return nil
}

// noWrongTurn verifies that no wrong turn is detected.
func (v *verification) noWrongTurn(ctx context.Context, when string) error {
	for _, w := range v.task.Wrong {
		all, err := v.tutor.parts.look(ctx, w.See())
		if err != nil {
			return err
		}
		if len(all[0]) == 0 {
			v.problem("the wrong turn %s is seen %s", w.ID, when)
		}
	}
	return nil
}

// wrongTurn takes a wrong turn, waits for its message and undoes it.
func (v *verification) wrongTurn(ctx context.Context, w *book.Wrong) error {
	if err := v.tutor.parts.play(ctx, w.Do()); err != nil {
		return err
	}
	told, err := v.awaitNotice(ctx, v.task.Message(w.ID, v.tutor.options.Language))
	if err != nil {
		return err
	}
	if told {
		v.verdict.Wrong++
	} else {
		v.problem("the wrong turn %s is not told: %s", w.ID, v.whyUnseen(ctx, w.See()))
	}
	return v.undoes(ctx)
}

// awaitNotice runs the checks until the learner gets the message; false if it does not come.
func (v *verification) awaitNotice(ctx context.Context, message string) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, waitPatience)
	defer cancel()
	for {
		if err := v.tutor.Check(limited); err == nil {
			switch view := v.tutor.View(); {
			case view.Done:
				return false, nil
			case view.Notice == message && message != "":
				return true, nil
			}
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-limited.Done():
			return false, nil
		case <-time.After(lookPause):
		}
	}
}

func (v *verification) whyUnseen(ctx context.Context, see *format.Loaded) string {
	view := v.tutor.View()
	if view.Done {
		return "the task counts as done"
	}
	all, err := v.tutor.parts.look(ctx, see)
	switch {
	case err != nil:
		return err.Error()
	case len(all[0]) > 0:
		return all[0][0].Error() + " " + strings.Join(details(all[0])[1:], "; ")
	}
	return fmt.Sprintf("it is seen, but the learner is told %q", view.Notice)
}

// passes verifies that the checks hold after the solution, and fail with another answer.
func (v *verification) passes(ctx context.Context) error {
	if err := v.tutor.solve(ctx); err != nil {
		return err
	}
	if err := v.unbothered(ctx); err != nil {
		return err
	}
	v.verdict.Checks += len(v.task.Checks())
	if err := v.noWrongTurn(ctx, "after the solution"); err != nil {
		return err
	}
	if v.task.Answer == "" {
		return nil
	}
	return v.otherAnswer(ctx)
}

// otherAnswer verifies that a wrong prediction is corrected with the value that was counted. What has come about need not hold all
// the time, as members of etcd that were without power for a moment: so it looks while the right answer is taken for right.
func (v *verification) otherAnswer(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, waitPatience)
	defer cancel()
	checks := v.task.Checks()
	look := func(answer string) ([][]*Failure, error) {
		v.tutor.show(func(view *View) { view.Answer = answer })
		return v.tutor.parts.look(limited, testsOf(checks)...)
	}
	for {
		before, err := look(v.task.Answer)
		if err != nil {
			return err
		}
		wrong := v.task.Answer + "1"
		all, err := look(wrong)
		switch {
		case err != nil:
			return err
		case allHold(all):
			v.problem("any answer is right")
			return nil
		case correction(wrong, checks, all) == v.task.Answer:
			return nil
		}
		told := v.tutor.prediction(checks, all)
		after, err := look(v.task.Answer)
		if err != nil {
			return err
		}
		if allHold(before) && allHold(after) {
			v.problem("a wrong answer is not told the right one: compare as in 'total: ($values.answer)'; it is told %q", told)
			return nil
		}
		select {
		case <-limited.Done():
			v.problem("what the solution brought about does not last")
			return ctx.Err()
		case <-time.After(lookPause):
		}
	}
}

// unbothered waits until the task is done, and verifies that the solution causes no notice on the way.
func (v *verification) unbothered(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, waitPatience)
	defer cancel()
	told := ""
	for {
		// Errors pass, such as while the API server is not reachable.
		_ = v.tutor.Check(limited)
		view := v.tutor.View()
		if view.Notice != "" && view.Notice != told {
			told = view.Notice
			v.problem("on the way to the end a learner is told %q", told)
		}
		if view.Done {
			return nil
		}
		select {
		case <-limited.Done():
			return v.tutor.parts.awaitAll(ctx, v.task.Checks()) // its error says what is missing
		case <-time.After(lookPause):
		}
	}
}

// undoes verifies that an undo restores the objects of the start.
func (v *verification) undoes(ctx context.Context) error {
	if _, err := v.tutor.Undo(ctx); err != nil {
		return fmt.Errorf("undo: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, waitPatience)
	defer cancel()
	for {
		differ := v.began.differences(v.atStart())
		if len(differ) == 0 {
			v.verdict.Undos++
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limited.Done():
			v.problem("after an undo it is not as at the start: %s", strings.Join(differ, ", "))
			return nil
		case <-time.After(lookPause):
		}
		if err := v.tutor.survey(limited); err != nil && limited.Err() == nil {
			return err
		}
	}
}

// atStart returns the objects recorded when the task began or was undone.
func (v *verification) atStart() inventory {
	v.tutor.mu.Lock()
	defer v.tutor.mu.Unlock()
	return v.tutor.start.objects
}
