package trace

import (
	"maps"
	"slices"
	"time"
)

// State is what is known at one event of the journal. A [Timeline] makes it. It must only be read, and only until the
// timeline's next Update.
type State struct {
	timeline *Timeline

	seq   int64
	at    time.Duration
	modes map[string]Mode // by operator

	objects  map[objectKey]*Object
	queue    map[QueueKey]*Item
	running  map[int64]*Span
	finished []*Span
	drops    []*Event
	worked   time.Duration
	traffic  []Traffic
	stores   []Store
	total    Counters
	byCtl    map[ControllerKey]*Counters
	byKey    map[QueueKey]*Counters
}

// Mode says whether loops are paused and writes held.
type Mode struct {
	// Paused means that workers take only keys that were stepped.
	Paused bool
	// HoldWrites means that each write waits for a release before it is sent.
	HoldWrites bool
	// Since is when the mode was last changed.
	Since time.Duration
}

// rememberedDrops bounds how many drop events a state lists; all are counted.
const rememberedDrops = 32

func newState(t *Timeline) *State {
	return &State{
		timeline: t,
		modes:    map[string]Mode{},
		objects:  map[objectKey]*Object{},
		queue:    map[QueueKey]*Item{},
		running:  map[int64]*Span{},
		byCtl:    map[ControllerKey]*Counters{},
		byKey:    map[QueueKey]*Counters{},
	}
}

// Seq returns the Seq of the newest event of the state; 0 before the first.
func (s *State) Seq() int64 { return s.seq }

// At returns the time of that event since the journal's start.
func (s *State) At() time.Duration { return s.at }

// Worked returns the time of the newest event of a loop, or of a change by somebody else.
func (s *State) Worked() time.Duration { return s.worked }

// Mode returns the combined mode of all operators.
func (s *State) Mode() Mode {
	var all Mode
	for _, m := range s.modes {
		all.Paused = all.Paused || m.Paused
		all.HoldWrites = all.HoldWrites || m.HoldWrites
		all.Since = max(all.Since, m.Since)
	}
	return all
}

// ModeOf returns the mode of one operator.
func (s *State) ModeOf(operator string) Mode { return s.modes[operator] }

// Drops returns the newest drop events, oldest first, at most 32 of them.
func (s *State) Drops() []*Event { return s.drops }

// clone returns a copy that can be changed without changing s.
func (s *State) clone() *State {
	c := *s
	c.modes = maps.Clone(s.modes)
	c.objects = maps.Clone(s.objects)
	c.finished = slices.Clip(s.finished)
	c.drops = slices.Clip(s.drops)
	c.traffic = cloneTraffic(s.traffic)
	c.stores = slices.Clone(s.stores)
	c.total = s.total.clone()
	c.queue = make(map[QueueKey]*Item, len(s.queue))
	for k, item := range s.queue {
		c.queue[k] = item.clone()
	}
	c.running = make(map[int64]*Span, len(s.running))
	for k, span := range s.running {
		c.running[k] = span.clone()
	}
	c.byCtl = cloneCounters(s.byCtl)
	c.byKey = cloneCounters(s.byKey)
	return &c
}

// apply folds one event in. It accepts any event in any order without failing; inconsistent events have no effect.
func (s *State) apply(e *Event) {
	s.seq, s.at = e.Seq, e.At
	if !e.Kind.Beside() {
		s.worked = e.At
	}
	s.count(e)
	switch e.Kind {
	case KindWatch:
		s.observe(e)
	case KindDrop:
		s.drops = append(s.drops, e)
		if n := len(s.drops); n > rememberedDrops {
			s.drops = s.drops[n-rememberedDrops:]
		}
	case KindEnqueue, KindMerge, KindRequeue, KindReady:
		s.enqueue(e)
	case KindDequeue:
		s.begin(e)
	case KindCall:
		s.step(e)
		if e.IsWrite() && e.Error == "" {
			s.observe(e)
		}
	case KindHold, KindLog:
		s.step(e)
	case KindEnd:
		if span := s.running[e.Reconcile]; span != nil {
			s.finish(span, e)
		}
	case KindControl:
		s.control(e)
	case KindOperator:
		if e.Verb == VerbStop {
			s.stopped(e.Operator)
		}
	case KindTraffic:
		s.answered(e)
	case KindMembers:
		s.told(e)
	case KindWrites:
		s.wrote(e)
	}
	if e.Seq%tombstoneAge == 0 {
		s.bury()
	}
}

func (s *State) control(e *Event) {
	mode := s.modes[e.Operator]
	switch e.Verb {
	case VerbPause:
		mode.Paused = true
	case VerbResume:
		mode.Paused = false
	case VerbHoldWrites:
		mode.HoldWrites = true
	case VerbSendWrites:
		mode.HoldWrites = false
	default:
		return
	}
	mode.Since = e.At
	s.modes[e.Operator] = mode
}

// stopped folds in the end of an operator: its queue ends with its process.
func (s *State) stopped(operator string) {
	for k := range s.queue {
		if k.Operator == operator {
			delete(s.queue, k)
		}
	}
	for _, span := range s.Running() {
		if span.Operator == operator {
			s.finish(span, nil)
		}
	}
}

// tombstoneAge is the minimum number of events for which a deleted object is remembered.
const tombstoneAge = 2048

// bury forgets the objects that were deleted long enough ago.
func (s *State) bury() {
	for k, o := range s.objects {
		if o.Deleted && o.Changed <= s.seq-tombstoneAge {
			delete(s.objects, k)
		}
	}
}

// Heat returns how many reconciles of each key began within a window before this state; a hot loop has a high number.
func (s *State) Heat(window time.Duration) map[QueueKey]int {
	heat := map[QueueKey]int{}
	from := s.at - window
	for _, span := range s.running {
		if span.Started > from {
			heat[span.queueKey()]++
		}
	}
	for _, span := range slices.Backward(s.finished) {

		if span.Ended <= from {
			break
		}
		if span.Started > from {
			heat[span.queueKey()]++
		}
	}
	return heat
}
