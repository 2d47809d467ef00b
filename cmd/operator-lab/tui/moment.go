package tui

import (
	"slices"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// moment is where on a journal the screen stands: at its live edge, or at an event of the past.
type moment struct {
	index    *index
	snapshot *trace.State  // the journal's state at the cursor
	cursorAt int64         // Seq of the event the cursor stands at; 0 at the live edge
	live     bool          // snapshot is the newest state
	now      time.Duration // on the journal's clock: of the newest look, or of the cursor
}

// held returns a reconcile whose write is held, or nil.
func (m *moment) held() *trace.Reconcile {
	for _, reconcile := range m.snapshot.Running() {
		if reconcile.Held != nil {
			return reconcile
		}
	}
	return nil
}

// past reports whether the screen looks at the past.
func (m *moment) past() bool { return !m.live }

// cursor returns the Seq of the last event that the screen takes into account.
func (m *moment) cursor() int64 { return m.snapshot.Seq() }

// reconcileNow returns a reconcile as it was at the cursor; later is true for one
// that had not begun, which is returned as it became.
func (m *moment) reconcileNow(reconcile *trace.Reconcile) (at *trace.Reconcile, later bool) {
	switch {
	case m.live || reconcile.Last <= m.cursor() && !reconcile.Running():
		return reconcile, false
	case reconcile.First > m.cursor():
		return reconcile, true
	}
	if at := m.snapshot.Reconcile(reconcile.ID); at != nil {
		return at, false
	}
	return reconcile, false
}

// stateOf returns the state to explain a reconcile by.
func (m *moment) stateOf(later bool) *trace.State {
	if later {
		return m.index.timeline.Tip()
	}
	return m.snapshot
}

// newestNote returns the newest note at the cursor, or a fault that could not be brought about; nil if there is none.
func (m *moment) newestNote() *trace.Event {
	for _, v := range slices.Backward(m.index.notes) {
		if v.Seq <= m.cursor() && (v.Kind == trace.KindNote || v.Error != "") {
			return v
		}
	}
	return nil
}

// membersSeen is how many members the store on the screen has had at most; 0 without one. It looks at the newest state, so
// that nothing moves when you go back.
func (m *moment) membersSeen() int {
	o, found := theStore(m.index.timeline.Tip().Stores())
	if !found {
		return 0
	}
	return max(1, o.Most)
}

// asked reports whether somebody asks a URL. It looks at the newest state, so that nothing moves when you go back.
func (m *moment) asked() bool { return len(m.index.timeline.Tip().Traffic()) > 0 }

// object returns an object at the cursor, or as it became later.
func (m *moment) object(ref trace.Ref) *trace.Object {
	if ref.IsZero() {
		return nil
	}
	if o := m.snapshot.Object(ref); o != nil {
		return o
	}
	return m.index.timeline.Tip().Object(ref)
}
