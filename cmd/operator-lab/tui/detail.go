package tui

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// detailPane is pane 4: the diff, the YAML, the conditions or the log of the subject.
type detailPane struct{ *state }

// Tab selects which view of the subject the detail pane shows.
type Tab int

// The tabs of the detail pane.
const (
	DiffTab Tab = iota
	YAMLTab
	ConditionsTab
	LogTab
)

// subject is the selected thing; the detail pane, the explanation and the tree of causes are about it.
type subject struct {
	reconcile *trace.Reconcile
	event     *trace.Event // a step of it, or the write that tells most
	whole     bool         // the reconcile itself is selected, not the event
	object    *trace.Object
	ref       trace.Ref
	item      *trace.Item
}

// yamlRow sets the key of a line apart.
func yamlRow(l string) row {
	body := strings.TrimLeft(l, " -")
	lead := l[:len(l)-len(body)]
	if i := strings.Index(body, ":"); i > 0 && (i+1 == len(body) || body[i+1] == ' ') {
		r := text(plain, "  "+lead)
		return *r.add(field, body[:i]).add(plain, body[i:])
	}
	return text(plain, "  "+l)
}

// manyLogs bounds the log lines of an object's reconciles that are shown.
const manyLogs = 200

func logStyle(e *trace.Event) style {
	if e.Error != "" || e.Stack != "" {
		return bad
	}
	return plain
}

func (s detailPane) draw(in Rect) content {
	p := content{title: s.t("Detail  ", "詳細  ") + s.subject().name(&s.theme), right: s.tabs()}
	rows := s.rows(in)
	if len(rows) == 0 {
		rows = []row{text(dim, s.t("  nothing selected", "  何も選択されていない"))}
	}
	if whole := folded(rows, in.W); s.focus == DetailPane || len(whole) <= in.H { // nothing is cut there, or where there is room
		rows = whole
	}
	p.rows = scrolled(s.state, DetailPane, rows, in.H)
	return p
}

// rows returns what the open tab has; none if nothing is selected.
func (s detailPane) rows(in Rect) []row {
	sub := s.subject()
	switch s.tab {
	case YAMLTab:
		return s.yamlRows(sub)
	case ConditionsTab:
		return s.conditionRows(sub, in.W)
	case LogTab:
		return s.logRows(sub)
	default:
		rows := s.sourceRow(sub.event)
		return append(rows, s.diffRows(sub, Rect{W: in.W, H: in.H - len(rows)})...)
	}
}

func (sub subject) name(th *theme) string {
	switch {
	case sub.reconcile != nil && sub.whole && sub.event != nil:
		return "#" + itoa(sub.reconcile.ID) + "  " + sub.event.Verb + " " + sub.event.Object.String()
	case sub.reconcile != nil && sub.whole:
		return "#" + itoa(sub.reconcile.ID) + "  " + keyName(sub.reconcile.Key)
	case sub.event != nil && sub.event.Kind == trace.KindLog:
		return th.t("log line", "ログ")
	case sub.event != nil && sub.event.Kind == trace.KindHook:
		return th.t("hook ", "フック ") + sub.event.Verb
	case sub.reconcile != nil && sub.event != nil:
		return sub.event.Verb + " " + sub.event.Object.String()
	case sub.item != nil:
		return queueName(sub.item.Operator, sub.item.Controller, sub.item.Key)
	}
	return sub.ref.String()
}

func (s detailPane) tabs() string {
	names := []string{s.t("diff", "差分"), "yaml", "conds", s.t("log", "ログ")}
	for i, k := range []string{"d", "y", "c", "l"} {
		names[i] = k + ":" + names[i]
		if i == int(s.tab) {
			names[i] = "[" + names[i] + "]"
		}
	}
	return strings.Join(names, " ")
}

