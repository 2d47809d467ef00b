package tui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// state is the data a frame is drawn from: what the journal tells at the cursor,
// and what the user looks at. Panes and bars read it, navigator changes it, and
// Model keeps it up to date.
type state struct {
	theme
	title    string
	replay   bool
	controls Controls
	motion   bool
	source   func(operator, file string) (text string, changed bool, err error) // nil: it is not at hand

	moment
	w, h int

	focus    Pane
	from     Pane // the list pane that was focused last: what it selects is the subject
	top      Pane // which pane is on top where several share a place
	low      Pane // which of Detail and Lesson is shown where they share one
	zoom     Zoom
	follow   bool
	operator string         // shown alone; empty for all
	filter   [panes]typed   // what each list pane is filtered by
	typing   bool           // the filter of the focused pane is being typed
	ran      []string       // commands of the lesson's task that were run
	scroll   [panes]int     // lines that each pane of text is scrolled down
	open     map[int64]bool // reconciles opened or closed by hand, by number
	sel      selection
	tab      Tab

	guided bool // there is a lesson, which page tells of
	page   Page

	booting *boot // nil once the cluster runs
	busy    *work // what the guide does now, or nil
	popup   popup // or nil
	flash   string
	keys    keyMap

	loopCache loopList
	memo      memo
	placed    Layout // of the frame that is drawn
}

// newState returns what is shown of a journal at first.
func newState(o Options) state {
	index := newIndex(o.Journal)
	return state{
		theme: newTheme(o), title: o.Title, replay: o.Replay, controls: o.Controls, motion: !o.NoMotion, keys: newKeyMap(),
		moment: moment{index: index, snapshot: index.timeline.Tip(), live: true}, focus: LoopPane, from: LoopPane, top: LoopPane, low: DetailPane, follow: true,
		open: map[int64]bool{}, guided: o.Guide != nil, source: o.Code, operator: o.Operator,
	}
}

// selection identifies what is selected; it holds when lines move.
type selection struct {
	// reconcile is the Seq of the selected reconcile's first event, step of one of its steps or 0.
	reconcile, step int64
	object          trace.Ref
	key             trace.QueueKey
}

// pane is one of the numbered panes.
type pane interface {
	// draw returns what is shown in a rectangle of this size.
	draw(in Rect) content
	// move moves the selection or the text by n lines.
	move(n int)
}

// content is the text of a pane, without the border.
type content struct {
	title string
	right string
	foot  string // in the lower border
	rows  []row
}

// pane returns a numbered pane.
func (s *state) pane(p Pane) pane {
	switch p {
	case ObjectsPane:
		return s.objects()
	case QueuePane:
		return s.queue()
	case DetailPane:
		return detailPane{s}
	case LessonPane:
		return lessonPane{s}
	case CausePane:
		return causePane{s}
	}
	return s.loop()
}

func (s *state) objects() objectsPane { return objectsPane{s} }

func (s *state) queue() queuePane { return queuePane{s} }

func (s *state) loop() loopPane { return loopPane{s} }

func (s *state) nav() navigator { return navigator{s} }

// screen is the whole screen.
func (s *state) screen() Rect { return Rect{0, 0, s.w, s.h} }

// scrollBy scrolls a pane of text, no further than its end.
func (s *state) scrollBy(p Pane, n int) {
	in := s.layout().Pane[p].inside()
	old := s.scroll[p]
	s.scroll[p] = 0
	most := max(0, len(s.pane(p).draw(in).rows)-in.H)
	s.scroll[p] = min(max(0, old+n), most)
}

