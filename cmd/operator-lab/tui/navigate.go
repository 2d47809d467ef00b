package tui

import (
	"slices"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// paneOf returns the pane a digit is for.
func paneOf(pressed string) (Pane, bool) {
	if len(pressed) == 1 && pressed[0] >= '1' && pressed[0] < '1'+byte(panes-1) {
		return Pane(pressed[0] - '0'), true
	}
	return NoPane, false
}

// focusOn focuses a pane, bringing it on top where it shares a place; focusing
// the focused pane again zooms it.
func (m *Model) focusOn(p Pane) {
	if p == LessonPane && !m.guided {
		m.say("5: " + m.t("there is no lesson here", "レッスンはない"))
		return
	}
	if p == m.focus {
		m.zoomIn()
		return
	}
	m.setFocus(p)
}

func (m *Model) setFocus(p Pane) {
	m.focus = p
	switch p {
	case ObjectsPane, QueuePane, LoopPane:
		m.from, m.top = p, p
		m.scroll[DetailPane], m.scroll[CausePane] = 0, 0
		m.selectSomething()
	case CausePane:
		m.top = p
	case DetailPane, LessonPane:
		m.low = p
	}
}

// selectSomething selects the first thing of a pane in which nothing that is there is selected.
func (m *Model) selectSomething() {
	switch m.from {
	case ObjectsPane:
		lines := m.treeLines()
		is := func(t treeLine) bool { return t.heading == "" && sameObject(t.ref(), m.sel.object) }
		if !slices.ContainsFunc(lines, is) && len(lines) > 0 {
			m.sel.object = bare(lines[0].ref())
		}
	case QueuePane:
		keys := m.queueKeys()
		if !slices.Contains(keys, m.sel.key) && len(keys) > 0 {
			m.sel.key = keys[0]
		}
	}
}

// cycle focuses the next pane of those that are shown or can be.
func (m *Model) cycle(n int) {
	order := []Pane{ObjectsPane, QueuePane, LoopPane, DetailPane, CausePane}
	if m.guided { // from the lesson to the loop
		order = []Pane{LessonPane, LoopPane, DetailPane, ObjectsPane, QueuePane, CausePane}
	}
	order = slices.DeleteFunc(order, func(p Pane) bool {
		return p == CausePane && m.w < 160
	})
	i := slices.Index(order, m.focus)
	m.setFocus(order[(i+n+len(order))%len(order)])
}

// selectNewest selects the newest reconcile, and of one that is held the write.
func (m *Model) selectNewest() {
	spans := m.loopSpans()
	if len(spans) == 0 {
		return
	}
	newest := spans[len(spans)-1]
	if held := m.held(); held != nil && m.shows(held.Operator) {
		newest = held
	}
	m.sel.span, m.sel.step = newest.First, 0
	if newest.Held != nil {
		m.sel.step = newest.Held.Seq
	}
	m.scroll[DetailPane] = 0
}

// goTo moves the cursor to an event; 0 is the live edge.
func (m *Model) goTo(seq int64) {
	m.cursorAt = seq
	m.recall()
	m.now = m.time()
}

// goLive returns to the live edge and follows it.
func (m *Model) goLive() {
	m.goTo(0)
	m.follow = true
	m.selectNewest()
}

func (m *Model) goHome() {
	m.goTo(m.index.step(0, 1))
	if spans := m.loopSpans(); len(spans) > 0 {
		m.sel.span, m.sel.step = spans[0].First, 0
	}
	m.follow = false
}

// goSpan moves the cursor to the end of the reconcile before or after the selected one.
func (m *Model) goSpan(n int) {
	spans := m.loopSpans()
	if len(spans) == 0 {
		m.say(m.t("no reconcile yet", "調整はまだない"))
		return
	}
	i := spanAt(spans, m.sel.span) + n
	if m.past() && n > 0 && i < len(spans) && i >= 0 && spans[max(0, i-1)].First > m.cursor() {
		i = spanAt(spans, m.cursor()) + 1 // the selected one has not happened yet
	}
	switch {
	case i < 0:
		m.say(m.t("this is the first reconcile; home goes to the beginning", "最初の調整。home で先頭へ"))
		return
	case i >= len(spans):
		m.goLive()
		return
	}
	span := spans[i]
	m.from = LoopPane
	m.goTo(min(span.Last, m.index.last()))
	m.sel.span, m.sel.step = span.First, 0
	m.scroll[DetailPane], m.scroll[CausePane] = 0, 0
}

// goEvent moves the cursor by one event and selects the reconcile it belongs to.
func (m *Model) goEvent(n int) {
	to := m.index.step(m.cursor(), n)
	if n > 0 && to >= m.index.lastMark() {
		m.goLive()
		return
	}
	m.goTo(to)
	e := m.index.timeline.Event(to)
	if e == nil || e.Reconcile == 0 {
		if e != nil {
			m.say(m.eventText(e))
		}
		return
	}
	m.say(m.eventText(e))
	for _, span := range m.loopSpans() {
		if span.ID == e.Reconcile {
			m.sel.span, m.sel.step = span.First, 0
			if slices.Contains(span.Steps, e) {
				m.sel.step = e.Seq
			}
		}
	}
}

// eventText names an event in a line.
func (m *Model) eventText(e *trace.Event) string {
	out := m.t("event ", "イベント ") + itoa(e.Seq) + ": " + string(e.Kind)
	if e.Verb != "" {
		out += " " + e.Verb
	}
	if !e.Object.IsZero() {
		out += " " + e.Object.String()
	} else if !e.Key.IsZero() {
		out += " " + queueName(e.Operator, e.Controller, e.Key)
	}
	if e.Message != "" {
		out += " " + e.Message
	}
	return out
}

// move moves the selection of the focused pane, or scrolls it.
func (m *Model) move(n int) {
	switch m.focus {
	case LoopPane, ObjectsPane, QueuePane:
		m.from = m.focus
	}
	switch m.focus {
	case LoopPane:
		m.moveLoop(n)
	case ObjectsPane:
		m.moveObject(n)
	case QueuePane:
		m.moveKey(n)
	default:
		m.scrollBy(m.focus, n)
	}
}

// turn moves by as much as is seen.
func (m *Model) turn(n int) {
	h := max(1, m.layout().Pane[m.focus].H-3)
	switch m.focus {
	case LoopPane, ObjectsPane, QueuePane:
		for range h {
			m.move(n)
		}
	default:
		m.scrollBy(m.focus, n*h)
	}
}

// scrollBy scrolls a pane of text, no further than its end.
func (m *Model) scrollBy(p Pane, n int) {
	r := m.layout().Pane[p]
	in := Rect{0, 0, r.W - 2, r.H - 2}
	old := m.scroll[p]
	m.scroll[p] = 0
	most := max(0, len(m.content(p, in).rows)-in.H)
	m.scroll[p] = min(max(0, old+n), most)
}

// moveLoop moves to the line above or below: a reconcile, or a step of one that is open.
func (m *Model) moveLoop(n int) {
	spans := m.loopSpans()
	i := spanAt(spans, m.sel.span)
	if len(spans) == 0 {
		return
	}
	m.scroll[DetailPane], m.scroll[CausePane] = 0, 0
	if i < 0 || spans[i].First != m.sel.span {
		i = max(i, 0)
		m.sel.span, m.sel.step = spans[i].First, 0
		return
	}
	if step, ok := m.stepAt(spans[i], n); ok {
		m.sel.step = step
		m.follow = false
		return
	}
	if k := i + n; k >= 0 && k < len(spans) {
		m.sel.span, m.sel.step = spans[k].First, 0
		if n < 0 {
			m.sel.step = m.lastStep(spans[k])
		}
		m.follow = false
	}
}

func (m *Model) moveObject(n int) {
	lines := slices.DeleteFunc(slices.Clone(m.treeLines()), func(t treeLine) bool { return t.heading != "" })
	if len(lines) == 0 {
		return
	}
	i := slices.IndexFunc(lines, func(t treeLine) bool { return sameObject(t.ref(), m.sel.object) })
	i = min(max(0, i+n), len(lines)-1)
	m.sel.object = bare(lines[i].ref())
	m.scroll[DetailPane] = 0
}

// queueKeys are the keys that can be selected in the queue, in the order they are shown.
func (m *Model) queueKeys() []trace.QueueKey {
	lines, _ := m.queueLines(Rect{0, 0, 80, 1000})
	var keys []trace.QueueKey
	for _, l := range lines {
		if l.first {
			keys = append(keys, l.key)
		}
	}
	return keys
}

func (m *Model) moveKey(n int) {
	keys := m.queueKeys()
	if len(keys) == 0 {
		return
	}
	i := slices.Index(keys, m.sel.key)
	m.sel.key = keys[min(max(0, i+n), len(keys)-1)]
	m.scroll[DetailPane] = 0
}

// enter opens or closes a reconcile, and goes from what is selected to its details.
func (m *Model) enter() {
	switch {
	case m.focus == LessonPane:
		m.setFocus(LoopPane)
		return
	case m.focus != LoopPane || m.sel.step != 0:
		m.setFocus(DetailPane)
		return
	}
	if i := spanAt(m.loopSpans(), m.sel.span); i >= 0 {
		span := m.loopSpans()[i]
		m.open[span.ID] = !m.opened(span)
	}
}

// back undoes what was done last on the way into something.
func (m *Model) back() {
	switch {
	case m.zoom != ZoomNormal:
		m.zoom = ZoomNormal
	case m.filter[m.focus] != "":
		m.filter[m.focus] = ""
	case m.focus != m.from:
		m.setFocus(m.from)
	case m.focus != LoopPane:
		m.setFocus(LoopPane)
	case m.past():
		m.say(m.t("L returns to now", "L で現在に戻る"))
	default:
		m.sel.step = 0
	}
}
