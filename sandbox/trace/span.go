package trace

import (
	"slices"
	"sort"
	"time"
)

// Span is one reconcile; it begins when a worker takes the key.
type Span struct {
	// ID is the reconcile's number in the journal.
	ID int64
	// Operator is the operator's name.
	Operator string
	// Controller is the controller's name.
	Controller string
	// Key is the key that is reconciled.
	Key Key
	// Started and Ended are times since the journal's start; Ended is zero while it runs.
	Started, Ended time.Duration
	// First and Last are the Seqs of its first and its last event so far.
	First, Last int64
	// Woken are the enqueue, merge and ready events that this reconcile answers; the first one caused it, the others
	// merged into it.
	Woken []*Event
	// Steps are its calls, held writes and log lines in order. A hold whose call has returned is left out.
	Steps []*Event
	// Held is the write that is held now; nil if there is none.
	Held *Event
	// End is its last event; nil while it runs. It has the Outcome, the Error and, if the key comes back, the Delay and
	// the Try.
	End *Event
	// Tally counts its calls and writes.
	Tally Counters
}

// Running reports whether the reconcile has not ended.
func (s *Span) Running() bool { return s.End == nil }

// Merged returns how many further events this reconcile answered.
func (s *Span) Merged() int { return max(0, len(s.Woken)-1) }

// Outcome returns how it ended; empty while it runs.
func (s *Span) Outcome() Outcome {
	if s.End == nil {
		return ""
	}
	return s.End.Outcome
}

// Calls returns its API calls in order.
func (s *Span) Calls() []*Event { return s.steps(KindCall) }

// Logs returns its log lines in order.
func (s *Span) Logs() []*Event { return s.steps(KindLog) }

func (s *Span) steps(kind Kind) []*Event {
	var out []*Event
	for _, e := range s.Steps {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// clone returns a copy that can be changed without changing s.
func (s *Span) clone() *Span {
	c := *s
	c.Steps = slices.Clip(s.Steps)
	c.Tally = s.Tally.clone()
	return &c
}

// Spans returns the reconciles known at this state in the order they began.
func (s *State) Spans() []*Span {
	out := make([]*Span, 0, len(s.finished)+len(s.running))
	out = append(out, s.finished...)
	for _, r := range s.running {
		out = append(out, r)
	}
	sort.Slice(out, func(i, k int) bool { return out[i].First < out[k].First })
	return out
}

// Running returns the reconciles that have not ended, in the order they began.
func (s *State) Running() []*Span {
	out := make([]*Span, 0, len(s.running))
	for _, r := range s.running {
		out = append(out, r)
	}
	sort.Slice(out, func(i, k int) bool { return out[i].First < out[k].First })
	return out
}

// Span returns the reconcile with a number, or nil.
func (s *State) Span(id int64) *Span {
	if r := s.running[id]; r != nil {
		return r
	}
	for _, v := range slices.Backward(s.finished) {
		if v.ID == id {
			return v
		}
	}
	return nil
}

// begin folds a dequeue event in: the worker has the key.
func (s *State) begin(e *Event) {
	qk := queueKeyOf(e)
	span := &Span{
		ID: e.Reconcile, Operator: e.Operator, Controller: e.Controller, Key: e.Key,
		Started: e.At, First: e.Seq, Last: e.Seq,
	}
	if item := s.queue[qk]; item != nil {
		span.Woken = item.Events
		delete(s.queue, qk)
	}
	if old := s.running[e.Reconcile]; old != nil {
		s.finish(old, nil)
	}
	s.running[e.Reconcile] = span
}

// step folds an event of a reconcile in.
func (s *State) step(e *Event) {
	span := s.running[e.Reconcile]
	if span == nil {
		return
	}
	span.Last = e.Seq
	switch e.Kind {
	case KindHold:
		span.Held = e
	case KindCall:
		if span.Held != nil && span.Held.Seq == e.Cause {
			span.Steps = without(span.Steps, span.Held)
			span.Held = nil
		}
	}
	span.Steps = append(span.Steps, e)
	span.Tally.count(e)
}

// without returns a new slice of the steps without one of them; the old slice may be shared with a checkpoint.
func without(steps []*Event, gone *Event) []*Event {
	out := make([]*Event, 0, len(steps))
	for _, e := range steps {
		if e != gone {
			out = append(out, e)
		}
	}
	return out
}

// finish moves a running reconcile to the finished ones. A nil end means that
// its worker died.
func (s *State) finish(span *Span, end *Event) {
	delete(s.running, span.ID)
	span.Held = nil
	if end == nil {
		end = &Event{
			Seq: s.seq, At: s.at, Kind: KindEnd, Operator: span.Operator, Controller: span.Controller,
			Key: span.Key, Reconcile: span.ID, Outcome: OutcomeAborted,
		}
	}
	span.End, span.Ended, span.Last = end, end.At, end.Seq
	span.Tally.count(end)
	s.finished = append(s.finished, span)
}
