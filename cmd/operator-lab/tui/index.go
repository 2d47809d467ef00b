package tui

import (
	"slices"
	"sort"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// mark is what the scrubber and the cursor need of an event. A frame looks at
// all of them, so they are small and lie next to each other.
type mark struct {
	seq  int64
	at   time.Duration
	kind markKind
}

type markKind uint8

const (
	markEvent markKind = iota
	markReconcile
	markError
)

// echo names the kind of watch event that a write comes back as.
type echo struct{ operator, apiVersion, kind, verb string }

// index is what the panes need of the journal beyond the state at the cursor.
// It grows with the journal and is never computed anew.
type index struct {
	timeline  *trace.Timeline
	marks     []mark
	spans     []*trace.Span // in the order they began
	operators []string      // in the order they appeared
	echoes    map[echo]int64
	notes     []*trace.Event // notes, newest last, few
	stats     trace.Stats
}

// manyNotes bounds the notes that are kept for display.
const manyNotes = 16

func newIndex(j *trace.Journal) *index {
	return &index{timeline: trace.NewTimeline(j), echoes: map[echo]int64{}}
}

// update folds in what was appended, and reports whether there was anything.
func (ix *index) update() bool {
	events := ix.timeline.Update()
	var begun []int64
	for _, e := range events {
		ix.marks = append(ix.marks, mark{e.Seq, e.At, markOf(e)})
		switch e.Kind {
		case trace.KindDequeue:
			begun = append(begun, e.Reconcile)
		case trace.KindWatch:
			ix.echoes[echo{e.Operator, e.Object.APIVersion, e.Object.Kind, e.Verb}] = e.Seq
		case trace.KindNote:
			ix.notes = append(ix.notes, e)
			if n := len(ix.notes); n > manyNotes {
				ix.notes = ix.notes[n-manyNotes:]
			}
		}
		if e.Operator != "" && e.Controller != "" && !slices.Contains(ix.operators, e.Operator) {
			ix.operators = append(ix.operators, e.Operator)
		}
	}
	ix.begin(begun)
	ix.forget()
	return len(events) > 0
}

func markOf(e *trace.Event) markKind {
	switch {
	case e.Kind == trace.KindStart:
		return markReconcile
	case e.Kind == trace.KindEnd && e.Error != "", e.Stack != "":
		return markError
	}
	return markEvent
}

// begin adds the reconciles that began. The timeline's newest state keeps the
// same span for a reconcile from its beginning on.
func (ix *index) begin(ids []int64) {
	tip := ix.timeline.Tip()
	if len(ids) < 32 {
		for _, id := range ids {
			if span := tip.Span(id); span != nil {
				ix.spans = append(ix.spans, span)
			}
		}
		return
	}
	last := int64(0)
	if n := len(ix.spans); n > 0 {
		last = ix.spans[n-1].First
	}
	all := tip.Spans()
	from := sort.Search(len(all), func(i int) bool { return all[i].First > last })
	ix.spans = append(ix.spans, all[from:]...)
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
	ix.spans = slices.DeleteFunc(ix.spans, func(s *trace.Span) bool { return !s.Running() && s.Last < first })
}

// last returns the Seq of the newest event, 0 before the first.
func (ix *index) last() int64 { return ix.timeline.Tip().Seq() }

// step returns the Seq of the event n places away from one.
func (ix *index) step(seq int64, n int) int64 {
	if len(ix.marks) == 0 {
		return 0
	}
	i := sort.Search(len(ix.marks), func(i int) bool { return ix.marks[i].seq > seq }) - 1
	return ix.marks[min(max(i+n, 0), len(ix.marks)-1)].seq
}

// span returns the reconcile whose first event has a Seq, or the last before it, or nil.
func spanAt(spans []*trace.Span, first int64) int {
	return sort.Search(len(spans), func(i int) bool { return spans[i].First > first }) - 1
}

// settled returns the Seq after which nothing followed for a while: where the
// newest event lies. It is the time of the newest event.
func (ix *index) lastAt() time.Duration {
	if n := len(ix.marks); n > 0 {
		return ix.marks[n-1].at
	}
	return 0
}
