package tui

import (
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// stripBar shows the stages of the loop, always in the same place.
type stripBar struct{ *state }

// The seven stages of the loop: the eye learns seven positions.
type stageID int

const (
	noStage stageID = iota - 1
	stageWatch
	stageFilter
	stageQueue
	stageReconcile
	stageAPI
	stageStatus
	stageAgain
)

// stageText is what is told of a stage: under its name, and where there is only one line.
type stageText struct{ name, value, alone string }

// stageWidths are the widths of what is usually told of each stage: it does not move when less is told.
var stageWidths = [...]int{15, 14, 12, 11, 17, 17, 12}

func (s stripBar) draw(r Rect) []row {
	stages := s.stages()
	now := s.activeStage()
	if r.H < 2 {
		return []row{s.line(stages, now, r.W)}
	}
	arrow := " ─▶ "
	if s.ascii {
		arrow = " -> "
	}
	names, values := text(plain, " "), text(plain, " ")
	spare := r.W - 2 - (len(stages)-1)*width(arrow)
	for _, w := range stageWidths {
		spare -= w
	}
	if r.W < 160 { // the sentence and the detail pane tell of the status
		spare += stageWidths[stageStatus] + width(arrow)
	}
	for i, st := range stages {
		if r.W < 160 && stageID(i) == stageStatus {
			continue
		}
		joint := arrow
		if i == 0 {
			joint = ""
		}
		if values.width()+width(joint)+max(width(st.value), width(st.name)) > r.W { // a number is not cut
			break
		}
		values.add(dim, joint)
		names.to(values.width())
		name, value := dim|bold, plain
		if stageID(i) == now {
			name, value = stage, bold
		}
		end := values.width() + stageWidths[i] + max(0, spare)/len(stages)
		names.add(name, st.name)
		values.add(value, st.value)
		if i < len(stages)-1 {
			values.to(max(end, names.width()))
		}
	}
	return []row{names, values}
}

// line tells on one line of the stages whose numbers fit.
func (s stripBar) line(stages []stageText, now stageID, w int) row {
	r := text(plain, " ")
	for i, st := range stages {
		joint := " · "
		switch {
		case s.ascii:
			joint = " | "
		case stageID(i) == stageFilter:
			joint = s.t(", ", "、")
		}
		if st.alone == "" {
			continue
		}
		if i == 0 {
			joint = ""
		}
		if r.width()+width(joint)+width(st.alone) > w {
			break
		}
		look := plain
		if stageID(i) == now {
			look = stage
		}
		r.add(dim, joint).add(look, st.alone)
	}
	return r
}

// stages returns the texts of each stage at the cursor.
func (s stripBar) stages() []stageText {
	c := s.counters()
	reconcile := s.current()
	watched := itoa(c.Watched) + s.t(" events seen", " 件のイベント")
	if c.Watched == 1 {
		watched = s.t("1 event seen", watched)
	}
	watch := stageText{s.t("WATCH", "WATCH"), watched, watched}
	api := s.apiStage(reconcile)
	if s.gated() {
		value := s.calls(c)
		api = stageText{"API", value, value}
	}
	filter, queue, again := s.filterStage(reconcile), s.queueStage(), s.againStage(reconcile)
	runs := stageText{name: "RECONCILE", value: s.reconcileText(reconcile)}
	status := s.statusStage(reconcile)
	if s.queueless() {
		filter, queue = s.unseen(filter.name), s.unseen(queue.name)
	}
	if s.gated() {
		runs, status, again = s.unseen(runs.name), s.unseen(status.name), s.unseen(again.name)
	}
	return []stageText{watch, filter, queue, runs, api, status, again}
}

// queueStage tells how many keys wait in the queue, and how many are on a timer.
func (s stripBar) queueStage() stageText {
	ready, timed := 0, 0
	for _, item := range s.snapshot.Queue() {
		switch {
		case !s.shows(item.Operator):
		case item.Ready:
			ready++
		default:
			timed++
		}
	}
	var parts []string
	if ready > 0 {
		parts = append(parts, itoa(ready)+s.t(" waiting", " 件待機"))
	}
	if timed > 0 {
		parts = append(parts, itoa(timed)+s.t(" on a timer", " 件タイマー待ち"))
	}
	st := stageText{name: s.t("QUEUE", "キュー"), value: strings.Join(parts, s.t(", ", "、"))}
	st.alone = s.t("queue: ", "キュー: ") + st.value
	if ready+timed == 0 {
		st.value, st.alone = s.t("empty", "空"), s.t("queue empty", "キューは空")
	}
	return st
}

// unseen is the text of a stage that is not seen.
func (s stripBar) unseen(name string) stageText {
	return stageText{name: name, value: s.t("not seen", "見えない")}
}

// filterStage counts the events of which no key was made. Each controller judges an event for itself, so they are those
// of one controller: that of the reconcile that is told of.
func (s stripBar) filterStage(reconcile *trace.Reconcile) stageText {
	st := stageText{name: s.t("FILTER", "フィルター")}
	filters := s.filters()
	at := slices.IndexFunc(filters, func(f filter) bool {
		return reconcile != nil && f.Operator == reconcile.Operator && f.Controller == reconcile.Controller
	})
	var f filter
	if len(filters) > 0 {
		f = filters[max(0, at)]
	}
	st.value = itoa(f.dropped) + s.t(" made no key", " 件はキーにならず")
	st.alone = st.value
	if len(filters) > 1 {
		st.name += " " + s.elide(f.Controller, 14)
		st.alone += s.t(" for ", ": ") + s.elide(f.Controller, 14)
	}
	return st
}

func (s stripBar) reconcileText(reconcile *trace.Reconcile) string {
	switch {
	case reconcile == nil:
		return s.t("none yet", "まだなし")
	case reconcile.Held != nil:
		return "#" + itoa(reconcile.ID) + s.t(" HELD", " 保留中")
	case reconcile.Running():
		return "#" + itoa(reconcile.ID) + s.t(" running", " 実行中")
	}
	if reconcile.Outcome() == trace.OutcomeAborted {
		return "#" + itoa(reconcile.ID) + s.t(" aborted", " 中断")
	}
	return "#" + itoa(reconcile.ID) + s.t(" ended", " 終了")
}

// calls counts reads and writes in words.
func (s stripBar) calls(c trace.Counters) string {
	of := func(n int, one, japanese string) string {
		if n != 1 {
			one += "s"
		}
		return s.t(itoa(n)+" "+one, japanese+" "+itoa(n))
	}
	return of(c.CacheReads+c.ServerReads, "read", "読み取り") + s.t(", ", "、") + of(c.Writes, "write", "書き込み")
}

func (s stripBar) apiStage(reconcile *trace.Reconcile) stageText {
	if reconcile == nil {
		return stageText{name: "API", value: "-"}
	}
	value := s.calls(reconcile.Tally)
	if reconcile.Held != nil {
		value += s.t(", 1 held", "、保留 1")
	}
	return stageText{"API", value, "#" + itoa(reconcile.ID) + ": " + value}
}

func (s stripBar) statusStage(reconcile *trace.Reconcile) stageText {
	st := stageText{name: "STATUS", value: "-"}
	switch o := s.primary(reconcile); {
	case o == nil:
	case o.Deleted:
		st.value, _ = s.health(o)
	default:
		st.value = orElse(s.generations(o), "-")
	}
	return st
}

func (s stripBar) againStage(reconcile *trace.Reconcile) stageText {
	st := stageText{name: s.t("AGAIN", "次の実行"), value: "-"}
	switch {
	case reconcile == nil:
	case s.snapshot.Dirty(reconcile), reconcile.Again:
		st.value = s.t("at once", "直ちに")
	case reconcile.Running():
	case reconcile.Logged && reconcile.End.Delay == 0 && reconcile.Outcome() != trace.OutcomeDone:
		return s.unseen(st.name)
	case reconcile.End.Delay > 0:
		st.value = s.t("in ", "") + trace.FormatDuration(reconcile.End.Delay) + s.t("", " 後")
	case reconcile.Outcome() == trace.OutcomeAborted, reconcile.End.QueueEnded():
		st.value = s.t("on restart", "再起動時")
	default:
		st.value = s.t("when changed", "変更時")
	}
	return st
}

// activeStage returns the stage at which the newest event lies, if it is not long ago and the stage is seen.
func (s stripBar) activeStage() stageID {
	at := s.newestStage()
	switch {
	case s.gated() && at != stageWatch && at != stageAPI, s.queueless() && at == stageQueue:
		return noStage
	}
	return at
}

func (s stripBar) newestStage() stageID {
	if s.held() != nil {
		return stageAPI
	}
	e := s.index.timeline.Event(s.cursor())
	if e == nil || s.live && !s.replay && s.now-e.At > quietAfter {
		if s.live && s.snapshot.Mode().Paused {
			return stageQueue
		}
		return noStage
	}
	switch e.Kind {
	case trace.KindWatch:
		return stageWatch
	case trace.KindDrop:
		return stageFilter
	case trace.KindEnqueue, trace.KindMerge, trace.KindReady:
		return stageQueue
	case trace.KindDequeue, trace.KindStart, trace.KindLog:
		return stageReconcile
	case trace.KindCall, trace.KindHold:
		if e.Object.Subresource == "status" {
			return stageStatus
		}
		return stageAPI
	case trace.KindEnd, trace.KindRequeue:
		return stageAgain
	}
	return noStage
}
