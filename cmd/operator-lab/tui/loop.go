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
	key        string // of the filter it was made with
	first      *trace.Reconcile
	seen       int // reconciles of the index looked at
	reconciles []*trace.Reconcile
}

// loopColumns are the widths of the columns, and whether to show the operator.
type loopColumns struct {
	id, operator, key, outcome, took, wrote int
}

// minForecast is the height from which on the Loop pane says what a held write
// will lead to; on smaller ones the detail pane alone does.
const minForecast = 12

// stepIndent is the column at which the steps of a reconcile begin.
const stepIndent = 6

// reconciles returns the reconciles that pass the filter, in the order they began.
func (s loopPane) reconciles() []*trace.Reconcile {
	l, all := &s.loopCache, s.index.reconciles
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
	passes := func(reconcile *trace.Reconcile) bool {
		return s.shows(reconcile.Operator) && s.matches(LoopPane, s.searchText(reconcile))
	}
	for ; l.seen < len(all) && !all[l.seen].Running(); l.seen++ {
		if passes(all[l.seen]) {
			l.reconciles = append(l.reconciles, all[l.seen])
		}
	}
	out := slices.Clip(l.reconciles)
	for _, reconcile := range all[l.seen:] { // how one ends that runs is not known yet
		if passes(reconcile) {
			out = append(out, reconcile)
		}
	}
	return out
}

// searchText returns the text of a reconcile that a filter is matched with: that of its line, and of its calls.
func (s loopPane) searchText(reconcile *trace.Reconcile) string {
	tip := s.index.timeline.Tip()
	parts := []string{
		"#" + itoa(reconcile.ID), reconcile.Operator, reconcile.Controller, reconcile.Key.String(),
		tip.WokenText(reconcile, s.lang), tip.OutcomeText(reconcile, s.lang),
	}
	for _, step := range reconcile.Steps {
		if step.Kind != trace.KindLog {
			parts = append(parts, step.Verb, step.Object.String())
		}
	}
	return strings.Join(parts, " ")
}

// opened reports whether a reconcile shows its steps: the selected one does,
// unless it was closed; others if they were opened.
func (s loopPane) opened(reconcile *trace.Reconcile) bool {
	if open, by := s.open[reconcile.ID]; by {
		return open
	}
	return reconcile.First == s.sel.reconcile
}

