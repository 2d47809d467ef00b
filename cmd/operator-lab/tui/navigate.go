package tui

import (
	"slices"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// paneOf returns the pane a digit is for.
func paneOf(pressed string) (Pane, bool) {
	if len(pressed) == 1 && pressed[0] >= '1' && pressed[0] < '1'+byte(panes-1) {
		return Pane(pressed[0] - '0'), true
	}
	return NoPane, false
}

// navigator changes what the user looks at: the focus, the selection and the cursor.
type navigator struct{ *state }

// recall makes the state that of the cursor.
func (m navigator) recall() {
	tip := m.index.timeline.Tip()
	m.live = m.cursorAt == 0 || m.cursorAt >= m.index.lastMark() && !m.replay
	if m.live {
		m.cursorAt, m.snapshot = 0, tip
		return
	}
	m.cursorAt = max(m.cursorAt, m.index.stats.First)
	m.snapshot = m.index.timeline.At(m.cursorAt)
}

// time is the time on the journal's clock that ages are counted to.
func (m navigator) time() time.Duration {
	switch {
	case !m.live:
		return m.snapshot.At()
	case m.replay || !m.motion:
		return m.index.timeline.Tip().At()
	}
	return m.index.timeline.Journal().Elapsed()
}

// setFocus focuses a pane and shows it where it shares a place.
func (m navigator) setFocus(p Pane) {
	m.focus = p
	switch p {
	case ObjectsPane, QueuePane, LoopPane:
		m.from, m.top = p, p
		m.scroll[DetailPane], m.scroll[CausePane] = 0, 0
		switch p {
		case ObjectsPane:
			m.objects().settle()
		case QueuePane:
			m.queue().settle()
		}
	case CausePane:
		m.top = p
	case DetailPane, LessonPane:
		m.low = p
	}
}

// cycle focuses the next pane of those that are shown or can be.
func (m navigator) cycle(n int) {
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
func (m navigator) selectNewest() {
	spans := m.loop().spans()
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
func (m navigator) goTo(seq int64) {
	m.cursorAt = seq
	m.recall()
	m.now = m.time()
}

// goLive returns to the live edge and follows it.
func (m navigator) goLive() {
	m.goTo(0)
	m.follow = true
	m.selectNewest()
}

func (m navigator) goHome() {
	m.goTo(m.index.step(0, 1))
	if spans := m.loop().spans(); len(spans) > 0 {
		m.sel.span, m.sel.step = spans[0].First, 0
	}
	m.follow = false
}

// goSpan moves the cursor to the end of the reconcile before or after the
// selected one. It returns what to say about it, as others do.
func (m navigator) goSpan(n int) string {
	spans := m.loop().spans()
	if len(spans) == 0 {
		return m.t("no reconcile yet", "調整はまだない")
	}
	i := spanAt(spans, m.sel.span) + n
	if m.past() && n > 0 && i < len(spans) && i >= 0 && spans[max(0, i-1)].First > m.cursor() {
		i = spanAt(spans, m.cursor()) + 1 // the selected one has not happened yet
	}
	switch {
	case i < 0:
		return m.t("this is the first reconcile; home goes to the beginning", "最初の調整。home で先頭へ")
	case i >= len(spans):
		m.goLive()
		return ""
	}
	span := spans[i]
	m.from = LoopPane
	m.goTo(min(span.Last, m.index.last()))
	m.sel.span, m.sel.step = span.First, 0
	m.scroll[DetailPane], m.scroll[CausePane] = 0, 0
	return ""
}

// goEvent moves the cursor by one event and selects the reconcile it belongs to.
func (m navigator) goEvent(n int) string {
	to := m.index.step(m.cursor(), n)
	if n > 0 && to >= m.index.lastMark() {
		m.goLive()
		return ""
	}
	m.goTo(to)
	e := m.index.timeline.Event(to)
	if e == nil {
		return ""
	}
	for _, span := range m.loop().spans() {
		if e.Reconcile != 0 && span.ID == e.Reconcile {
			m.sel.span, m.sel.step = span.First, 0
			if slices.Contains(span.Steps, e) {
				m.sel.step = e.Seq
			}
		}
	}
	return m.eventText(e)
}

// move moves the selection of the focused pane, or scrolls it.
func (m navigator) move(n int) {
	switch m.focus {
	case LoopPane, ObjectsPane, QueuePane:
		m.from = m.focus
	}
	m.pane(m.focus).move(n)
}

// turn moves by as much as is seen.
func (m navigator) turn(n int) { m.move(n * max(1, m.layout().Pane[m.focus].H-3)) }

// enter opens or closes a reconcile, and goes from what is selected to its details.
func (m navigator) enter() {
	switch {
	case m.focus == LessonPane:
		m.setFocus(LoopPane)
		return
	case m.focus != LoopPane || m.sel.step != 0:
		m.setFocus(DetailPane)
		return
	}
	if i := spanAt(m.loop().spans(), m.sel.span); i >= 0 {
		span := m.loop().spans()[i]
		m.open[span.ID] = !m.loop().opened(span)
	}
}

// back undoes what was done last on the way into something.
func (m navigator) back() string {
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
		return m.t("L returns to now", "L で現在に戻る")
	default:
		m.sel.step = 0
	}
	return ""
}

// read shows a new task: whoever does not read it cannot do it.
func (m navigator) read() {
	m.popup, m.typing, m.zoom = nil, false, ZoomNormal
	m.setFocus(LessonPane)
	m.scroll[LessonPane] = 0
}

// reveal scrolls the lesson to one of its parts, no further than needed to see all of it.
func (m navigator) reveal(p lessonPart) {
	m.setFocus(LessonPane)
	r := m.layout().Pane[LessonPane]
	t := lessonPane{m.state}.text(r.W-2, r.H-2 < roomy)
	m.scroll[LessonPane] = min(t.begin[p], max(0, t.end[p]-(r.H-2)))
}

// toLoop leaves the lesson for where something is going to be seen.
func (m navigator) toLoop() {
	if m.focus == LessonPane {
		m.setFocus(m.from)
	}
}

func (m navigator) showTab(t Tab) {
	m.toLoop()
	m.tab, m.low = t, DetailPane
	m.scroll[DetailPane] = 0
}

// zoomIn gives the focused pane half of the screen, all of it, and back.
func (m navigator) zoomIn() { m.zoom = (m.zoom + 1) % (ZoomFull + 1) }

// startFilter begins to type a filter for the focused pane.
func (m navigator) startFilter() {
	switch m.focus {
	case ObjectsPane, QueuePane, LoopPane:
	default:
		m.setFocus(LoopPane)
	}
	m.typing = true
}

// typeFilter edits the filter of the focused pane.
func (m navigator) typeFilter(pressed string) {
	f := &m.filter[m.focus]
	switch pressed {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, *f = false, ""
	default:
		f.press(pressed, maxFilter)
	}
	if m.live && m.follow {
		m.selectNewest()
	}
}

func (m navigator) toggleFollow() {
	m.follow = !m.follow
	if m.follow && m.live {
		m.selectNewest()
	}
}

// eventText names an event in a line.
func (m navigator) eventText(e *trace.Event) string {
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