// diffRows shows what the subject changed.
func (s detailPane) diffRows(sub subject, in Rect) []row {
	e := sub.event
	switch {
	case e == nil && sub.reconcile != nil:
		rows := []row{text(dim, "  "+s.nothingWritten(sub.reconcile))}
		return append(rows, s.objectRows(sub, in)...)
	case sub.item != nil && sub.object == nil:
		return []row{text(dim, s.t("  a key that waits: what it changes is told of its reconcile", "  待っているキー。何を変更したかは reconcile の行に出る"))}
	case e == nil && sub.object == nil:
		return nil
	case e == nil || sub.reconcile == nil && sub.object != nil && (s.from != LoopPane || e.Kind == trace.KindWatch):
		return s.changeRows(sub.object, e, in)
	case e.Kind == trace.KindLog:
		return s.logEventRows(e)
	case e.Kind == trace.KindHook:
		return s.hookDiff(e, in)
	case !e.IsWrite() && e.Kind == trace.KindCall:
		head := s.t("  a read: it changes nothing", "  読み取り: 何も変えない")
		if e.Source == trace.Cache {
			head += s.t("; answered by the cache, the API server was not asked", "。キャッシュが応答し、API サーバーへの問い合わせなし")
		}
		return append([]row{text(dim, head)}, s.objectRows(sub, in)...)
	}
	rows := s.writeHead(e)
	if sub.reconcile != nil && sub.reconcile.Held == e && s.placed.Pane[LoopPane].H-2 < minForecast {
		rows = append(rows, wrapped(plain, "  ", strings.Join(s.loop().ifSent(sub.reconcile), " "), in.W-3)...)
	}
	if e.IsWrite() {
		rows = append(rows, s.diffBody(e, Rect{W: in.W, H: in.H - len(rows)})...)
	}
	if sub.whole && in.H > len(rows)+4 {
		rows = append(rows, row{})
		rows = append(rows, s.conditionRows(sub, in.W)...)
	}
	return rows
}

// objectRows shows the conditions of the object a reconcile is about, below a remark.
func (s detailPane) objectRows(sub subject, in Rect) []row {
	switch {
	case sub.object == nil || in.H < 3:
		return nil
	case in.H < 5:
		return s.conditionRows(sub, in.W)
	}
	return append([]row{{}}, s.conditionRows(sub, in.W)...)
}

// writeHead says how a write went, if there is anything to say.
func (s detailPane) writeHead(e *trace.Event) []row {
	switch {
	case e.Kind == trace.KindHold && !e.IsWrite():
		return []row{text(planned, s.t("  NOT SENT YET: a read that waits", "  未送信: 待っている読み取り"))}
	case e.Kind == trace.KindHold:
		return []row{text(planned, s.t("  NOT SENT YET: this is what would be sent", "  未送信: 送信される内容"))}
	case e.Error != "":
		return []row{text(bad, "  "+s.t("refused: ", "拒否: ")+orElse(e.Reason, "")+" "+e.Error)}
	case e.Lost:
		return []row{text(warn, "  "+trace.LostText(s.lang))}
	case e.NoOp:
		return []row{text(warn, s.t("  it changed nothing: same resourceVersion, so no watch event follows",
			"  変化なし: resourceVersion が同じため、watch イベントは発生しない"))}
	}
	return nil
}

// diffBody shows what a write changes; what is created or deleted as a whole is
// written short where there is no room for all of it, and no scrolling asked for.
func (s detailPane) diffBody(e *trace.Event, in Rect) []row {
	before, after := e.Change()
	if e.Lost { // its watch event has what it changed
		for _, watch := range s.snapshot.Effects(e) {
			before, after = watch.Before, watch.After
		}
	}
	switch {
	case e.Verb == trace.VerbDelete:
		after = nil
	case e.Verb == trace.VerbDeleteAll:
		return []row{text(plain, s.t("  deletes all ", "  すべて削除: ")+e.Object.Kind)}
	case after == nil && before == nil:
		return []row{text(dim, s.t("  what was sent is not known", "  送信内容は不明"))}
	case e.Verb == trace.VerbCreate:
		before = nil
	}
	rows := s.diffText(before, after)
	switch {
	case len(rows) <= in.H || s.focus == DetailPane:
		return rows
	case before != nil && after != nil:
		return changedFirst(rows)
	}
	return s.flowRows(before, after, in.W)
}