func (s loopPane) columns(w int, reconciles []*trace.Reconcile) loopColumns {
	c := loopColumns{id: 4, key: 4, outcome: 13, took: 6, wrote: 5}
	operators := len(s.index.operators) > 1 && s.operator == ""
	for _, reconcile := range reconciles {
		c.id = max(c.id, 1+len(itoa(reconcile.ID)))
		c.key = max(c.key, width(keyName(reconcile.Key)))
		at, _ := s.reconcileNow(reconcile)
		outcome, _ := s.outcome(s.snapshot, at)
		c.outcome = max(c.outcome, width(outcome))
		if operators {
			c.operator = max(c.operator, width(orElse(reconcile.Controller, reconcile.Operator)))
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
	gated := s.gated()
	if gated {
		p.title = s.t("Requests  ", "リクエスト  ") + s.heading()
	}
	p.right = s.t("follow off", "追従なし")
	switch {
	case s.placed.Pane[ObjectsPane].Empty():
		p.right = s.t("1 objects 2 queue [3 loop]", "1 オブジェクト 2 キュー [3 ループ]") + s.lessonTab()
		if gated {
			p.right = s.t("1 objects 2 queue [3 requests]", "1 オブジェクト 2 キュー [3 リクエスト]")
		}
	case s.follow && s.live:
		p.right = s.t("follow", "追従")
	}
	if gated {
		if s.live && s.snapshot.Mode().Paused {
			p.foot = s.t("paused: its requests wait at the gate", "一時停止中: リクエストはゲートで待つ")
		}
		p.rows = s.drawRequests(in)
		return p
	}
	reconciles := s.reconciles()
	if len(reconciles) == 0 {
		p.rows = []row{text(dim, s.t("  no reconcile yet", "  reconcile はまだない"))}
		if s.filter[LoopPane] != "" {
			p.rows = []row{text(dim, s.t("  no reconcile matches the filter; / changes it", "  フィルターに一致する reconcile はない。/ で変更"))}
		}
		return p
	}
	h := in.H - 1
	i := max(0, reconcileAt(reconciles, s.sel.reconcile))
	around := reconciles[max(0, i-h):min(len(reconciles), i+h+1)]
	col := s.columns(in.W, around)
	if in.H > 9 {
		p.rows = append(p.rows, s.head(col))
	} else {
		h++
	}
	rows, head, block, selected := s.around(reconciles, i, Rect{0, 0, in.W, h}, col)
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
func (s loopPane) around(reconciles []*trace.Reconcile, i int, in Rect, col loopColumns) (rows []row, head, length, selected int) {
	h := in.H
	var blocks [][]row
	for k, n := i-1, 0; k >= 0 && n < h; k-- {
		block, _ := s.reconcileRows(reconciles[k], in, col)
		block = append(s.laterHead(reconciles, k), block...)
		n += len(block)
		blocks = append(blocks, block)
	}
	for _, block := range slices.Backward(blocks) {
		rows = append(rows, block...)
	}
	block, at := s.reconcileRows(reconciles[i], in, col)
	rows = append(rows, s.laterHead(reconciles, i)...)
	head = len(rows)
	selected = head + at
	rows = append(rows, block...)
	for k, n := i+1, 0; k < len(reconciles) && n < h; k++ {
		block, _ := s.reconcileRows(reconciles[k], in, col)
		block = append(s.laterHead(reconciles, k), block...)
		n += len(block)
		rows = append(rows, block...)
	}
	return rows, head, len(block), selected
}

// laterHead is the line before the first reconcile that had not begun at the cursor.
func (s loopPane) laterHead(reconciles []*trace.Reconcile, k int) []row {
	if s.live || reconciles[k].First <= s.cursor() || k > 0 && reconciles[k-1].First > s.cursor() {
		return nil
	}
	return []row{text(dim, s.t("  -- later than this --", "  -- これより後 --"))}
}

// reconcileRows returns the rows of a reconcile, and which of them is selected if any is.
func (s loopPane) reconcileRows(reconcile *trace.Reconcile, in Rect, col loopColumns) (rows []row, selected int) {
	at, later := s.reconcileNow(reconcile)
	mine := reconcile.First == s.sel.reconcile
	r := s.reconcileRow(at, later, col, in.W)
	r.chosen = mine && s.sel.step == 0 && s.focus == LoopPane
	rows = append(rows, r)
	if !s.opened(reconcile) || later {
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

// reconcileRow is the line of a reconcile.
func (s loopPane) reconcileRow(reconcile *trace.Reconcile, later bool, c loopColumns, w int) row {
	var r row
	sign := "  "
	if s.opened(reconcile) && !later {
		sign = s.theme.open + " "
	}
	r.add(accent, sign).cell(&s.theme, bold, "#"+itoa(reconcile.ID), c.id)
	if c.operator > 0 {
		r.name(&s.theme, plain, orElse(reconcile.Controller, reconcile.Operator), c.operator)
	}
	if c.key > 0 {
		r.name(&s.theme, plain, keyName(reconcile.Key), c.key)
	}
	outcome, st := s.outcome(s.snapshot, reconcile)
	r.cell(&s.theme, st, outcome, c.outcome)
	took := reconcile.Ended - reconcile.Started
	if reconcile.Running() {
		took = max(0, s.now-reconcile.Started)
	} else if reconcile.End.Duration > 0 {
		took = reconcile.End.Duration
	}
	t := trace.FormatDuration(took)
	if reconcile.Running() {
		t = age(took)
	}
	r.add(plain, blanks(c.took-width(t))).add(dim, t+" ")
	wrote := "-"
	if n := reconcile.Tally.Writes; n > 0 {
		wrote = itoa(n) + "w"
	}
	r.cell(&s.theme, plain, wrote, c.wrote)
	s.addWoken(&r, reconcile, later, w-r.width()-1)
	if later {
		r.base |= faint
	}
	return r
}

// addWoken appends the cause of a reconcile, and how many events merged into it.
func (s loopPane) addWoken(r *row, reconcile *trace.Reconcile, later bool, room int) {
	state := s.stateOf(later)
	if len(reconcile.Woken) == 0 {
		r.add(dim, "?")
		return
	}
	merged := ""
	if n := reconcile.Merged(); n > 0 {
		merged = " + " + itoa(n)
		if long := merged + s.t(" merged", " 件統合"); room-width(long) >= leastName {
			merged = long
		}
	}
	s.addCause(r, state.Wake(reconcile.Woken[0]), room-width(merged))
	r.add(note, merged)
}

// move moves up or down by n lines: reconciles, and the steps of those that are open.
func (s loopPane) move(n int) {
	if s.gated() {
		s.moveRequest(n)
		return
	}
	for ; n < 0; n++ {
		s.moveOne(-1)
	}
	for ; n > 0; n-- {
		s.moveOne(1)
	}
}

func (s loopPane) moveOne(n int) {
	reconciles := s.reconciles()
	i := reconcileAt(reconciles, s.sel.reconcile)
	if len(reconciles) == 0 {
		return
	}
	s.scroll[DetailPane], s.scroll[CausePane] = 0, 0
	if i < 0 || reconciles[i].First != s.sel.reconcile {
		i = max(i, 0)
		s.sel.reconcile, s.sel.step = reconciles[i].First, 0
		return
	}
	if step, ok := s.stepAt(reconciles[i], n); ok {
		s.sel.step = step
		s.follow = false
		return
	}
	if k := i + n; k >= 0 && k < len(reconciles) {
		s.sel.reconcile, s.sel.step = reconciles[k].First, 0
		if n < 0 {
			s.sel.step = s.lastStep(reconciles[k])
		}
		s.follow = false
	}
}
