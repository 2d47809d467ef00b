package tui

import (
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

type stageText struct{ name, long, short string }

// stageWeights share the width out: each place is as wide as the longest that
// is usually said there, and does not move when less is said.
var stageWeights = [...]int{8, 14, 16, 12, 13, 11, 14}

func (s stripBar) draw(r Rect) []row {
	stages := s.stages()
	now := s.activeStage()
	if r.H < 2 {
		return []row{s.short(stages, now)}
	}
	arrow := " ──▶ "
	if s.ascii {
		arrow = " --> "
	}
	names, values := text(plain, " "), text(plain, " ")
	total, sum := 0, 0
	for _, w := range stageWeights {
		total += w
	}
	room := r.W - 2 - (len(stages)-1)*width(arrow)
	for i, st := range stages {
		sum += stageWeights[i]
		end := 1 + room*sum/total + i*width(arrow)
		name, value := dim|bold, plain
		if stageID(i) == now {
			name, value = stage, bold
		}
		said := st.long
		if at := values.width(); width(said) > end-at {
			said = st.short
		}
		names.add(name, s.cutTo(st.name, end+width(arrow)-1-names.width()))
		values.add(value, s.cutTo(said, end-values.width())).to(end)
		if i < len(stages)-1 {
			values.add(dim, arrow)
			names.to(end + width(arrow))
		}
	}
	return []row{names, values}
}

// short draws the loop on one line.
func (s stripBar) short(stages []stageText, now stageID) row {
	var r row
	for i, st := range stages {
		if i == int(stageStatus) && s.w < 120 {
			continue
		}
		if i > 0 {
			r.add(dim, " > ")
		} else {
			r.add(plain, " ")
		}
		style, name := plain, strings.ToLower(st.name)
		if stageID(i) == now {
			style, name = stage, st.name
		}
		r.add(style, name+" "+st.short)
	}
	return r
}

// stages returns the texts of each stage at the cursor.
func (s stripBar) stages() []stageText {
	c := s.counters()
	reconcile := s.current()
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
	passed := max(0, c.Watched-c.Dropped)
	out := []stageText{
		{s.t("WATCH", "監視"), itoa(c.Watched) + s.t(" seen", " 件"), itoa(c.Watched)},
		{s.t("FILTER", "選別"), itoa(passed) + s.t(" ok, ", " 通過, ") + itoa(c.Dropped) + s.t(" drop", " 破棄"), "-" + itoa(c.Dropped)},
		{s.t("QUEUE", "キュー"), itoa(ready) + s.t(" ready, ", " 待機, ") + itoa(timed) + s.t(" timed", " 予約"), itoa(ready) + "+" + itoa(timed)},
		{s.t("RECONCILE", "調整"), s.reconcileText(reconcile, true), s.reconcileText(reconcile, false)},
	}
	return append(out, s.apiStage(reconcile), s.statusStage(reconcile), s.againStage(reconcile))
}

func (s stripBar) reconcileText(reconcile *trace.Reconcile, long bool) string {
	switch {
	case reconcile == nil:
		return s.t("none yet", "まだなし")
	case reconcile.Held != nil && long:
		return "#" + itoa(reconcile.ID) + s.t(" HELD", " 保留")
	case reconcile.Held != nil:
		return s.t("held", "保留")
	case reconcile.Running():
		return "#" + itoa(reconcile.ID) + s.t(" runs", " 実行中")
	case long:
		return "#" + itoa(reconcile.ID) + " " + trace.FormatDuration(reconcile.End.Duration)
	}
	return "#" + itoa(reconcile.ID)
}

func (s stripBar) apiStage(reconcile *trace.Reconcile) stageText {
	st := stageText{name: "API", long: "-", short: "-"}
	if reconcile == nil {
		return st
	}
	c := reconcile.Tally
	reads := c.CacheReads + c.ServerReads
	st.short = itoa(reads) + "r " + itoa(c.Writes) + "w"
	st.long = itoa(reads) + s.t(" read, ", " 読, ") + itoa(c.Writes) + s.t(" written", " 書")
	if reconcile.Held != nil {
		st.long, st.short = st.short+s.t(", 1 held", ", 1 保留"), st.short+s.t(" held", " 保留")
	}
	return st
}

func (s stripBar) statusStage(reconcile *trace.Reconcile) stageText {
	st := stageText{name: s.t("STATUS", "状態"), long: "-", short: "-"}
	o := s.primary(reconcile)
	if o == nil || o.Generation == 0 {
		return st
	}
	st.short = "g" + itoa(o.Generation)
	st.long = "gen " + itoa(o.Generation)
	if n := o.Meta().ObservedGeneration; n > 0 {
		st.long += " obs " + itoa(n)
	}
	return st
}

func (s stripBar) againStage(reconcile *trace.Reconcile) stageText {
	st := stageText{name: s.t("AGAIN", "再実行"), long: "-", short: "-"}
	switch {
	case reconcile == nil:
	case s.snapshot.Dirty(reconcile):
		st.long, st.short = s.t("dirty: at once", "変更あり: 直ちに"), s.t("dirty", "変更あり")
	case reconcile.Running():
	case reconcile.End.Delay > 0 && reconcile.End.Error != "":
		st.short = trace.FormatDuration(reconcile.End.Delay)
		st.long = s.t("backoff ", "バックオフ ") + st.short
	case reconcile.End.Delay > 0:
		st.short = trace.FormatDuration(reconcile.End.Delay)
		st.long = s.t("in ", "") + st.short + s.t("", " 後")
	default:
		st.long, st.short = s.t("when changed", "変更時"), "-"
	}
	return st
}

// activeStage returns the stage at which the newest event lies, if it is not long ago.
func (s stripBar) activeStage() stageID {
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