// changedFirst puts the lines that differ before those around them, for where there is no room for all.
func changedFirst(rows []row) []row {
	around := func(r row) int {
		if st := r.segs[0].st; st == added || st == taken {
			return 0
		}
		return 1
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b row) int { return around(a) - around(b) })
	return rows
}

// flowRows shows an object that is created or deleted in few lines.
func (s detailPane) flowRows(before, after json.RawMessage, w int) []row {
	sign, st, raw := " + ", added, after
	if after == nil {
		sign, st, raw = " - ", taken, before
	}
	var rows []row
	for _, line := range flowLines(raw) {
		for i, part := range wrap(line, max(20, w-6)) {
			if i > 0 {
				part = "  " + part
			}
			rows = append(rows, text(st, sign+part))
		}
	}
	return append(rows, text(dim, s.t("   (4: all of it)", "   (4: 全体)")))
}

func (s detailPane) diffText(before, after json.RawMessage) []row {
	lines := s.diff(before, after)
	if len(lines) == 0 {
		return []row{text(dim, s.t("  no field differs", "  差分なし"))}
	}
	rows := make([]row, 0, len(lines))
	for _, l := range lines {
		switch l.Op {
		case '+':
			rows = append(rows, text(added, " + "+l.Text))
		case '-':
			rows = append(rows, text(taken, " - "+l.Text))
		case '.':
			rows = append(rows, text(dim, "   ..."))
		default:
			rows = append(rows, text(dim, "   "+l.Text))
		}
	}
	return rows
}

// changeRows shows the last change of an object, and who made it.
func (s detailPane) changeRows(o *trace.Object, e *trace.Event, in Rect) []row {
	if o == nil {
		return s.diffBody(e, Rect{W: in.W, H: 1 << 20})
	}
	before, after := o.Before, o.Raw
	if o.Deleted {
		before, after = o.Raw, nil
	}
	rows := s.diffText(before, after)
	if len(rows) > in.H && s.focus != DetailPane && before != nil && after != nil {
		return changedFirst(rows)
	}
	return rows
}

func (s detailPane) yamlRows(sub subject) []row {
	if sub.event != nil && !sub.whole && sub.event.Kind == trace.KindHook {
		return s.hookBodies(sub.event)
	}
	var raw json.RawMessage
	switch {
	case sub.event != nil && !sub.whole && sub.event.IsWrite() && sub.event.After != nil:
		raw = sub.event.After
	case sub.object != nil:
		raw = sub.object.Raw
	case sub.event != nil:
		raw = sub.event.After
	}
	lines := yamlLines(raw)
	if len(lines) == 0 {
		return []row{text(dim, s.t("  no object to show", "  表示するオブジェクトなし"))}
	}
	rows := make([]row, 0, len(lines))
	for _, l := range lines {
		rows = append(rows, yamlRow(l))
	}
	return rows
}

func (s detailPane) conditionRows(sub subject, w int) []row {
	o := sub.object
	if o == nil {
		return []row{text(dim, s.t("  no object", "  オブジェクトなし"))}
	}
	m := o.Meta()
	head := text(bold, "  "+o.Ref.String())
	if g := s.generations(o); g != "" {
		head.add(plain, "  "+g)
		if o.Lagging() {
			head.add(warn, s.t("  status is behind", "  status が遅れている"))
		}
	}
	rows := []row{head}
	if o.Deleted {
		rows = append(rows, text(warn, s.t("  it is gone; these were its last conditions", "  もう存在しない。以下は最後の conditions")))
	}
	rows = append(append(rows, s.containerRows(o, w)...), s.channelRows(o)...)
	if len(m.Conditions) == 0 {
		return append(rows, text(dim, s.t("  it has no conditions", "  conditions なし")))
	}
	kind, reason := 8, 8
	for _, c := range m.Conditions {
		kind, reason = max(kind, width(cmp.Or(c.Type, c.Phase))), max(reason, width(c.Reason))
	}
	kind, reason = min(kind, w/4), min(reason, w/3)
	for i, c := range m.Conditions {
		st, status := warn, c.Status
		switch {
		case o.Deleted:
			st = gone
		case c.Phase != "":
			st, status = plain, s.phaseTime(m.Conditions[i:])
		case c.Status == "True":
			st = ok
		}
		r := text(plain, "  ")
		r.cell(&s.theme, plain, cmp.Or(c.Type, c.Phase), kind).cell(&s.theme, st, status, 7).cell(&s.theme, plain, c.Reason, reason)
		rows = append(rows, *r.add(dim, c.Message))
	}
	return rows
}

