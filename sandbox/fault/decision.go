package fault

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// eventID identifies a watch event for one operator. The same event may arrive by several streams, and again after a
// stream is reopened.
type eventID struct {
	operator string
	resource schema.GroupResource
	uid, rv  string
	verb     string
}

// decision says that a fault happens to an event.
type decision struct {
	until time.Time // when a delay is over; zero if it has no end of its own
}

// timer returns a channel that receives when the delay is over (nil without an end), and a function that stops the
// timer.
func (d *decision) timer() (until <-chan time.Time, stop func()) {
	if d.until.IsZero() {
		return nil, func() {}
	}
	t := time.NewTimer(time.Until(d.until))
	return t.C, func() { t.Stop() }
}

// manyDecisions bounds how many events a fault remembers. An event is repeated within moments; thousands later it is
// not.
const manyDecisions = 4096

// decisions remembers the decisions for the newest events; nil means that the event matched but nothing happens to it.
type decisions struct {
	of    map[eventID]*decision
	order []eventID
}

func (m *decisions) set(id eventID, d *decision) {
	if m.of == nil {
		m.of = map[eventID]*decision{}
	}
	if len(m.order) >= manyDecisions {
		delete(m.of, m.order[0])
		m.order = m.order[1:]
	}
	m.of[id] = d
	m.order = append(m.order, id)
}

// decision returns the decision for an event; known is false if there is none yet.
func (f *Faults) decision(x *fault, id eventID) (d *decision, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, known = x.decided.of[id]
	return d, known
}

// decide counts a match and decides whether the fault happens to the event; nil means that it does not. If another
// stream has decided already, known is true and that decision stands.
func (f *Faults) decide(x *fault, id eventID) (d *decision, known bool) {
	f.mu.Lock()
	if d, known = x.decided.of[id]; known {
		f.mu.Unlock()
		return d, true
	}
	before := x.matched
	if x.match() {
		d = &decision{}
		if w := x.spec.Watch; w != nil && w.For != nil {
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
