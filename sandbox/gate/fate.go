package gate

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// eventID names a watch event on its way to an operator. The same event may come by several streams, and again when a
// stream is opened anew.
type eventID struct {
	operator string
	resource schema.GroupResource
	uid, rv  string
	verb     string
}

// fate is what a fault does to an event.
type fate struct {
	until time.Time // when a delay is over; zero if it has no end of its own
}

// timer returns a channel that gets a time when the delay is over, and what stops it.
func (d *fate) timer() (until <-chan time.Time, stop func()) {
	if d.until.IsZero() {
		return nil, func() {}
	}
	t := time.NewTimer(time.Until(d.until))
	return t.C, func() { t.Stop() }
}

// manyFates bounds how many events a fault remembers. An event comes again within moments; thousands later it does not.
const manyFates = 4096

// fates remembers the fates of the newest events: a nil fate is of one that matched, and nothing happened to it.
type fates struct {
	of    map[eventID]*fate
	order []eventID
}

func (m *fates) set(id eventID, d *fate) {
	if m.of == nil {
		m.of = map[eventID]*fate{}
	}
	if len(m.order) >= manyFates {
		delete(m.of, m.order[0])
		m.order = m.order[1:]
	}
	m.of[id] = d
	m.order = append(m.order, id)
}

// fate returns what was decided of an event; known is false if nothing was.
func (f *Faults) fate(x *fault, id eventID) (d *fate, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, known = x.decided.of[id]
	return d, known
}

// decide counts a match and decides what happens to the event; nil is nothing. If another stream was faster, known is true
// and its decision stands.
func (f *Faults) decide(x *fault, id eventID) (d *fate, known bool) {
	f.mu.Lock()
	if d, known = x.decided.of[id]; known {
		f.mu.Unlock()
		return d, true
	}
	before := x.matched
	if x.match() {
		d = &fate{}
		if w := x.spec.Watch; w.For != nil {
			d.until = time.Now().Add(w.For.Duration)
		}
	}
	counted := x.matched != before
	if counted {
		x.decided.set(id, d)
	}
	f.mu.Unlock()
	if counted {
		f.tell(x.name)
	}
	return d, false
}
