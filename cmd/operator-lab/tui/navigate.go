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
func (nav navigator) recall() {
	tip := nav.index.timeline.Tip()
	nav.live = nav.cursorAt == 0 || nav.cursorAt >= nav.index.lastMark() && !nav.replay
	if nav.live {
		nav.cursorAt, nav.snapshot = 0, tip
		return
	}
	nav.cursorAt = max(nav.cursorAt, nav.index.timeline.First())
	nav.snapshot = nav.index.timeline.At(nav.cursorAt)
}

// time is the time on the journal's clock that ages are counted to.
func (nav navigator) time() time.Duration {
	switch {
	case !nav.live:
		return nav.snapshot.At()
	case nav.replay || !nav.motion:
		return nav.index.timeline.Tip().At()
	}
	return nav.index.timeline.Journal().Elapsed()
}

// setFocus focuses a pane and shows it where it shares a place.
func (nav navigator) setFocus(p Pane) {
	if nav.bare() {
		p = LessonPane
	}
	nav.focus = p
	switch p {
	case ObjectsPane, QueuePane, LoopPane:
		nav.from, nav.top = p, p
		nav.scroll[DetailPane], nav.scroll[CausePane] = 0, 0
		switch p {
		case ObjectsPane:
			nav.objects().settle()
		case QueuePane:
			nav.queue().settle()
		}
	case CausePane:
		nav.top = p
	case DetailPane, LessonPane:
		nav.low = p
	}
}

// cycle focuses the next pane of those that are shown or can be.
func (nav navigator) cycle(n int) {
	order := []Pane{ObjectsPane, QueuePane, LoopPane, DetailPane, CausePane}
	if nav.guided { // from the lesson to the loop
		order = []Pane{LessonPane, LoopPane, DetailPane, ObjectsPane, QueuePane, CausePane}
	}
	order = slices.DeleteFunc(order, func(p Pane) bool {
		return p == CausePane && nav.w < 160
	})
	i := slices.Index(order, nav.focus)
	nav.setFocus(order[(i+n+len(order))%len(order)])
}

// selectNewest selects the newest reconcile, and of one that is held the write.
func (nav navigator) selectNewest() {
	nav.selectRequest()
	reconciles := nav.loop().reconciles()
	if len(reconciles) == 0 {
		return
	}
	newest := reconciles[len(reconciles)-1]
	if held := nav.held(); held != nil && nav.shows(held.Operator) {
		newest = held
	}
	nav.sel.reconcile, nav.sel.step = newest.First, 0
	if newest.Held != nil {
		nav.sel.step = newest.Held.Seq
	}
	nav.scroll[DetailPane] = 0
}

// goTo moves the cursor to an event; 0 is the live edge.
func (nav navigator) goTo(seq int64) {
	nav.cursorAt = seq
	nav.recall()
	nav.now = nav.time()
}

// goLive returns to the live edge and follows it.
func (nav navigator) goLive() {
	nav.goTo(0)
	nav.follow = true
	nav.selectNewest()
}

func (nav navigator) goHome() {
	nav.goTo(nav.index.step(0, 1))
	if reconciles := nav.loop().reconciles(); len(reconciles) > 0 {
		nav.sel.reconcile, nav.sel.step = reconciles[0].First, 0
	}
	nav.selectRequest()
	nav.follow = false
}

// goReconcile moves the cursor to the end of the reconcile before or after the
// selected one. It returns what to say about it, as others do.
func (nav navigator) goReconcile(n int) string {
	if nav.gated() {
		return nav.goRequest(n)
	}
	reconciles := nav.loop().reconciles()
	if len(reconciles) == 0 {
		return nav.t("no reconcile yet", "reconcile はまだない")
	}
	i := reconcileAt(reconciles, nav.sel.reconcile) + n
	if nav.past() && n > 0 && i < len(reconciles) && i >= 0 && reconciles[max(0, i-1)].First > nav.cursor() {
		i = reconcileAt(reconciles, nav.cursor()) + 1 // the selected one has not happened yet
	}
	switch {
	case i < 0:
		return nav.t("this is the first reconcile; home goes to the beginning", "最初の reconcile。home で先頭へ")
	case i >= len(reconciles):
		nav.goLive()
		return ""
	}
	nav.goToReconcile(reconciles[i])
	return ""
}

// goToReconcile moves the cursor to the end of a reconcile, when the timer of its key is set, and selects it.
func (nav navigator) goToReconcile(reconcile *trace.Reconcile) {
	nav.from, nav.follow = LoopPane, false
	to := reconcile.Last
	if timer := nav.index.requeue(reconcile); timer != nil {
		to = max(to, timer.Seq)
	}
	nav.goTo(min(to, nav.index.last()))
	nav.sel.reconcile, nav.sel.step = reconcile.First, 0
	nav.scroll[DetailPane], nav.scroll[CausePane] = 0, 0
}

// jump goes to the next reconcile in a direction that is such; none is what to say if there is no other.
func (nav navigator) jump(n int, such func(*trace.Reconcile) bool, none string) string {
	reconciles := nav.loop().reconciles()
	for i := reconcileAt(reconciles, nav.sel.reconcile) + n; i >= 0 && i < len(reconciles); i += n {
		if such(reconciles[i]) {
			nav.goToReconcile(reconciles[i])
			return ""
		}
	}
	return none
}

