package tutor

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// settlePatience limits how long to wait for the operators to become idle before a task begins; a workload that is not as it
// is to be, and has not changed for as long as stuckAfter, is not waited for.
const (
	settlePatience = 5 * time.Second
	stuckAfter     = time.Second
)

// look runs the checks and the conditions of the known wrong turns once, and updates the view.
func (t *Tutor) look(ctx context.Context) error {
	if t.View().Done {
		return nil
	}
	task := t.current()
	checks := task.Checks()
	tests := testsOf(checks)
	for _, w := range task.Wrong {
		tests = append(tests, w.See())
	}
	all, err := t.parts.look(ctx, tests...)
	if err != nil {
		return err
	}
	notice := ""
	done := allHold(all[:len(checks)])
	if !done {
		notice = t.delay.lasting(t.notice(ctx, task, checks, all))
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
			v.Missing = t.textf("your answer to the question", "質問への答え")
			if tooLate(v, checks) {
				v.Missing = t.textf("your answer before the deed: 'u' brings back the start", "操作の前の答え (u で開始時点に戻せます)")
			}
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

// noticeDelay holds a notice back until it has lasted.
type noticeDelay struct {
	mu     sync.Mutex
	notice string
	since  time.Time
}

// lasting returns the notice if it has been the same for at least noticeAfter; else it is empty.
func (d *noticeDelay) lasting(notice string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if notice != d.notice {
		d.notice, d.since = notice, time.Now()
	}
	if time.Since(d.since) < noticeAfter {
		return ""
	}
	return notice
}

// untilNextLook returns the time until the next look if nothing is written and the learner sees a notice.
func (d *noticeDelay) untilNextLook(shown string) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.notice != shown {
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
			return task.Message(w.ID, t.options.Language)
		}
	}
	if gone := t.gone(ctx); gone != "" {
		return gone
	}
	for _, op := range t.options.Lesson.Operators {
		if err := t.options.Lab.Err(op.Name); err != nil {
			return t.textf("The operator does not run: %v", "オペレーターが動いていません: %v", err)
		}
	}
	return t.prediction(checks, all)
}

// prediction returns what to tell after a wrong answer: the value that was really counted. It is empty while another
// check fails, because the value is not final before.
func (t *Tutor) prediction(checks []book.Check, all [][]*Failure) string {
	answer := t.View().Answer
	really := correction(answer, checks, all)
	if really == "" {
		return ""
	}
	t.options.Review.change(t.options.Lesson, t.current(), t.options.Language, func(r *reviewed) {
		if r.answer == "" {
			r.answer, r.really = answer, really
		}
	})
	return t.textf("You predicted %s. It was %s. Find out why, then answer again ('a'), or undo ('u') and try once more.",
		"予想は %s でしたが、実際は %s でした。理由を確かめてから a でもう一度答えるか、u で元に戻してやり直してください。", answer, really)
}

// correction returns the value that a check counted instead of the learner's answer. It is empty if there is none, or
// if something else differs too.
func correction(answer string, checks []book.Check, all [][]*Failure) string {
	if answer == "" {
		return ""
	}
	really := ""
	for i, c := range checks {
		switch {
		case len(all[i]) == 0:
		case !c.JudgesAnswer(), len(all[i][0].Differences) > 1: // for example a loop that still runs
			return ""
		case len(all[i][0].Differences) == 1:
			really = counted(all[i][0].Differences[0], answer)
		}
	}
	return really
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
			done += "\n\n" + t.textf("(That you have done it could not be noted: %s)", "(完了を記録できませんでした: %s)", err)
		}
	}
	t.options.Review.change(t.options.Lesson, task, t.options.Language, func(r *reviewed) { r.done = true })
	t.show(func(v *View) {
		v.Done, v.DoneText, v.Missing, v.Notice = true, done, "", ""
		if v.Last && t.options.Next == nil { // the end of the track, or of the book
			v.Finally = strings.TrimSpace(t.options.Lesson.Finally(t.options.Language) + "\n\n" + t.options.Review.text(t.options.Language, time.Now()))
		}
	})
}