// why says why the subject is as it is, in a language.
func (s *state) why(sub subject, lang trace.Language) string {
	switch {
	case sub.reconcile != nil && (sub.whole || sub.event == nil):
		return s.stateOf(sub.reconcile.First > s.cursor()).WhyReconcile(sub.reconcile, lang)
	case sub.reconcile != nil:
		return s.stateOf(sub.event.Seq > s.cursor()).Why(sub.event, lang)
	case sub.event != nil && s.from == LoopPane: // a request
		return s.snapshot.Why(sub.event, lang)
	case sub.item != nil:
		if len(sub.item.Events) > 0 {
			return s.snapshot.Why(sub.item.Events[0], lang)
		}
		if sub.item.Requeue != nil {
			return s.snapshot.Why(sub.item.Requeue, lang)
		}
	case sub.object != nil:
		return s.snapshot.WhyObject(sub.object, lang)
	case sub.event != nil:
		return s.snapshot.Why(sub.event, lang)
	}
	switch {
	case s.bare():
		return s.t("This lesson has no operator: what happens is done by you and by Kubernetes.", "このレッスンにオペレーターはない。動くのはあなたと Kubernetes だけ。")
	case s.snapshot.Seq() == 0:
		return s.t("Nothing has happened yet.", "まだ何も起きていない。")
	case !s.begun():
		return s.t("No operator runs yet.", "オペレーターはまだ動いていない。")
	case len(s.index.reconciles) == 0 && !s.gated():
		return s.t("The operator has not reconciled anything yet: nothing has woken it.", "オペレーターはまだ何も reconcile していない。きっかけとなる変更がまだない。")
	}
	return s.t("Select something to read why it happened.", "何かを選択すると、その理由を表示する。")
}

// layout places everything for what is focused now.
func (s *state) layout() Layout {
	return layout(layoutArgs{w: s.w, h: s.h, zoom: s.zoom, focus: s.focus, top: s.top, low: s.low, why: s.whyRows(), lesson: s.guided, noted: s.noted(), bare: s.bare(), demo: s.controls.Demo != nil, asked: s.asked(), store: s.membersSeen()})
}

// mostWhy is how many rows the sentence may take.
const mostWhy = 4

// whyRows is how many rows the sentence takes: two, or as many as it needs, so that it is whole.
func (s *state) whyRows() int {
	least := 2
	if s.h < 20 {
		least = 1
	}
	return min(max(least, len(whyBar{s}.lines())), mostWhy)
}

// asOf is added to the title of panes that show the past.
func (s *state) asOf() string {
	if s.live {
		return ""
	}
	if reconcile := s.reconcile(); reconcile != nil && reconcile.First <= s.cursor() {
		return s.t("  as of #", "  時点 #") + itoa(reconcile.ID)
	}
	return s.t("  as of event ", "  時点 イベント ") + itoa(s.cursor())
}

// deed is what the deed of the demo that waits will do; empty if none does.
func (s *state) deed() string {
	if s.controls.Demo == nil {
		return ""
	}
	return s.controls.Demo.Waiting()
}

// reconcile returns the selected reconcile, or nil.
func (s *state) reconcile() *trace.Reconcile {
	i := reconcileAt(s.index.reconciles, s.sel.reconcile)
	if i < 0 || s.index.reconciles[i].First != s.sel.reconcile {
		return nil
	}
	reconcile, _ := s.reconcileNow(s.index.reconciles[i])
	return reconcile
}

// shows reports whether what an operator did is shown.
func (s *state) shows(operator string) bool { return s.operator == "" || s.operator == operator }

// gated reports whether only requests are seen of what is shown: no queue and no reconciles.
func (s *state) gated() bool {
	return s.all(func(m trace.Mode) bool { return m.Gated && !m.Logged })
}

// queueless reports whether no queue is seen of what is shown. Its reconciles may be known from its log.
func (s *state) queueless() bool { return s.all(func(m trace.Mode) bool { return m.Gated }) }

// all reports whether the modes of all operators that are shown are such.
func (s *state) all(such func(trace.Mode) bool) (all bool) {
	for _, operator := range s.index.operators {
		if s.shows(operator) {
			if !such(s.snapshot.ModeOf(operator)) {
				return false
			}
			all = true
		}
	}
	return all
}

// level says how much is seen of a program that has no taps; empty for others.
func (s *state) level() string {
	switch {
	case s.gated() && s.all(func(m trace.Mode) bool { return m.Partly }):
		return s.t(" / level 3: gate only, not all kinds", " / レベル 3: ゲートのみ、一部の種類")
	case s.gated():
		return s.t(" / level 3: gate only", " / レベル 3: ゲートのみ")
	case s.queueless():
		return s.t(" / level 2: logs and gate", " / レベル 2: ログとゲート")
	}
	return ""
}

