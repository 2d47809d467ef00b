package tutor

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// settlePatience limits how long to wait for the operators to become idle before a task begins.
const settlePatience = 5 * time.Second

// look runs the checks and the conditions of the known wrong turns once, and updates the view.
func (t *Tutor) look(ctx context.Context) error {
	if t.View().Done {
		return nil
	}
	task := t.current()
	checks := task.Checks()
	parts := make([]*format.Loaded, 0, len(checks)+len(task.Wrong))
	for _, c := range checks {
		parts = append(parts, c.Test)
	}
	for _, w := range task.Wrong {
		parts = append(parts, w.See())
	}
	all, err := t.looks(ctx, parts...)
	if err != nil {
		return err
	}
	notice := ""
	done := allHold(all[:len(checks)])
	if !done {
		notice = t.lasting(t.notice(ctx, task, checks, all))
	}
	t.show(func(v *View) {
		v.Notice, v.Missing = notice, ""
		for i := range checks {
			v.Checks[i].Done, v.Checks[i].Detail = len(all[i]) == 0, details(all[i])
			if len(all[i]) > 0 && v.Missing == "" {
				v.Missing = v.Checks[i].Text
			}
		}
		if v.Missing != "" && v.Question != "" && v.Answer == "" {
			v.Missing = t.t("your answer to the question", "質問への答え")
		}
	})
	if done {
		t.finish(task)
	}
	return nil
}

// noticeAfter is how long a problem must last before the learner is told: many passing states would be wrong if they
// stayed.
const noticeAfter = time.Second

// lasting returns the notice if it has been the same for at least noticeAfter; else it is empty.
func (t *Tutor) lasting(notice string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if notice != t.suspected {
		t.suspected, t.suspectedSince = notice, time.Now()
	}
	if time.Since(t.suspectedSince) < noticeAfter {
		return ""
	}
	return notice
}

// lookAgain returns the time until the next look if nothing is written.
func (t *Tutor) lookAgain() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.suspected != t.view.Notice {
		return noticeAfter
	}
	return lookAtLeast
}

func allHold(all [][]*Failure) bool {
	for _, failures := range all {
		if len(failures) > 0 {
			return false
		}
	}
	return true
}

// details returns why a check does not hold, one line each.
func details(failures []*Failure) []string {
	if len(failures) == 0 {
		return nil
	}
	f := failures[0]
	out := []string{f.Message}
	for _, d := range f.Differences {
		out = append(out, strings.TrimSpace(d.Path+" "+d.Message))
	}
	if f.Hint() != "" {
		out = append(out, f.Hint())
	}
	return out
}

// notice returns what a learner who is not done should know: a wrong turn, a missing object that the task needs, an
// operator that does not run, or a wrong prediction.
func (t *Tutor) notice(ctx context.Context, task *book.Task, checks []book.Check, all [][]*Failure) string {
	for i, w := range task.Wrong {
		if len(all[len(checks)+i]) == 0 {
			return t.message(task, w.ID)
		}
	}
	if gone := t.gone(ctx); gone != "" {
		return gone
	}
	for _, op := range t.options.Lesson.Operators {
		if err := t.options.Room.Lab.Err(op.Name); err != nil {
			return t.t("The operator does not run: %v", "オペレーターが動いていません: %v", err)
		}
	}
	return t.prediction(checks, all)
}

// prediction returns what to tell after a wrong answer: the value that was really counted. It is empty while another
// check fails, because the value is not final before.
func (t *Tutor) prediction(checks []book.Check, all [][]*Failure) string {
	answer := t.View().Answer
	if answer == "" {
		return ""
	}
	really := ""
	for i, c := range checks {
		switch {
		case len(all[i]) == 0:
		case !judgesAnswer(c.Test), len(all[i][0].Differences) > 1: // for example a loop that still runs
			return ""
		case len(all[i][0].Differences) == 1:
			really = counted(all[i][0].Differences[0], answer)
		}
	}
	if really == "" {
		return ""
	}
	return t.t("You predicted %s. It was %s. Find out why, then answer again ('a'), or undo ('u') and try once more.",
		"予想は %s でしたが、実際は %s でした。理由を確かめてから a でもう一度答えるか、u で元に戻してやり直してください。", answer, really)
}

// judgesAnswer reports whether a check has to do with the learner's answer.
func judgesAnswer(check *format.Loaded) bool {
	text, err := json.Marshal(check.Test.Spec.Steps)
	return err == nil && strings.Contains(string(text), "$values.answer")
}

// counted returns the value that a check found where it wanted the answer, or nothing if something else differs.
func counted(d report.Difference, answer string) string {
	if d.Want == "" || valueOf(plain(d.Want)) != valueOf(answer) {
		return ""
	}
	return plain(d.Is)
}

// plain returns a value without its quotes, if it is a quoted string.
func plain(value string) string {
	if text, err := strconv.Unquote(value); err == nil {
		return text
	}
	return value
}

// finish records that a task is done, and shows it.
func (t *Tutor) finish(task *book.Task) {
	done := task.Done(t.options.Language)
	if t.options.Progress != nil {
		if err := t.options.Progress.Mark(t.options.Lesson.ID, task.ID, t.options.Lesson.Digest); err != nil {
			done += "\n\n" + t.t("(That you have done it could not be noted: %s)", "(完了を記録できませんでした: %s)", err)
		}
	}
	t.show(func(v *View) { v.Done, v.DoneText, v.Missing, v.Notice = true, done, "", "" })
}
