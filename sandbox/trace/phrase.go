package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Short phrases for columns. Sentences are in why.go.

// ResultText describes in a few words how a reconcile ended, such as "done" or "again in 500ms"; for one that is
// running, whether it is held.
func ResultText(reconcile *Reconcile, l Language) string {
	e := reconcile.End
	if e == nil {
		if reconcile.Held != nil {
			return l.pick("HELD", "保留中")
		}
		return l.pick("running", "実行中")
	}
	if reconcile.Logged { // when it is retried is not known
		switch e.Outcome {
		case OutcomeRequeue:
			return l.pick("requeued", "再キューイング")
		case OutcomeError:
			return l.pick("error", "エラー")
		case OutcomePanic:
			return l.pick("PANIC", "パニック")
		}
	}
	if reconcile.Again {
		switch e.Outcome {
		case OutcomeError, OutcomeTerminal:
			return l.pick("error, again at once", "エラー、直ちに再実行")
		case OutcomePanic:
			return l.pick("PANIC, again at once", "パニック、直ちに再実行")
		}
		return l.pick("again at once", "直ちに再実行")
	}
	if e.QueueEnded() {
		switch e.Outcome {
		case OutcomeError:
			return l.pick("error, operator ended", "エラー、オペレーター終了")
		case OutcomePanic:
			return l.pick("PANIC, operator ended", "パニック、オペレーター終了")
		}
		return l.pick("operator ended", "オペレーター終了")
	}
	switch e.Outcome {
	case OutcomeDone:
		return l.pick("done", "完了")
	case OutcomeRequeueAfter:
		return fmt.Sprintf(l.pick("again in %s", "%s 後に再実行"), FormatDuration(e.Delay))
	case OutcomeRequeue:
		return fmt.Sprintf(l.pick("requeue in %s", "%s 後に再キューイング"), FormatDuration(e.Delay))
	case OutcomeError:
		return fmt.Sprintf(l.pick("error, retry in %s", "エラー、%s 後に再試行"), FormatDuration(e.Delay))
	case OutcomePanic:
		return fmt.Sprintf(l.pick("PANIC, retry in %s", "パニック、%s 後に再試行"), FormatDuration(e.Delay))
	case OutcomeTerminal:
		return l.pick("error, no retry", "エラー、再試行なし")
	}
	return l.pick("aborted", "中断")
}

// OutcomeText is [ResultText], but for one that asked for no other run and whose own write made its key run again: it names the
// reconcile that followed.
func (s *State) OutcomeText(reconcile *Reconcile, l Language) string {
	if next := s.Next(reconcile); next != nil && reconcile.Outcome() == OutcomeDone && !reconcile.Again {
		return fmt.Sprintf(l.pick("woke #%d", "次は #%d"), next.ID)
	}
	return ResultText(reconcile, l)
}

// Next returns the later reconcile of the same key that one of a reconcile's writes woke; nil if there is none.
func (s *State) Next(reconcile *Reconcile) *Reconcile {
	for _, e := range reconcile.Steps {
		if !e.IsWrite() {
			continue
		}
		for _, woken := range s.Woke(e) {
			if woken.queueKey() == reconcile.queueKey() && woken.ID > reconcile.ID {
				return woken
			}
		}
	}
	return nil
}

// WokenText describes in a few words what caused a reconcile, with the mark (own) if it was its operator's own write,
// and what merged into it.
func (s *State) WokenText(reconcile *Reconcile, l Language) string {
	text := l.pick("woken from outside", "外部からの追加")
	if reconcile.Logged {
		text = l.pick("cause not known", "契機は不明")
	}
	if wakes := s.Wakes(reconcile); len(wakes) > 0 {
		text = wakeText(wakes[0], l)
	}
	if n := reconcile.Merged(); n > 0 {
		text += fmt.Sprintf(l.pick(" + %d merged", " + %d 件を統合"), n)
	}
	return text
}

func wakeText(w Wake, l Language) string {
	if w.Event.Probably {
		sure := *w.Event
		sure.Probably = false
		w.Event = &sure
		return l.pick("probably ", "おそらく ") + wakeText(w, l)
	}
	switch {
	case w.Requeue != nil:
		return timerText(w.Requeue, l)
	case w.Watch != nil && w.Watch.Initial:
		return fmt.Sprintf(l.pick("found at start: %s", "開始時に存在: %s"), w.Watch.Object)
	case w.Watch != nil && w.Own:
		return fmt.Sprintf(l.pick("woken by %s %s (own)", "契機: %s %s (自分)"), w.Watch.Object, w.Watch.Verb)
	case w.Watch != nil:
		return fmt.Sprintf(l.pick("woken by %s %s", "契機: %s %s"), w.Watch.Object, w.Watch.Verb) + authorText(w, l)
	case w.Event.Reason != "":
		return l.pick("requeued at once", "直ちに再キューイング")
	}
	return l.pick("woken from outside", "外部からの追加")
}

// authorText returns in brackets who made the write behind a wake, if known.
func authorText(w Wake, l Language) string {
	if w.Write == nil {
		return ""
	}
	return " (" + ActorText(w.Write.Actor, l) + ")"
}

func timerText(e *Event, l Language) string {
	switch e.Outcome {
	case OutcomeError, OutcomePanic:
		return fmt.Sprintf(l.pick("retry of #%d", "#%d の再試行"), e.Reconcile)
	case OutcomeRequeue:
		return fmt.Sprintf(l.pick("requeued by #%d", "#%d が再キューイング"), e.Reconcile)
	}
	switch e.Reason {
	case ReasonBackoff, ReasonRequeue:
		return fmt.Sprintf(l.pick("backoff %s, try %d", "バックオフ %s、%d 回目"), FormatDuration(e.Delay), e.Try)
	}
	return fmt.Sprintf(l.pick("timer %s", "タイマー %s"), FormatDuration(e.Delay))
}