// goTrouble goes to the previous or next reconcile that failed or was hit by a fault.
func (nav navigator) goTrouble(n int) string {
	return nav.jump(n, func(r *trace.Reconcile) bool {
		return r.End != nil && r.End.Error != "" || r.Outcome() == trace.OutcomeAborted || r.Tally.FailedCalls > 0 || nav.index.hit[r.ID]
	}, nav.t("no other error or fault that way", "その方向にエラーや fault はもうない"))
}

// goWrite goes to the previous or next reconcile that wrote.
func (nav navigator) goWrite(n int) string {
	return nav.jump(n, func(r *trace.Reconcile) bool { return r.Tally.Writes > 0 },
		nav.t("no other write that way", "その方向に書き込みはもうない"))
}

// goEvent moves the cursor by one event and selects the reconcile it belongs to.
func (nav navigator) goEvent(n int) string {
	to := nav.index.step(nav.cursor(), n)
	if n > 0 && to >= nav.index.lastMark() {
		nav.goLive()
		return ""
	}
	nav.goTo(to)
	e := nav.index.timeline.Event(to)
	if e == nil {
		return ""
	}
	nav.selectRequest()
	for _, reconcile := range nav.loop().reconciles() {
		if e.Reconcile != 0 && reconcile.ID == e.Reconcile {
			nav.sel.reconcile, nav.sel.step = reconcile.First, 0
			if slices.Contains(reconcile.Steps, e) {
				nav.sel.step = e.Seq
			}
		}
	}
	return nav.eventText(e)
}

// move moves the selection of the focused pane, or scrolls it.
func (nav navigator) move(n int) {
	switch nav.focus {
	case LoopPane, ObjectsPane, QueuePane:
		nav.from = nav.focus
	}
	nav.pane(nav.focus).move(n)
}

// turn moves by as much as is seen.
func (nav navigator) turn(n int) { nav.move(n * max(1, nav.layout().Pane[nav.focus].H-3)) }

// enter opens or closes a reconcile, and goes from what is selected to its details.
func (nav navigator) enter() {
	switch {
	case nav.focus == LessonPane:
		nav.setFocus(LoopPane)
		return
	case nav.focus != LoopPane || nav.sel.step != 0:
		nav.setFocus(DetailPane)
		return
	}
	if i := reconcileAt(nav.loop().reconciles(), nav.sel.reconcile); i >= 0 {
		reconcile := nav.loop().reconciles()[i]
		nav.open[reconcile.ID] = !nav.loop().opened(reconcile)
	}
}

// back leaves the zoom, the filter or the pane, whichever was entered last.
func (nav navigator) back() string {
	switch {
	case nav.zoom != ZoomNormal:
		nav.zoom = ZoomNormal
	case nav.filter[nav.focus] != "":
		nav.filter[nav.focus] = ""
	case nav.focus != nav.from:
		nav.setFocus(nav.from)
	case nav.focus != LoopPane:
		nav.setFocus(LoopPane)
	case nav.past():
		return nav.t("L returns to now", "L で現在に戻る")
	default:
		nav.sel.step = 0
	}
	return ""
}

// read shows the text of a new task.
func (nav navigator) read() {
	nav.popup, nav.typing, nav.zoom = nil, false, ZoomNormal
	nav.setFocus(LessonPane)
	nav.scroll[LessonPane] = 0
}

// toLoop leaves the lesson for the list pane that was focused last.
func (nav navigator) toLoop() {
	if nav.focus == LessonPane {
		nav.setFocus(nav.from)
	}
}

func (nav navigator) showTab(t Tab) {
	nav.toLoop()
	nav.tab, nav.low = t, DetailPane
	nav.scroll[DetailPane] = 0
}

// zoomIn gives the focused pane half of the screen, all of it, and back.
func (nav navigator) zoomIn() { nav.zoom = (nav.zoom + 1) % (ZoomFull + 1) }

// startFilter begins to type a filter for the focused pane.
func (nav navigator) startFilter() {
	switch nav.focus {
	case ObjectsPane, QueuePane, LoopPane:
	default:
		nav.setFocus(LoopPane)
	}
	nav.typing = true
}

// typeFilter edits the filter of the focused pane.
func (nav navigator) typeFilter(pressed string) {
	f := &nav.filter[nav.focus]
	switch pressed {
	case "enter":
		nav.typing = false
	case "esc":
		nav.typing, *f = false, ""
	default:
		f.press(pressed, maxFilter)
	}
	if nav.live && nav.follow {
		nav.selectNewest()
	}
	if !nav.typing && nav.focus == ObjectsPane { // what is selected is among what is shown
		nav.objects().settle()
	}
}

func (nav navigator) toggleFollow() {
	nav.follow = !nav.follow
	if nav.follow && nav.live {
		nav.selectNewest()
	}
}

// eventText names an event in a line.
func (nav navigator) eventText(e *trace.Event) string {
	out := nav.t("event ", "イベント ") + itoa(e.Seq) + ": " + string(e.Kind)
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
