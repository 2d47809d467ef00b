package tui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// queuePane is pane 2: what runs, what is ready, what waits for a timer, and what made no key.
type queuePane struct{ *state }

// heatWindow is the time over which reconciles per key are counted.
const heatWindow = 10 * time.Second

// hot is the number of reconciles of one key in that time from which on the
// loop is likely to be chasing itself: five in a second, all the time.
const hot = 50

// queueLine is a line of the queue pane; several belong to one key.
type queueLine struct {
	key   trace.QueueKey
	first bool // it is the line that can be selected
	row   row
}

// labelWidth fits the longest kind of line.
const labelWidth = 8

type addLine func(trace.QueueKey, bool, row)

// leastName is the minimum width of a shortened name; then the text behind it is cut off. A name gets as short as shortName
// where that leaves what happened to it whole.
const leastName, shortName = 14, 10

func (s queuePane) draw(in Rect) content {
	lines, ready := s.lines(in)
	p := content{title: s.t("Queue", "キュー") + s.asOf(), right: itoa(ready) + s.t(" ready", " 待機")}
	if s.queueless() {
		p.right = ""
	}
	selected := -1
	for i, l := range lines {
		if l.first && l.key == s.sel.key {
			selected = i
			break
		}
	}
	from := window(len(lines), selected, in.H)
	for i := from; i < len(lines) && i < from+in.H; i++ {
		r := lines[i].row
		r.chosen = i == selected && s.focus == QueuePane
		p.rows = append(p.rows, r)
	}
	return p
}

func (s queuePane) lines(in Rect) (lines []queueLine, ready int) {
	add := func(key trace.QueueKey, first bool, r row) {
		if key == (trace.QueueKey{}) || s.matches(QueuePane, queueName(key.Operator, key.Controller, key.Key)) {
			lines = append(lines, queueLine{key, first, r})
		}
	}
	for _, reconcile := range s.snapshot.Running() {
		if s.shows(reconcile.Operator) {
			s.runningLines(reconcile, in.W, add)
		}
	}
	timed, keys := false, 0
	for _, item := range s.snapshot.Queue() {
		if item.Ready && s.shows(item.Operator) {
			keys++
		}
	}
	for _, item := range s.snapshot.Queue() {
		switch {
		case !s.shows(item.Operator):
		case item.Ready:
			ready++
			s.readyLines(item, in.W, max(2, (in.H-2-keys)/keys), add)
		default:
			timed = true
			s.timedLines(item, in.W, add)
		}
	}
	switch {
	case len(lines) == 0 && s.gated():
		add(trace.QueueKey{}, false, text(dim, s.t(" not seen: only its requests are", " 見えない (リクエストのみ記録)")))
	case s.queueless():
		add(trace.QueueKey{}, false, text(dim, s.t(" what waits is not seen", " 待機中のキーは見えない")))
	case len(lines) == 0:
		add(trace.QueueKey{}, false, text(dim, s.t(" empty: nothing runs, nothing waits", " 空: 実行中も待機中もなし")))
	case !timed && ready == 0 && len(s.snapshot.Running()) > 0:
		add(trace.QueueKey{}, false, text(dim, s.t(" nothing else waits", " 他に待つものはない")))
	}
	s.dropLines(in.W, add)
	if room := in.H - len(lines); room >= 3 {
		s.heatLines(in.W, room, add)
	}
	return lines, ready
}

// label begins a line of the queue: its kind and the key.
func (s queuePane) label(st style, kind, name string, w int) row {
	var r row
	r.add(plain, " ").cell(&s.theme, st, kind, labelWidth)
	return *r.name(&s.theme, bold, name, min(max(12, width(name)), max(8, w-labelWidth-16)))
}

func (s queuePane) runningLines(reconcile *trace.Reconcile, w int, add addLine) {
	key := trace.QueueKey{Operator: reconcile.Operator, Controller: reconcile.Controller, Key: reconcile.Key}
	r := s.label(ok|bold, s.running+" "+s.t("RUN", "実行"), queueName(reconcile.Operator, reconcile.Controller, reconcile.Key), w)
	r.add(plain, "#"+itoa(reconcile.ID)+" ")
	if reconcile.Held != nil {
		r.add(hold, s.t("held ", "保留 ")+age(s.now-reconcile.Held.At))
	} else {
		r.add(dim, s.t("for ", "")+age(s.now-reconcile.Started))
	}
	add(key, true, r)
	if s.snapshot.Dirty(reconcile) {
		add(key, false, text(warn, blanks(labelWidth+2)+s.t("dirty: will run again", "変更あり: もう一度実行する")))
	}
}

// readyLines list the events below the key they were merged into, the newest where not all fit.
func (s queuePane) readyLines(item *trace.Item, w, most int, add addLine) {
	r := s.label(accent, s.theme.held+" "+s.t("READY", "待機"), queueName(item.Operator, item.Controller, item.Key), w)
	n := len(item.Events)
	if item.Merged() > 0 {
		r.add(note, itoa(n)+s.t(" events, 1 key", " イベント → 1 キー"))
	} else {
		r.add(dim, s.t("1 event", "1 イベント"))
	}
	add(item.QueueKey, true, r)
	events := item.Events
	if len(events) > most {
		add(item.QueueKey, false, text(dim, blanks(labelWidth+2)+s.t("... and ", "… 他 ")+itoa(len(events)-most)+s.t(" before", " 件")))
		events = events[len(events)-most:]
	}
	for _, e := range events {
		r := text(plain, blanks(labelWidth+2))
		s.addCause(&r, s.snapshot.Wake(e), w-r.width()-1)
		add(item.QueueKey, false, r)
	}
}