// ReadText describes what a reconcile read, by kind, such as "read Hikawa demo, 3 Zundoko (cache)"; empty if it read
// nothing.
func ReadText(reconcile *Reconcile, l Language) string {
	bySource := map[Source][]string{}
	var sources []Source
	for _, e := range reconcile.Calls() {
		if IsWriteVerb(e.Verb) {
			continue
		}
		if bySource[e.Source] == nil {
			sources = append(sources, e.Source)
		}
		text := readText(e, l)
		if e.Probably {
			text = l.pick("probably ", "おそらく ") + text
		}
		if !slices.Contains(bySource[e.Source], text) {
			bySource[e.Source] = append(bySource[e.Source], text)
		}
	}
	var out []string
	for _, s := range sources {
		text := strings.Join(bySource[s], ", ")
		if s != "" {
			text += " (" + string(s) + ")"
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return ""
	}
	return l.pick("read ", "読取 ") + strings.Join(out, ", ")
}

func readText(e *Event, l Language) string {
	switch {
	case e.Reason == "NotFound":
		return e.Object.String() + l.pick(": not found", ": なし")
	case e.Error != "":
		return e.Object.String() + ": " + orElse(e.Reason, oneLine(e.Error))
	case e.Verb == VerbList:
		return fmt.Sprintf("%d %s", e.Count, e.Object.Kind)
	}
	return e.Object.String()
}

// shortCall describes a call in a few words, such as "create Zundoko demo-004 (rv 812)".
func shortCall(e *Event, l Language) string {
	text := e.Verb + " " + e.Object.String()
	if e.Probably {
		text = l.pick("probably ", "おそらく ") + text
	}
	switch {
	case e.Failed():
		text += ": " + orElse(e.Reason, oneLine(e.Error))
	case e.Via == ViaDryRun:
		text += l.pick(" (dry run)", " (ドライラン)")
	case e.NoOp:
		text += l.pick(" (no change)", " (変化なし)")
	case e.Kind == KindCall && e.ResourceVersion != "":
		text += " (rv " + e.ResourceVersion + ")"
	}
	if e.Lost {
		text += ": " + LostText(l)
	}
	return text
}

// LostText says of a write that it was carried out and its answer was lost.
func LostText(l Language) string {
	return l.pick("committed, and its answer never arrived", "コミット済み、応答は届かなかった")
}

// deliveryText describes a watch event of a program without reconciles, such as "watch ADDED ConfigMap default/song (own)".
func (s *State) deliveryText(e *Event, l Language) string {
	text := "watch " + e.Verb + " " + placed(e.Object).String()
	if e.Initial {
		return text + l.pick(" (was there)", " (既存)")
	}
	switch write := s.Cause(e); {
	case write == nil:
	case write.Operator == e.Operator:
		text += l.pick(" (own)", " (自分)")
	default:
		text += " (" + ActorText(write.Actor, l) + ")"
	}
	return text
}

// gateCall describes a call of a program without reconciles, and what a write changed.
func gateCall(e *Event, l Language) string {
	full := *e
	full.Object = placed(e.Object)
	if !IsWriteVerb(e.Verb) {
		return e.Verb + " " + readText(&full, l)
	}
	text := shortCall(&full, l)
	if e.Before == nil || e.NoOp || e.Failed() {
		return text
	}
	changed := ChangedFields(e.Before, e.After)
	for i, path := range sortedKeys(changed) {
		if i == mostFields {
			return text + fmt.Sprintf(l.pick("; %d more", "、他 %d 件"), len(changed)-mostFields)
		}
		text += []string{": ", ", "}[min(i, 1)] + path + "=" + oneLine(changed[path])
	}
	return text
}

// mostFields is how many changed fields a line names.
const mostFields = 3

// placed returns a reference whose name has its namespace before it.
func placed(r Ref) Ref {
	if r.Name != "" {
		r.Name = r.Key().String()
	}
	return r
}

func controlText(verb string, l Language) string {
	switch verb {
	case VerbPause:
		return l.pick("paused: workers take no keys", "一時停止: ワーカーはキーを取り出さない")
	case VerbResume:
		return l.pick("resumed", "再開")
	case VerbStep:
		return l.pick("step: one key", "ステップ: キーを 1 つ")
	case VerbHoldWrites:
		return l.pick("writes are held before they are sent", "書き込みを送信前に保留する")
	case VerbRelease:
		return l.pick("one write released", "書き込みを 1 つ送信")
	case VerbSendWrites:
		return l.pick("writes are sent again", "書き込みの保留を解除")
	}
	return verb
}

func operatorText(verb string, l Language) string {
	switch verb {
	case VerbStart:
		return l.pick("started", "開始")
	case VerbStop:
		return l.pick("stopped", "停止")
	}
	return verb
}

// logText returns a log line as text.
func logText(e *Event) string {
	var b strings.Builder
	b.WriteString(oneLine(e.Message))
	for key, value := range e.Pairs() {
		fmt.Fprintf(&b, " %s=%s", key, oneLine(value))
	}
	if e.Error != "" {
		b.WriteString(": " + oneLine(e.Error))
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// DropReason says in words why no key was made of an event; empty if that is not known.
func DropReason(e *Event, l Language) string {
	if l != Japanese {
		return e.Reason
	}
	switch e.Reason {
	case ReasonStatusOnly:
		return "status か metadata だけの変更"
	case ReasonResync:
		return "再同期"
	}
	return e.Reason
}

// upperFirst returns a text that begins with a letter of ASCII with a capital one.
func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// orElse returns s, or other if s is empty.
func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
