package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// This file has the words and signs that several panes use.

// keyName returns a key without a namespace that goes without saying.
func keyName(k trace.Key) string {
	if k.Namespace == "default" {
		return k.Name
	}
	return k.String()
}

// queueName names a key in a queue by its controller.
func queueName(operator, controller string, k trace.Key) string {
	return orElse(controller, operator) + "/" + keyName(k)
}

// orElse returns s, or other if s is empty.
func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// clock writes a time since the journal's start as minutes and seconds, with hours if there are any.
func clock(d time.Duration) string {
	s := int(max(d, 0) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

// age writes how long something has lasted, in whole seconds: it is drawn anew once a second.
func age(d time.Duration) string {
	if d < time.Second {
		return "<1s"
	}
	return trace.FormatDuration(d.Truncate(time.Second))
}

// checkbox is the box of a check, and how it looks.
func (th *theme) checkbox(c Task) (string, style) {
	if c.Done {
		return th.tick, ok
	}
	return th.untick, plain
}

// outcome says in a few words how a reconcile ended.
func (th *theme) outcome(s *trace.State, reconcile *trace.Reconcile) (string, style) {
	if reconcile.Held != nil {
		n := 0
		for _, e := range reconcile.Steps {
			if e.Kind != trace.KindLog {
				n++
			}
		}
		return th.t("HELD at call ", "呼出 ") + itoa(n) + th.t("", " で保留"), hold
	}
	if reconcile.Running() {
		return th.t("running", "実行中"), ok | bold
	}
	text := strings.Replace(s.OutcomeText(reconcile, th.lang), "retry in ", "retry ", 1)
	switch reconcile.End.Outcome {
	case trace.OutcomeDone:
		if reconcile.Again || s.Next(reconcile) != nil {
			return text, wait
		}
		return text, ok
	case trace.OutcomeRequeueAfter, trace.OutcomeRequeue:
		return text, wait
	case trace.OutcomeError, trace.OutcomePanic, trace.OutcomeTerminal:
		return text, bad
	}
	return text, warn
}

// callResult returns the result of a call in a few words.
func (th *theme) callResult(e *trace.Event) (string, style) {
	switch {
	case e.Reason == "NotFound" && !e.IsWrite():
		return th.t("not found", "なし"), plain
	case e.Error != "":
		return orElse(e.Reason, e.Error), bad
	case e.Verb == trace.VerbList:
		if e.Count == 1 {
			return th.t("1 item", "1 件"), plain
		}
		return itoa(e.Count) + th.t(" items", " 件"), plain
	case e.Via == trace.ViaDryRun:
		return th.t("dry run", "ドライラン"), plain
	case e.NoOp:
		return th.t("changed nothing", "変化なし"), warn
	case e.Lost:
		return th.t("committed, answer lost", "コミット済み、応答なし"), warn
	case e.ResourceVersion != "":
		return "rv " + e.ResourceVersion, plain
	case e.Status != 0:
		return itoa(e.Status), plain
	}
	return "ok", plain
}

// timerText says what kind of timer an event set.
func (th *theme) timerText(e *trace.Event) string {
	d := trace.FormatDuration(e.Delay)
	switch e.Outcome {
	case trace.OutcomeError, trace.OutcomePanic:
		return th.t("retry of #", "再試行 #") + itoa(e.Reconcile)
	case trace.OutcomeRequeue:
		return th.t("requeued by #", "再キュー #") + itoa(e.Reconcile)
	}
	switch e.Reason {
	case trace.ReasonBackoff, trace.ReasonRequeue:
		return th.t("backoff ", "バックオフ ") + d + th.t(", try ", ", 試行 ") + itoa(e.Try)
	}
	return th.t("timer ", "タイマー ") + d
}

// addCause appends the cause of an enqueue, merge or ready event. The name in it
// is shortened so that the whole fits into room cells.
func (th *theme) addCause(r *row, w trace.Wake, room int) {
	if w.Event.Probably {
		probably := th.t("probably ", "おそらく ")
		r.add(dim, probably)
		room -= width(probably)
	}
	switch {
	case w.Requeue != nil:
		text := th.timerText(w.Requeue)
		if width(text) > room { // no number is cut: the sentence has how often it was tried
			text, _, _ = strings.Cut(text, ", ")
		}
		r.add(wait, text)
	case w.Watch != nil:
		th.addWatch(r, w, room)
	case w.Event.Reason == trace.ReasonBackoff || w.Event.Reason == trace.ReasonRequeue:
		r.add(plain, th.t("requeued at once", "直ちに再キュー"))
	default:
		r.add(plain, th.t("added from outside", "外部から追加"))
	}
}

// addWatch appends the watch event that woke a reconcile. The mark of an own write
// comes first, so that it is not cut off.
func (th *theme) addWatch(r *row, w trace.Wake, room int) {
	var before, after row
	switch {
	case w.Watch.Initial:
		before.add(dim, th.t("found: ", "開始時: "))
	case w.Own:
		before.add(own, th.ownMark()+" ")
		after.add(plain, " "+w.Watch.Verb)
	default:
		after.add(plain, " "+w.Watch.Verb)
		if w.Write != nil && w.Write.Actor != "" {
			after.add(dim, th.t(" by ", " 変更者 ")+trace.ActorText(w.Write.Actor, th.lang))
		}
	}
	most := room - before.width()
	if len(after.segs) > 0 {
		most -= width(after.segs[0].s) // who wrote it is cut first: the sentence names it
	}
	if most < shortName {
		most = min(leastName, room-before.width())
	}
	name := th.elide(w.Watch.Object.String(), most)
	r.segs = append(append(r.segs, before.segs...), seg{plain, name})
	room -= before.width() + width(name)
	for _, sg := range after.segs {
		sg.s = th.cutTo(sg.s, max(0, room))
		room -= width(sg.s)
		r.segs = append(r.segs, sg)
	}
}

// ownMark marks what the operator's own write woke.
func (th *theme) ownMark() string {
	if th.ascii {
		return th.own
	}
	return th.own + th.t(" own", " 自分")
}

// stepRows are a line for each step.
func (s *state) stepRows(steps []Step, failed bool) []row {
	name := 24
	for _, st := range steps {
		name = max(name, width(st.Name)+2)
	}
	name = min(name, s.w/2)
	var rows []row
	for _, st := range steps {
		sign, signStyle := s.working, warn
		switch {
		case st.Done:
			sign, signStyle = s.ok, ok
		case failed:
			sign, signStyle = s.failing, bad
		}
		r := text(plain, "   ")
		r.cell(&s.theme, signStyle, sign, 2).cell(&s.theme, plain, st.Name, name)
		took := ""
		switch {
		case st.Took > 0:
			took = trace.FormatDuration(st.Took)
		case !st.Done && !failed && s.motion:
			took = age(s.now - st.began)
		}
		r.add(dim, blanks(7-width(took))+took+"  ").add(dim, st.Detail)
		rows = append(rows, r)
	}
	return rows
}

func (th *theme) generations(o *trace.Object) string {
	if o.Generation == 0 {
		return ""
	}
	out := "gen " + itoa(o.Generation)
	if n := o.Meta().ObservedGeneration; n > 0 {
		out += " obs " + itoa(n)
	}
	return out
}

// health reads an object's conditions. What says nothing about itself gets no mark.
func (th *theme) health(o *trace.Object) (string, style) {
	m := o.Meta()
	switch {
	case o.Deleted:
		return th.t("gone", "削除済"), dim
	case m.Deleting:
		return th.t("going", "削除中"), warn
	}
	well, known := false, false
	for _, c := range m.Conditions {
		switch c.Type {
		case "Degraded", "Failed", "Stalled", "ReplicaFailure":
			if c.Status == "True" {
				return th.failing, bad
			}
		case "Ready", "Available", "Complete", "Succeeded", "Established":
			known = true
			well = well || c.Status == "True"
		}
	}
	switch {
	case o.Lagging() || known && !well:
		return th.working, warn
	case known:
		return th.ok, ok
	}
	return "", plain
}
