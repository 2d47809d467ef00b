package trace

import (
	"maps"
	"slices"
	"time"
)

// State is everything known at one event of the journal. Its parts are folded separately; the causes of events are those
// of the [Timeline] that made it. It must only be read, and only until the timeline's next Update.
type State struct {
	timeline *Timeline
	seq      int64
	at       time.Duration
	worked   time.Duration
	broken   *Event // the newest break

	modes
	loops
	objects
	counts
	traffic
	stores
	packages
}

func newState(t *Timeline) *State {
	return &State{timeline: t, modes: modes{}, loops: newLoops(), objects: objects{}, counts: newCounts()}
}

// clone returns a copy that can be changed without changing s.
func (s *State) clone() *State {
	c := *s
	c.modes, c.loops, c.objects = maps.Clone(s.modes), s.loops.clone(), maps.Clone(s.objects)
	c.counts, c.traffic, c.stores = s.counts.clone(), s.traffic.clone(), slices.Clone(s.stores)
	c.packages = slices.Clone(s.packages)
	return &c
}

// apply folds one event into each part. It accepts any event in any order without failing; inconsistent events have no
// effect.
func (s *State) apply(e *Event) {
	s.seq, s.at = e.Seq, e.At
	if !e.Kind.Beside() {
		s.worked = e.At
	}
	if b := s.breakOf(e); b != nil {
		s.broken = b
	}
	s.modes.apply(e)
	s.loops.apply(e)
	s.objects.apply(e)
	s.counts.apply(e)
	s.traffic.apply(e)
	s.stores.apply(e)
	s.packages.apply(e)
}

// Seq returns the Seq of the newest event of the state; 0 before the first.
func (s *State) Seq() int64 { return s.seq }

// At returns the time of that event since the journal's start.
func (s *State) At() time.Duration { return s.at }

// Worked returns the time of the newest event of a loop, or of a change by somebody else.
func (s *State) Worked() time.Duration { return s.worked }

// Heat returns how many reconciles of each key began after a time; a hot loop has a high number.
func (s *State) Heat(from time.Duration) map[QueueKey]int {
	heat := map[QueueKey]int{}
	for _, reconcile := range s.running {
		if reconcile.Started > from {
			heat[reconcile.queueKey()]++
		}
	}
	for _, reconcile := range slices.Backward(s.finished) {
		if reconcile.Ended <= from {
			break
		}
		if reconcile.Started > from {
			heat[reconcile.queueKey()]++
		}
	}
	return heat
}
