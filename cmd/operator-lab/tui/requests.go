package tui

import (
	"slices"
	"sort"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// This file is what pane 3 shows of a program of which only the requests are seen: a line for each of its calls, of what its
// watches were told, and of its log.

// isRequest reports whether an event has a line here, if its operator has no reconciles.
func isRequest(e *trace.Event) bool {
	if e.Operator == "" || e.Reconcile != 0 {
		return false
	}
	switch e.Kind {
	case trace.KindCall, trace.KindWatch:
		return e.Via == trace.ViaGate || e.Lost
	case trace.KindHold, trace.KindLog, trace.KindOperator:
		return true
	}
	return false
}

// requests returns the lines that pass the filter. Of a held write that was sent, only the call has one.
func (s loopPane) requests() []*trace.Event {
	tip := s.index.timeline.Tip()
	return slices.DeleteFunc(slices.Clone(s.index.requests), func(e *trace.Event) bool {
		if !s.shows(e.Operator) || e.Kind == trace.KindHold && len(tip.Effects(e)) > 0 {
			return true
		}
		return s.filter[LoopPane] != "" && !s.matches(LoopPane, s.requestText(e))
	})
}

// requestAt returns which request has a Seq, or is the last before it; -1 if there is none.
func requestAt(all []*trace.Event, seq int64) int {
	return sort.Search(len(all), func(i int) bool { return all[i].Seq > seq }) - 1
}

// requestText returns the text of a request that a filter is matched with.
func (s loopPane) requestText(e *trace.Event) string {
	r := s.requestRow(e, manyCells, 0)
	return strings.Join(strings.Fields(r.plain()), " ")
}

// drawRequests draws them, the selected one among them, else the newest.
func (s loopPane) drawRequests(in Rect) []row {
	all := s.requests()
	if len(all) == 0 {
		return []row{text(dim, s.t("  no request yet", "  リクエストはまだない"))}
	}
	i := max(0, requestAt(all, s.sel.step))
	from := window(len(all), i, in.H)
	if s.follow && s.live {
		from = max(0, len(all)-in.H)
	}
	all = all[from:min(len(all), from+in.H)]
	object := 12
	for _, e := range all {
		object = max(object, width(placedName(e.Object)))
	}
	rows := make([]row, len(all))
	for k, e := range all {
		rows[k] = s.requestRow(e, min(object, in.W/2), in.W)
		rows[k].chosen = e.Seq == s.sel.step && s.focus == LoopPane
		if e.Seq > s.cursor() {
			rows[k].base |= later
		}
	}
	return rows
}

// placedName names an object with its namespace, unless that goes without saying.
func placedName(r trace.Ref) string {
	if r.Name != "" {
		r.Name = keyName(r.Key())
	}
	return r.String()
}

// requestRow is the line of a request, with the object in so many cells.
func (s loopPane) requestRow(e *trace.Event, object, w int) row {
	r := text(dim, " "+clock(e.At)+" ")
	verb, st := e.Verb, plain
	switch {
	case e.Kind == trace.KindLog:
		return *r.cell(&s.theme, dim, s.t("log", "ログ"), 8).add(logStyle(e), logText(e))
	case e.Kind == trace.KindOperator:
		return *r.add(accent, s.index.timeline.Tip().Why(e, s.lang))
	case e.IsWrite():
		st = bold
	case e.Kind == trace.KindWatch:
		st = accent
	}
	r.cell(&s.theme, st, verb, 8).name(&s.theme, plain, placedName(e.Object), object)
	switch e.Kind {
	case trace.KindHold:
		if e.Reason == trace.ReasonPaused {
			return *r.add(planned, s.t("NOT SENT: it waits, the loop is paused", "未送信: 一時停止中なので待っている"))
		}
		return *r.add(planned, s.t("NOT SENT", "未送信"))
	case trace.KindWatch:
		s.addTold(&r, e)
		return r
	}
	result, st := s.callResult(e)
	if e.Verb == trace.VerbWatch && e.Error == "" {
		result = s.t("opened", "開始")
	}
	r.add(st, result)
	if took := trace.FormatDuration(e.Duration); r.width()+width(took)+2 <= w-1 && e.Duration > 0 {
		r.to(w-1-width(took)).add(dim, took)
	}
	return r
}

// addTold appends where a watch event came from.
func (s loopPane) addTold(r *row, e *trace.Event) {
	write := s.index.timeline.Tip().Cause(e)
	switch {
	case e.Initial:
		r.add(dim, s.t("was there", "既存"))
	case write == nil:
	case write.Operator == e.Operator:
		r.add(own, s.ownMark())
	default:
		r.add(dim, s.t("by ", "変更者 ")+trace.ActorText(write.Actor, s.lang))
	}
}

// moveRequest moves the selection by n lines.
func (s loopPane) moveRequest(n int) {
	all := s.requests()
	if len(all) == 0 {
		return
	}
	i := min(max(0, requestAt(all, s.sel.step)+n), len(all)-1)
	s.sel.step, s.scroll[DetailPane] = all[i].Seq, 0
	s.follow = s.follow && i == len(all)-1
}

// request returns the subject of the selected line.
func (s loopPane) request() subject {
	all := s.index.requests
	i := requestAt(all, s.sel.step)
	if i < 0 || all[i].Seq != s.sel.step {
		return subject{}
	}
	sub := subject{event: all[i]}
	if sub.event.Object.Name != "" {
		sub.ref = bare(sub.event.Object)
		sub.object = s.object(sub.ref)
	}
	return sub
}

// goRequest moves the cursor to the request before or after the selected one.
func (nav navigator) goRequest(n int) string {
	all := nav.loop().requests()
	i := requestAt(all, nav.sel.step) + n
	switch {
	case len(all) == 0:
		return nav.t("no request yet", "リクエストはまだない")
	case i < 0:
		return nav.t("this is the first request; home goes to the beginning", "最初のリクエスト。home で先頭へ")
	case i >= len(all)-1:
		nav.goLive()
		return ""
	}
	nav.from = LoopPane
	nav.goTo(all[i].Seq)
	nav.sel.step, nav.scroll[DetailPane] = all[i].Seq, 0
	return ""
}

// selectRequest selects the last request until the cursor, if there are only requests.
func (nav navigator) selectRequest() {
	all := nav.loop().requests()
	if i := requestAt(all, nav.cursor()); nav.gated() && len(all) > 0 {
		nav.sel.step, nav.scroll[DetailPane] = all[max(i, 0)].Seq, 0
	}
}

// gatedWords say in the help what keys do to a program of which only the requests are seen.
var gatedWords = map[string]struct{ english, japanese string }{
	"space": {"pause: its requests wait at the gate; again: resume", "一時停止: リクエストがゲートで待つ。もう一度で再開"},
	"s":     {"let one request pass, and what is held", "リクエスト 1 つと、保留中の書き込みを通す"},
	"S":     {"let one request pass; a write is held before it is sent", "リクエスト 1 つを通す。書き込みなら送信前に保留する"},
	"[ ]":   {"the previous, the next line: everything as of then", "前/次の行。画面全体がその時点になる"},
	"enter": {"details", "詳細へ"},
}
