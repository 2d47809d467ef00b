package tui

import (
	"strings"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// scene is everything a frame depends on.
type scene struct {
	theme
	title    string
	replay   bool
	controls Controls
	motion   bool

	w, h int
	// now is the time on the journal's clock: of the newest look, or of the cursor.
	now   time.Duration
	index *index
	// state is the state at the cursor, live whether that is the newest one.
	state *trace.State
	live  bool

	focus    Pane
	from     Pane // the list pane that was focused last: what it selects is the subject
	top      Pane // which pane is on top where several share a place
	low      Pane // which of Detail and Lesson is shown where they share one
	zoom     Zoom
	follow   bool
	operator string // shown alone; empty for all
	filter   [panes]typed

	sel    selection
	open   map[int64]bool // reconciles opened or closed by hand, by number
	tab    Tab
	scroll [panes]int // of panes of text: lines scrolled down
	guided bool       // there is a lesson, which page tells of
	page   Page

	booting *boot
	busy    *work // what the guide does now, or nil
	popup   popup
	typing  bool // a filter is being typed
	flash   string
	keys    keyMap

	lists  loopList
	memo   memo
	placed Layout
}

// selection says what is selected, by what it is and not by where it stands.
type selection struct {
	// span is the Seq of the selected reconcile's first event, step of one of its steps or 0.
	span, step int64
	object     trace.Ref
	key        trace.QueueKey
}

// pane is what a pane shows.
type pane struct {
	title string
	right string
	foot  string // in the lower border
	rows  []row
}

// past reports whether the screen looks at the past.
func (s *scene) past() bool { return !s.live }

// cursor is the Seq of the event the screen shows the world right after.
func (s *scene) cursor() int64 { return s.state.Seq() }

// spanNow returns a reconcile as it was at the cursor; later is true for one
// that had not begun, which is returned as it became.
func (s *scene) spanNow(span *trace.Span) (at *trace.Span, later bool) {
	switch {
	case s.live || span.Last <= s.cursor() && !span.Running():
		return span, false
	case span.First > s.cursor():
		return span, true
	}
	if at := s.state.Span(span.ID); at != nil {
		return at, false
	}
	return span, false
}

// stateOf returns the state to explain a reconcile by.
func (s *scene) stateOf(later bool) *trace.State {
	if later {
		return s.index.timeline.Tip()
	}
	return s.state
}

// span returns the selected reconcile, or nil.
func (s *scene) span() *trace.Span {
	i := spanAt(s.index.spans, s.sel.span)
	if i < 0 || s.index.spans[i].First != s.sel.span {
		return nil
	}
	span, _ := s.spanNow(s.index.spans[i])
	return span
}

// shows reports whether what an operator did is shown.
func (s *scene) shows(operator string) bool { return s.operator == "" || s.operator == operator }

// counters returns the counters of what is shown.
func (s *scene) counters() trace.Counters {
	if s.operator == "" {
		return *s.state.Total()
	}
	var c trace.Counters
	for k, v := range s.state.Controllers() {
		if k.Operator != s.operator {
			continue
		}
		c.Watched += v.Watched
		c.Dropped += v.Dropped
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

// matches reports whether a text passes a pane's filter.
func (s *scene) matches(p Pane, text string) bool {
	f := string(s.filter[p])
	return f == "" || strings.Contains(strings.ToLower(text), strings.ToLower(f))
}

// keyName returns a key without a namespace that goes without saying.
func keyName(k trace.Key) string {
	if k.Namespace == "default" {
		return k.Name
	}
	return k.String()
}

// queueName names a key in a queue by its controller.
func queueName(operator, controller string, k trace.Key) string {
	return orElse(controller, operator) + "/" + keyName(k)
}

// orElse returns s, or other if s is empty.
func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// clock writes a time since the journal's start as minutes and seconds.
func clock(d time.Duration) string {
	d = max(d, 0)
	s := int(d / time.Second)
	if s >= 3600 {
		return two(s/3600) + ":" + two(s/60%60) + ":" + two(s%60)
	}
	return two(s/60) + ":" + two(s%60)
}

func two(n int) string {
	if n < 10 {
		return "0" + string(rune('0'+n))
	}
	return itoa(n)
}

// age writes how long something has lasted, in whole seconds: it is drawn anew once a second.
func age(d time.Duration) string {
	if d < time.Second {
		return "<1s"
	}
	return trace.FormatDuration(d.Truncate(time.Second))
}