func (s queuePane) timedLines(item *trace.Item, w int, add addLine) {
	r := s.label(wait, s.timer+" "+s.t("TIMED", "予約"), queueName(item.Operator, item.Controller, item.Key), w)
	left := item.Due - s.now
	switch {
	case left <= 0 || !s.motion:
		r.add(plain, s.t("due", "まもなく"))
	case left >= time.Second:
		r.add(plain, s.t("in ", "あと ")+age(left))
	default:
		r.add(plain, s.t("in <1s", "あと <1s"))
	}
	if q := item.Requeue; q != nil {
		r.add(dim, "  "+s.timerText(q))
	}
	add(item.QueueKey, true, r)
}

func (s queuePane) dropLines(w int, add addLine) {
	filters := s.filters()
	for _, f := range filters {
		if f.dropped == 0 {
			continue
		}
		var r row
		r.add(plain, " ").cell(&s.theme, dim, s.t("DROPPED", "破棄"), labelWidth)
		events := s.t(" events made no key", " 件はキーにならず")
		if f.dropped == 1 {
			events = s.t(" event made no key", events)
		}
		if len(filters) > 1 {
			r.add(plain, f.Controller+": ")
		}
		if n := itoa(f.dropped); r.width()+width(n+events) > w {
			r.add(plain, n+s.t("", " 件"))
		} else {
			r.add(plain, n+events)
		}
		add(trace.QueueKey{}, false, r)
	}
	for i := len(s.snapshot.Drops()) - 1; i >= 0; i-- {
		d := s.snapshot.Drops()[i]
		if !s.shows(d.Operator) {
			continue
		}
		what := d.Object.String()
		if watch := s.snapshot.Cause(d); watch != nil {
			what = watch.Object.String() + " " + watch.Verb
		}
		r := text(dim, blanks(labelWidth+2)+s.t("last: ", "最後: "))
		r.add(dim, s.elide(what, w-r.width()-1))
		if reason := trace.DropReason(d, s.lang); reason != "" {
			r.add(dim, ": "+reason)
		}
		add(trace.QueueKey{}, false, r)
		return
	}
}

// heatLines shows the reconciles per key of the last seconds.
func (s queuePane) heatLines(w, room int, add addLine) {
	type key struct {
		trace.QueueKey
		n int
	}
	var all []key
	most := 1
	for k, n := range s.snapshot.Heat(s.now - heatWindow) {
		if s.shows(k.Operator) {
			all = append(all, key{k, n})
			most = max(most, n)
		}
	}
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b key) int {
		return cmp.Or(b.n-a.n, strings.Compare(a.Operator+a.Controller+a.Key.String(), b.Operator+b.Controller+b.Key.String()))
	})
	add(trace.QueueKey{}, false, row{})
	add(trace.QueueKey{}, false, text(dim, s.t(" HEAT     reconciles in 10s", " 頻度     10 秒間の reconcile 回数")))
	for _, k := range all[:min(len(all), room-2)] {
		name := queueName(k.Operator, k.Controller, k.Key)
		var r row
		r.add(plain, "  ").name(&s.theme, plain, name, min(24, w/2))
		st := ok
		word := ""
		if k.n >= hot {
			st, word = bad, s.t(" HOT", " 過多")
		}
		long := max(1, min(k.n, w-r.width()-8))
		r.add(st, strings.Repeat(s.heat, long)).add(plain, " "+itoa(k.n)).add(bad, word)
		add(trace.QueueKey{}, false, r)
	}
}

// selectable are the keys that can be selected in the queue, in the order they are shown.
func (s queuePane) selectable() []trace.QueueKey {
	lines, _ := s.lines(Rect{0, 0, 80, 1000})
	var keys []trace.QueueKey
	for _, l := range lines {
		if l.first {
			keys = append(keys, l.key)
		}
	}
	return keys
}

func (s queuePane) move(n int) {
	keys := s.selectable()
	if len(keys) == 0 {
		return
	}
	i := slices.Index(keys, s.sel.key)
	s.sel.key = keys[min(max(0, i+n), len(keys)-1)]
	s.scroll[DetailPane] = 0
}

// subject returns what is selected in the queue.
func (s queuePane) subject() subject {
	for _, reconcile := range s.snapshot.Running() {
		if (trace.QueueKey{Operator: reconcile.Operator, Controller: reconcile.Controller, Key: reconcile.Key}) == s.sel.key {
			sub := subject{reconcile: reconcile, whole: true, event: mainStep(reconcile)}
			sub.object = s.primary(reconcile)
			return sub
		}
	}
	for _, item := range s.snapshot.Queue() {
		if item.QueueKey != s.sel.key {
			continue
		}
		sub := subject{item: item, event: item.Requeue}
		if len(item.Events) > 0 {
			sub.event = item.Events[0]
		}
		if sub.event != nil {
			if w := s.snapshot.Wake(sub.event); w.Watch != nil {
				sub.event, sub.ref = w.Watch, w.Watch.Object
				sub.object = s.object(sub.ref)
			}
		}
		return sub
	}
	return subject{}
}

// settle selects the first key if what is selected is not there.
func (s queuePane) settle() {
	keys := s.selectable()
	if !slices.Contains(keys, s.sel.key) && len(keys) > 0 {
		s.sel.key = keys[0]
	}
}