func (s detailPane) logRows(sub subject) []row {
	var reconciles []*trace.Reconcile
	if sub.reconcile != nil && s.from == LoopPane {
		reconciles = []*trace.Reconcile{sub.reconcile}
	} else if key, known := sub.key(); known {
		for i, n := reconcileAt(s.index.reconciles, s.cursor()), 0; i >= 0 && n < manyLogs; i-- {
			if reconcile, _ := s.reconcileNow(s.index.reconciles[i]); reconcile.Key == key {
				reconciles = append([]*trace.Reconcile{reconcile}, reconciles...)
				n += max(1, len(reconcile.Steps))
			}
		}
	}
	var rows []row
	if s.gated() {
		for _, e := range s.index.requests {
			if e.Kind == trace.KindLog && s.shows(e.Operator) && e.Seq <= s.cursor() {
				rows = append(rows, *(&row{}).add(dim, "  "+clock(e.At)+" ").add(logStyle(e), logText(e)))
			}
		}
		rows = rows[max(0, len(rows)-manyLogs):]
	}
	for _, reconcile := range reconciles {
		for _, e := range reconcile.Logs() {
			r := text(dim, "  "+clock(e.At)+" ")
			rows = append(rows, *r.add(dim, s.fit("#"+itoa(reconcile.ID), 5)).add(logStyle(e), logText(e)))
		}
	}
	if len(rows) == 0 {
		return []row{text(dim, s.t("  the operator logged nothing here", "  ログなし"))}
	}
	return rows
}

func (sub subject) key() (trace.Key, bool) {
	switch {
	case sub.item != nil:
		return sub.item.Key, true
	case sub.reconcile != nil:
		return sub.reconcile.Key, true
	case sub.object != nil:
		return sub.object.Ref.Key(), true
	}
	return trace.Key{}, false
}

// logEventRows shows all of one log line.
func (s detailPane) logEventRows(e *trace.Event) []row {
	rows := []row{text(logStyle(e), "  "+e.Message)}
	for key, value := range e.Pairs() {
		r := text(field, "    "+key)
		rows = append(rows, *r.add(plain, " = "+value))
	}
	if e.Error != "" {
		rows = append(rows, text(bad, "  "+e.Error))
	}
	for line := range strings.SplitSeq(strings.TrimSpace(e.Stack), "\n") {
		if line != "" {
			rows = append(rows, text(dim, "  "+strings.ReplaceAll(line, "\t", "  ")))
		}
	}
	return rows
}

// move scrolls the text.
func (s detailPane) move(n int) { s.scrollBy(DetailPane, n) }

// nothingWritten says so of a reconcile without writes in the journal, in a sentence.
func (s detailPane) nothingWritten(reconcile *trace.Reconcile) string {
	switch {
	case reconcile.Running():
		return s.t("it has written nothing yet", "まだ何も書き込んでいない")
	case reconcile.Outcome() == trace.OutcomeAborted:
		return s.t("it was cut off: no write was answered", "途中で中断された: 応答を受け取った書き込みはない")
	}
	return s.t("this reconcile wrote nothing", "この reconcile は何も書き込まなかった")
}
