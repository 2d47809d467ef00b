package tui

import (
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// loopPane is pane 3: one line for each reconcile, opened into its calls and log lines.
type loopPane struct{ *state }

// loopList is the list of the reconciles that are shown. It only grows, unless
// the filter changes.
type loopList struct {
	key   string // of the filter it was made with
	first *trace.Span
	seen  int // spans of the index looked at
	spans []*trace.Span
}

// loopColumns are the widths of the columns, and whether to show the operator.
type loopColumns struct {
	id, operator, key, outcome, took, wrote int
}

// minForecast is the height from which on the Loop pane says what a held write
// will lead to; on smaller ones the detail pane alone does.
const minForecast = 12

// stepIndent is where the steps of a reconcile begin.
const stepIndent = 6

// spans returns the reconciles that pass the filter, in the order they began.
func (s loopPane) spans() []*trace.Span {
	l, all := &s.loopCache, s.index.spans
	if s.operator == "" && s.filter[LoopPane] == "" {
		return all
	}
	key := s.operator + "\x00" + string(s.filter[LoopPane])
	if key != l.key || l.seen > len(all) || len(all) > 0 && l.first != all[0] {
		*l = loopList{key: key}
		if len(all) > 0 {
			l.first = all[0]
		}
	}
	for ; l.seen < len(all); l.seen++ {
		if span := all[l.seen]; s.shows(span.Operator) && s.matches(LoopPane, s.searchText(span)) {
			l.spans = append(l.spans, span)
		}
	}
	return l.spans
}

// searchText returns the text of a reconcile that a filter is matched with. Words
// about the end match only reconciles that ended.
func (s loopPane) searchText(span *trace.Span) string {
	tip := s.index.timeline.Tip()
	return "#" + itoa(span.ID) + " " + span.Operator + " " + span.Controller + " " + span.Key.String() + " " +
		tip.WokenText(span, s.lang) + " " + trace.ResultText(span, s.lang)
}

// opened reports whether a reconcile shows its steps: the selected one does,
// unless it was closed; others if they were opened.
func (s loopPane) opened(span *trace.Span) bool {
	if open, by := s.open[span.ID]; by {
		return open
	}
	return span.First == s.sel.span
}

func (s loopPane) columns(w int, spans []*trace.Span) loopColumns {
	c := loopColumns{id: 4, key: 4, outcome: 17, took: 6, wrote: 5}
	if w < 84 {
		c.wrote = 3
	}
	if s.lang == trace.Japanese {
		c.outcome += 4
	}
	operators := len(s.index.operators) > 1 && s.operator == ""
	for _, span := range spans {
		c.id = max(c.id, 1+len(itoa(span.ID)))
		c.key = max(c.key, width(keyName(span.Key)))
		if operators {
			c.operator = max(c.operator, width(orElse(span.Controller, span.Operator)))
		}
	}
	if operators && w >= 84 {
		c.operator = max(c.operator, width(s.t("controller", "コントローラー")))
	}
	c.key, c.operator = min(c.key, max(8, w/6)), min(c.operator, max(8, w/6))
	if s.index.oneKey != nil { // the title names it
		c.key = 0
	}
	return c
}

func (s loopPane) draw(in Rect) content {
	p := content{title: s.t("Loop  ", "ループ  ") + s.heading()}
	p.right = s.t("follow off", "追従なし")
	switch {
	case s.placed.Pane[ObjectsPane].Empty():
		p.right = s.t("1 objects 2 queue [3 loop]", "1 オブジェクト 2 キュー [3 ループ]") + s.lessonTab()
	case s.follow && s.live:
		p.right = s.t("follow", "追従")
	}
	spans := s.spans()
	if len(spans) == 0 {
		p.rows = []row{text(dim, s.t("  no reconcile yet", "  調整はまだない"))}
		if s.filter[LoopPane] != "" {
			p.rows = []row{text(dim, s.t("  no reconcile matches the filter; / changes it", "  フィルターに一致する調整はない。/ で変更"))}
		}
		return p
	}
	h := in.H - 1
	i := max(0, spanAt(spans, s.sel.span))
	around := spans[max(0, i-h):min(len(spans), i+h+1)]
	col := s.columns(in.W, around)
	if in.H > 9 {
		p.rows = append(p.rows, s.head(col))
	} else {
		h++
	}
	rows, head, block, selected := s.around(spans, i, Rect{0, 0, in.W, h}, col)
	from := window(len(rows), selected, h)
	if s.follow && s.live && len(rows) > h {
		from = min(max(selected-h+1, len(rows)-h), selected)
	}
	if end := head + block; end > from+h { // its steps are to be seen…
		from = end - h
	}
	if selected-head < h { // …and its own line all the more
		from = min(from, head)
	}
	from = max(0, min(from, len(rows)-h))
	p.rows = append(p.rows, rows[from:min(len(rows), from+h)]...)
	return p
}

func (s loopPane) lessonTab() string {
	if s.guided {
		return s.t(" 5 lesson", " 5 レッスン")
	}
	return ""
}

func (s loopPane) heading() string {
	switch {
	case s.operator != "":
		return s.operator
	case s.index.oneKey != nil:
		return orElse(s.index.oneKey.Controller, s.index.oneKey.Operator) + "  " + keyName(s.index.oneKey.Key)
	case len(s.index.operators) == 1:
		return s.index.operators[0]
	case len(s.index.operators) == 0:
		return ""
	}
	return s.t("all operators", "全オペレーター")
}

func (s loopPane) head(c loopColumns) row {
	var r row
	r.add(plain, "  ").cell(&s.theme, dim, "#", c.id)
	if c.operator > 0 {
		name := s.t("controller", "コントローラー")
		if width(name) > c.operator {
			name = s.t("loop", "ループ")
		}
		r.cell(&s.theme, dim, name, c.operator)
	}
	if c.key > 0 {
		r.cell(&s.theme, dim, s.t("key", "キー"), c.key)
	}
	r.cell(&s.theme, dim, s.t("outcome", "結果"), c.outcome)
	took := s.t("time", "時間")
	r.add(plain, blanks(c.took-width(took))).add(dim, took+" ")
	wrote := s.t("wrote", "書込")
	if c.wrote < width(wrote) {
		wrote = s.t("wr", "書")
	}
	r.cell(&s.theme, dim, wrote, c.wrote)
	r.add(dim, s.t("woken by", "契機"))
	return r
}

// around returns the rows of the reconcile i and those around it, at least as
// many before and after it as are seen, where its own begin and how many they
// are, and which is selected.
func (s loopPane) around(spans []*trace.Span, i int, in Rect, col loopColumns) (rows []row, head, length, selected int) {
	h := in.H
	var blocks [][]row
	for k, n := i-1, 0; k >= 0 && n < h; k-- {
		block, _ := s.spanRows(spans[k], in, col)
		block = append(s.laterHead(spans, k), block...)
		n += len(block)
		blocks = append(blocks, block)
	}
	for _, block := range slices.Backward(blocks) {
		rows = append(rows, block...)
	}
	block, at := s.spanRows(spans[i], in, col)
	rows = append(rows, s.laterHead(spans, i)...)
	head = len(rows)
	selected = head + at
	rows = append(rows, block...)
	for k, n := i+1, 0; k < len(spans) && n < h; k++ {
		block, _ := s.spanRows(spans[k], in, col)
		block = append(s.laterHead(spans, k), block...)
		n += len(block)
		rows = append(rows, block...)
	}
	return rows, head, len(block), selected
}

// laterHead is the line before the first reconcile that had not begun at the cursor.
func (s loopPane) laterHead(spans []*trace.Span, k int) []row {
	if s.live || spans[k].First <= s.cursor() || k > 0 && spans[k-1].First > s.cursor() {
		return nil
	}
	return []row{text(dim, s.t("  -- later than this --", "  -- これより後 --"))}
}

// spanRows returns the rows of a reconcile, and which of them is selected if any is.
func (s loopPane) spanRows(span *trace.Span, in Rect, col loopColumns) (rows []row, selected int) {
	at, later := s.spanNow(span)
	mine := span.First == s.sel.span
	r := s.spanRow(at, later, col, in.W)
	r.chosen = mine && s.sel.step == 0 && s.focus == LoopPane
	rows = append(rows, r)
	if !s.opened(span) || later {
		return rows, 0
	}
	call := 0
	names := stepColumns(at)
	for _, e := range at.Steps {
		if e.Kind != trace.KindLog {
			call++
		}
		r := s.stepRow(e, call, names, in.W)
		if mine && s.sel.step == e.Seq {
			selected = len(rows)
			r.chosen = s.focus == LoopPane
			r.segs[0].s = strings.Replace(r.segs[0].s, "  ", " "+s.at, 1)
			if s.focus != LoopPane {
				r.base |= bold
			}
		}
		rows = append(rows, r)
	}
	if at.End != nil && at.End.Error != "" {
		rows = append(rows, text(bad, blanks(stepIndent)+s.t("error  ", "エラー  ")+at.End.Error))
	}
	if in.H >= minForecast {
		for _, line := range s.ifSent(at) {
			rows = append(rows, text(plain, blanks(stepIndent)+line))
		}
	}
	return rows, selected
}

// spanRow is the line of a reconcile.
func (s loopPane) spanRow(span *trace.Span, later bool, c loopColumns, w int) row {
	var r row
	sign := "  "
	if s.opened(span) && !later {
		sign = s.theme.open + " "
	}
	r.add(accent, sign).cell(&s.theme, bold, "#"+itoa(span.ID), c.id)
	if c.operator > 0 {
		r.name(&s.theme, plain, orElse(span.Controller, span.Operator), c.operator)
	}
	if c.key > 0 {
		r.name(&s.theme, plain, keyName(span.Key), c.key)
	}
	outcome, st := s.outcome(span)
	r.cell(&s.theme, st, outcome, c.outcome)
	took := span.Ended - span.Started
	if span.Running() {
		took = max(0, s.now-span.Started)
	} else if span.End.Duration > 0 {
		took = span.End.Duration
	}
	t := trace.FormatDuration(took)
	if span.Running() {
		t = age(took)
	}
	r.add(plain, blanks(c.took-width(t))).add(dim, t+" ")
	wrote := "-"
	if n := span.Tally.Writes; n > 0 {
		wrote = itoa(n) + "w"
	}
	r.cell(&s.theme, plain, wrote, c.wrote)
	s.addWoken(&r, span, later, w-r.width()-1)
	if later {
		r.base |= faint
	}
	return r
}

// addWoken appends the cause of a reconcile, and how many events merged into it.
func (s loopPane) addWoken(r *row, span *trace.Span, later bool, room int) {
	state := s.stateOf(later)
	if len(span.Woken) == 0 {
		r.add(dim, "?")
		return
	}
	merged := ""
	if n := span.Merged(); n > 0 {
		merged = " + " + itoa(n) + s.t(" merged", " 件統合")
	}
	s.addCause(r, state.Wake(span.Woken[0]), room-width(merged))
	r.add(note, merged)
}

// move moves up or down by n lines: reconciles, and the steps of those that are open.
func (s loopPane) move(n int) {
	for ; n < 0; n++ {
		s.moveOne(-1)
	}
	for ; n > 0; n-- {
		s.moveOne(1)
	}
}

func (s loopPane) moveOne(n int) {
	spans := s.spans()
	i := spanAt(spans, s.sel.span)
	if len(spans) == 0 {
		return
	}
	s.scroll[DetailPane], s.scroll[CausePane] = 0, 0
	if i < 0 || spans[i].First != s.sel.span {
		i = max(i, 0)
		s.sel.span, s.sel.step = spans[i].First, 0
		return
	}
	if step, ok := s.stepAt(spans[i], n); ok {
		s.sel.step = step
		s.follow = false
		return
	}
	if k := i + n; k >= 0 && k < len(spans) {
		s.sel.span, s.sel.step = spans[k].First, 0
		if n < 0 {
			s.sel.step = s.lastStep(spans[k])
		}
		s.follow = false
	}
}
