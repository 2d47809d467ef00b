package trace

import (
	"maps"
	"slices"
	"sort"
)

// checkpointEvery is the number of events between two remembered states. A rewind folds at most that many, which takes
// well under a frame. With many objects there are up to eight times as many, since each state has a map of them all.
const checkpointEvery = 1024

// maxChildren bounds how many effects of one event are indexed.
const maxChildren = 256

// Timeline folds a journal into states. It must be used by one goroutine at a time.
type Timeline struct {
	journal     *Journal
	tip         *State
	checkpoints []*State // by Seq
	begun       int64    // Seq of the first event folded
	forgotten   int64    // the journal's number of forgotten events when last read

	writes   map[version]*Event // the write that made each version
	early    map[version]*Event // watch events whose write is not known (yet)
	children map[int64][]*Event // the events by their cause
	answered map[int64]int64    // the reconcile that answers an enqueue, merge or ready event
}

// NewTimeline returns a timeline of a journal. It is empty until Update.
func NewTimeline(j *Journal) *Timeline {
	t := &Timeline{
		journal: j, writes: map[version]*Event{}, early: map[version]*Event{},
		children: map[int64][]*Event{}, answered: map[int64]int64{},
	}
	t.tip = newState(t)
	return t
}

// Journal returns the timeline's journal.
func (t *Timeline) Journal() *Journal { return t.journal }

// Update folds the events appended since the last Update and returns them.
func (t *Timeline) Update() []*Event {
	events := t.journal.Since(t.tip.seq)
	for _, e := range events {
		t.add(e)
	}
	t.prune()
	return events
}

func (t *Timeline) add(e *Event) {
	if t.begun == 0 {
		t.begun = e.Seq
	}
	t.index(e)
	t.fold(e)
}

// fold folds an event that is indexed into the newest state.
func (t *Timeline) fold(e *Event) {
	t.tip.apply(e)
	if e.Kind == KindDequeue {
		for _, w := range t.tip.running[e.Reconcile].Woken {
			t.answered[w.Seq] = e.Reconcile
		}
	}
	last := int64(0)
	if n := len(t.checkpoints); n > 0 {
		last = t.checkpoints[n-1].seq
	}
	if e.Seq-last >= min(max(checkpointEvery, int64(len(t.tip.objects)/2)), 8*checkpointEvery) {
		t.checkpoints = append(t.checkpoints, t.tip.clone())
	}
}

// index joins an event with its cause and its effects. A watch event may come before the answer to the write that caused it:
// nobody has to wait for the other, because the resourceVersion joins the two whichever comes first.
func (t *Timeline) index(e *Event) {
	for _, v := range writeVersions(e) {
		t.writes[v] = e
		if w := t.early[v]; w != nil {
			t.child(e.Seq, w)
			delete(t.early, v)
		}
	}
	switch {
	case e.Cause > 0:
		t.child(e.Cause, e)
	case e.Kind == KindWatch && !e.Initial && e.Object.UID != "":
		t.early[echoOf(e)] = e
	}
}

func (t *Timeline) child(cause int64, e *Event) {
	if len(t.children[cause]) < maxChildren {
		t.children[cause] = append(t.children[cause], e)
	}
}

// prune drops what the journal has forgotten. The newest state keeps the objects and counters of forgotten events, but
// not their reconciles.
func (t *Timeline) prune() {
	stats := t.journal.Stats()
	if stats.Forgotten == t.forgotten {
		return
	}
	t.forgotten = stats.Forgotten
	for v, e := range t.writes {
		if e.Seq < stats.First {
			delete(t.writes, v)
		}
	}
	for v, e := range t.early {
		if e.Seq < stats.First {
			delete(t.early, v)
		}
	}
	maps.DeleteFunc(t.children, func(seq int64, _ []*Event) bool { return seq < stats.First })
	maps.DeleteFunc(t.answered, func(seq, _ int64) bool { return seq < stats.First })
	// One checkpoint before the first event kept is needed to fold from.
	i := sort.Search(len(t.checkpoints), func(i int) bool { return t.checkpoints[i].seq >= stats.First })
	if i > 1 {
		t.checkpoints = append([]*State(nil), t.checkpoints[i-1:]...)
	}
	for _, s := range append(slices.Clip(t.checkpoints), t.tip) {
		k := sort.Search(len(s.finished), func(k int) bool { return s.finished[k].Last >= stats.First })
		s.finished = s.finished[k:]
	}
}

// Tip returns the state at the newest event folded. It is valid until the next Update.
func (t *Timeline) Tip() *State { return t.tip }

