package tui

import (
	"slices"
	"sort"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// mark holds the few facts of an event that the scrubber and the cursor need. A
// frame reads all marks, so they are small and lie next to each other.
type mark struct {
	seq int64
	at  time.Duration
	// along is how far along the scrubber it lies: its time, with long silences cut short.
	along time.Duration
	kind  markKind
}

// longestGap is how much of a silence the scrubber shows: while the loop is held
// nothing happens for minutes, and that would leave no room for what did.
const longestGap = time.Second

type markKind uint8

const (
	markEvent markKind = iota
	markReconcile
	markError
)

// echo names the kind of watch event that a write comes back as.
type echo struct{ operator, apiVersion, kind, verb string }

// index holds facts of the journal that the panes need besides the state at the cursor.
// It grows with the journal and is never computed anew.
type index struct {
	timeline   *trace.Timeline
	marks      []mark
	reconciles []*trace.Reconcile // in the order they began
	operators  []string           // in the order they appeared
	oneKey     *trace.QueueKey    // the only key there ever was, or nil
	keys       int                // 0, 1, or 2 for more than one
	echoes     map[echo]int64
	hit        map[int64]bool // reconciles at which a fault happened
	notes      []*trace.Event // notes and faults, newest last, few
	requests   []*trace.Event // what isRequest tells of, newest last
	stats      trace.Stats
}

// manyRequests bounds the requests that are kept for display.
const manyRequests = 5000

// manyNotes bounds the notes that are kept for display.
const manyNotes = 16

func newIndex(j *trace.Journal) *index {
	return &index{timeline: trace.NewTimeline(j), echoes: map[echo]int64{}, hit: map[int64]bool{}}
}

// update folds in what was appended, and reports whether there was anything.
func (ix *index) update() bool {
	events := ix.timeline.Update()
	var begun []int64
	for _, e := range events {
		ix.mark(e)
		switch e.Kind {
		case trace.KindDequeue:
			begun = append(begun, e.Reconcile)
		case trace.KindCall:
			ix.lost(e)
		case trace.KindWatch:
			ix.echoes[echo{e.Operator, e.Object.APIVersion, e.Object.Kind, e.Verb}] = e.Seq
		case trace.KindNote, trace.KindFault:
			ix.notes = append(ix.notes, e)
			if e.Kind == trace.KindFault && e.Reconcile > 0 {
				ix.hit[e.Reconcile] = true
			}
			if n := len(ix.notes); n > manyNotes {
				ix.notes = ix.notes[n-manyNotes:]
			}
		}
		if isRequest(e) {
			ix.requests = append(ix.requests, e)
			if n := len(ix.requests); n >= 2*manyRequests {
				ix.requests = slices.Clone(ix.requests[n-manyRequests:])
			}
		}
		ix.key(e)
		if e.Operator != "" && (e.Controller != "" || e.Via == trace.ViaGate) && !slices.Contains(ix.operators, e.Operator) {
			ix.operators = append(ix.operators, e.Operator)
		}
	}
	ix.begin(begun)
	ix.forget()
	return len(events) > 0
}

// mark notes an event where the scrubber and the cursor find it. Answers that are the same as before are left out: there
// is one a second.
func (ix *index) mark(e *trace.Event) {
	if e.Kind.Beside() && e.Verb == trace.VerbAnswer {
		return
	}
	m := mark{seq: e.Seq, at: e.At, kind: markOf(e)}
	if n := len(ix.marks); n > 0 {
		last := ix.marks[n-1]
		m.along = last.along + min(max(0, e.At-last.at), longestGap)
	}
	ix.marks = append(ix.marks, m)
}

// at returns the index of the mark of an event, or of the last before it; -1 if there is none.
func (ix *index) at(seq int64) int {
	return sort.Search(len(ix.marks), func(i int) bool { return ix.marks[i].seq > seq }) - 1
}

func markOf(e *trace.Event) markKind {
	switch {
	case e.Kind == trace.KindStart:
		return markReconcile
	case (e.Kind == trace.KindEnd || e.Kind == trace.KindTraffic) && e.Error != "", e.Stack != "", e.Kind == trace.KindFault, trace.StoreFails(e):
		return markError
	}
	return markEvent
}

// key notes whether there is more than one key.
func (ix *index) key(e *trace.Event) {
	if e.Kind != trace.KindDequeue || ix.keys > 1 {
		return
	}
	k := trace.QueueKey{Operator: e.Operator, Controller: e.Controller, Key: e.Key}
	switch {
	case ix.oneKey == nil:
		ix.oneKey, ix.keys = &k, 1
	case *ix.oneKey != k:
		ix.oneKey, ix.keys = nil, 2
	}
}

// begin adds the reconciles that began. The timeline's newest state keeps the
// same reconcile for a reconcile from its beginning on.
func (ix *index) begin(ids []int64) {
	tip := ix.timeline.Tip()
	if len(ids) < 32 {
		for _, id := range ids {
			if reconcile := tip.Reconcile(id); reconcile != nil {
				ix.reconciles = append(ix.reconciles, reconcile)
			}
		}
		return
	}
	last := int64(0)
	if n := len(ix.reconciles); n > 0 {
		last = ix.reconciles[n-1].First
	}
	all := tip.Reconciles()
	from := sort.Search(len(all), func(i int) bool { return all[i].First > last })
	ix.reconciles = append(ix.reconciles, all[from:]...)
}

// lost takes a reconcile anew that has got a write after its end, whose answer was lost.
func (ix *index) lost(e *trace.Event) {
	if !e.Lost {
		return
	}
	i := slices.IndexFunc(ix.reconciles, func(r *trace.Reconcile) bool { return r.ID == e.Reconcile })
	if now := ix.timeline.Tip().Reconcile(e.Reconcile); i >= 0 && now != nil {
		ix.reconciles[i] = now
	}
}

// forget lets go of what the journal has forgotten.
func (ix *index) forget() {
	ix.stats = ix.timeline.Journal().Stats()
	first := ix.stats.First
	if len(ix.marks) == 0 || ix.marks[0].seq >= first {
		return
	}
	i := sort.Search(len(ix.marks), func(i int) bool { return ix.marks[i].seq >= first })
	ix.marks = slices.Clone(ix.marks[i:])
	ix.requests = slices.DeleteFunc(ix.requests, func(e *trace.Event) bool { return e.Seq < first })
	ix.reconciles = slices.DeleteFunc(ix.reconciles, func(s *trace.Reconcile) bool { return !s.Running() && s.Last < first })
}

// last returns the Seq of the newest event, 0 before the first.
func (ix *index) last() int64 { return ix.timeline.Tip().Seq() }

// requeue returns the event that set the timer of a reconcile's key, or nil.
func (ix *index) requeue(reconcile *trace.Reconcile) *trace.Event {
	if reconcile.End == nil {
		return nil
	}
	for _, cause := range []int64{reconcile.End.Seq, reconcile.First} {
		if e := ix.timeline.Event(cause); e != nil {
			for _, effect := range ix.timeline.Tip().Effects(e) {
				if effect.Kind == trace.KindRequeue {
					return effect
				}
			}
		}
	}
	return nil
}

// lastMark returns the Seq of the newest event the cursor can stand at, 0 before the first.
func (ix *index) lastMark() int64 {
	if n := len(ix.marks); n > 0 {
		return ix.marks[n-1].seq
	}
	return 0
}

// step returns the Seq of the event n places away from one.
func (ix *index) step(seq int64, n int) int64 {
	if len(ix.marks) == 0 {
		return 0
	}
	i := ix.at(seq)
	return ix.marks[min(max(i+n, 0), len(ix.marks)-1)].seq
}

// reconcileAt returns which reconcile begins at a Seq, or is the last to begin before it; -1 if none is.
func reconcileAt(reconciles []*trace.Reconcile, first int64) int {
	return sort.Search(len(reconciles), func(i int) bool { return reconciles[i].First > first }) - 1
}

// lastAt returns the time of the newest event.
func (ix *index) lastAt() time.Duration {
	if n := len(ix.marks); n > 0 {
		return ix.marks[n-1].at
	}
	return 0
}