// counters returns the counters of what is shown.
func (s *state) counters() trace.Counters {
	if s.operator == "" && !s.queueless() {
		return *s.snapshot.Total()
	}
	var c trace.Counters
	for k, v := range s.snapshot.Controllers() {
		if !s.shows(k.Operator) || !slices.Contains(s.index.operators, k.Operator) {
			continue
		}
		c.Watched += v.Watched
		c.Dropped += v.Dropped
		c.Passed += v.Passed
		c.Enqueued += v.Enqueued
		c.Merged += v.Merged
		c.Reconciles += v.Reconciles
		c.Errors += v.Errors
		c.Writes += v.Writes
		c.CacheReads += v.CacheReads
		c.ServerReads += v.ServerReads
	}
	return c
}

// filter counts what one controller made of watch events.
type filter struct {
	trace.ControllerKey
	passed, dropped int
}

// filters are those of the controllers that are shown and have judged an event, by name.
func (s *state) filters() []filter {
	var out []filter
	for k, c := range s.snapshot.Controllers() {
		if s.shows(k.Operator) && c.Passed+c.Dropped > 0 {
			out = append(out, filter{k, c.Passed, c.Dropped})
		}
	}
	slices.SortFunc(out, func(a, b filter) int {
		return cmp.Or(strings.Compare(a.Operator, b.Operator), strings.Compare(a.Controller, b.Controller))
	})
	return out
}

// matches reports whether a text passes a pane's filter.
func (s *state) matches(p Pane, text string) bool {
	f := string(s.filter[p])
	return f == "" || strings.Contains(strings.ToLower(text), strings.ToLower(f))
}

// aftermath returns what came of the newest break at the cursor, or nil.
func (s *state) aftermath() *trace.Aftermath {
	if s.memo.brokenAt != s.cursor() {
		s.memo.broken, s.memo.brokenAt = s.snapshot.Aftermath(), s.cursor()
	}
	return s.memo.broken
}

// subject returns what is selected in the list pane that was focused last.
func (s *state) subject() subject {
	switch s.from {
	case ObjectsPane:
		return s.objects().subject()
	case QueuePane:
		return s.queue().subject()
	}
	return s.loop().subject()
}

// current returns the reconcile the strip speaks of: the selected one in the
// past, else the one that runs, else the newest.
func (s *state) current() *trace.Reconcile {
	if !s.live {
		if reconcile := s.reconcile(); reconcile != nil && reconcile.First <= s.cursor() {
			return reconcile
		}
	}
	if held := s.held(); held != nil && s.shows(held.Operator) {
		return held
	}
	for i := reconcileAt(s.index.reconciles, s.cursor()); i >= 0; i-- {
		if reconcile := s.index.reconciles[i]; s.shows(reconcile.Operator) {
			reconcile, _ = s.reconcileNow(reconcile)
			return reconcile
		}
	}
	return nil
}

// primary returns the object a reconcile is about, or nil: the one of the key's
// name that it asked for, else any of that name that nobody owns.
func (s *state) primary(reconcile *trace.Reconcile) *trace.Object {
	if reconcile == nil {
		return nil
	}
	for _, e := range reconcile.Steps {
		if e.Kind == trace.KindCall && e.Verb == trace.VerbGet && e.Object.Key() == reconcile.Key {
			if o := s.snapshot.Object(e.Object); o != nil {
				return o
			}
		}
	}
	for _, w := range s.snapshot.Wakes(reconcile) {
		if w.Watch != nil && w.Watch.Object.Key() == reconcile.Key {
			return s.snapshot.Object(w.Watch.Object)
		}
	}
	return nil
}

// causeReconcile is the reconcile the subject belongs to: of an object the one that changed it last.
func (s *state) causeReconcile() *trace.Reconcile {
	sub := s.subject()
	if sub.reconcile != nil {
		return sub.reconcile
	}
	e := sub.event
	for range 4 { // a watch event, its write, and no further
		if e == nil {
			return nil
		}
		if e.Reconcile > 0 {
			return s.snapshot.Reconcile(e.Reconcile)
		}
		e = s.snapshot.Cause(e)
	}
	return nil
}