// At returns the state right after the event with a Seq, or the earliest state that can still be reconstructed.
func (t *Timeline) At(seq int64) *State {
	if seq >= t.tip.seq {
		return t.tip
	}
	s := t.base(seq)
	if s == t.tip {
		return s
	}
	s = s.clone()
	for _, e := range t.journal.Since(s.seq) {
		if e.Seq > seq {
			break
		}
		s.apply(e)
	}
	return s
}

// First returns the Seq of the earliest event at which a state can be reconstructed; 0 if there are none. It is later than the
// journal's first event where events were forgotten since the state before.
func (t *Timeline) First() int64 {
	first := t.journal.Stats().First
	return max(first, t.base(first).seq)
}

// base returns the remembered state from which the one at a Seq can be reconstructed, or else the earliest from which the journal has
// all events.
func (t *Timeline) base(seq int64) *State {
	first := t.journal.Stats().First
	i := sort.Search(len(t.checkpoints), func(i int) bool { return t.checkpoints[i].seq > seq })
	if i == 0 && t.begun >= first {
		return newState(t)
	}
	for i = max(0, i-1); i < len(t.checkpoints); i++ {
		if t.checkpoints[i].seq >= first-1 {
			return t.checkpoints[i]
		}
	}
	return t.tip
}

// Event returns an event by its Seq, or nil if it is forgotten.
func (t *Timeline) Event(seq int64) *Event { return t.journal.Get(seq) }

// Effects returns the direct effects of an event up to this state, oldest first: for a write the watch events, for a
// watch event the enqueued keys, for a dequeue its reconcile, for a reconcile its calls.
func (s *State) Effects(e *Event) []*Event {
	var out []*Event
	for _, c := range s.timeline.children[e.Seq] {
		if c.Seq <= s.seq {
			out = append(out, c)
		}
	}
	return out
}

// Answer returns the reconcile that answers an enqueue, merge or ready event; nil if none had begun at this state.
func (s *State) Answer(e *Event) *Reconcile {
	id, ok := s.timeline.answered[e.Seq]
	if !ok {
		return nil
	}
	return s.Reconcile(id)
}

// Woke returns the reconciles that a write had woken at this state, in order, each once. It follows the watch events of
// the write and the keys made of them.
func (s *State) Woke(write *Event) []*Reconcile {
	var out []*Reconcile
	for _, watch := range s.Effects(write) {
		if watch.Kind != KindWatch {
			continue
		}
		for _, e := range s.Effects(watch) {
			if reconcile := s.Answer(e); reconcile != nil && !slices.Contains(out, reconcile) {
				out = append(out, reconcile)
			}
		}
	}
	return out
}

// Cause returns the event that caused an event; nil if there is none, it is not known (yet), or it is forgotten. It may
// be newer than this state: the write behind a watch event whose answer came after that event.
func (s *State) Cause(e *Event) *Event {
	if e.Cause > 0 {
		return s.timeline.Event(e.Cause)
	}
	if e.Kind == KindWatch && !e.Initial && e.Object.UID != "" {
		return s.timeline.writes[echoOf(e)]
	}
	return nil
}

// Wake explains one event that a reconcile answers.
type Wake struct {
	// Event is the enqueue, merge or ready event.
	Event *Event
	// Watch is the watch event behind it; nil if there is none.
	Watch *Event
	// Write is the API call that caused the watch event; nil if it was not recorded.
	Write *Event
	// Requeue is the event that set the timer, for a ready event. If that was read in the program's log, it is the end of
	// a reconcile.
	Requeue *Event
	// Own reports whether the write was made by the operator of the reconcile itself.
	Own bool
}

// Wakes explains what woke a reconcile: first its cause, then what merged into it.
func (s *State) Wakes(reconcile *Reconcile) []Wake {
	out := make([]Wake, 0, len(reconcile.Woken))
	for _, e := range reconcile.Woken {
		out = append(out, s.Wake(e))
	}
	return out
}

// Wake explains an enqueue, merge or ready event.
func (s *State) Wake(e *Event) Wake {
	w := Wake{Event: e}
	cause := s.Cause(e)
	switch {
	case cause == nil:
	case cause.Kind == KindRequeue, cause.Kind == KindEnd && e.Via == ViaLog:
		w.Requeue = cause
	case cause.Kind == KindWatch:
		w.Watch = cause
		w.Write = s.Cause(cause)
		w.Own = w.Write != nil && w.Write.Operator != "" && w.Write.Operator == e.Operator
	}
	return w
}

// Own reports whether a reconcile was caused by its operator's own write.
func (s *State) Own(reconcile *Reconcile) bool {
	return len(reconcile.Woken) > 0 && s.Wake(reconcile.Woken[0]).Own
}
