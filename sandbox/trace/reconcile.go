package trace

import (
	"slices"
	"sort"
	"time"
)

// Reconcile is one reconcile; it begins when a worker takes the key.
type Reconcile struct {
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
	// merged into it. Of one that is Logged it is the dequeue event itself, if its cause is known.
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
	// Again means that its key was in the queue again when it ended: it runs once more at once, whatever it asked for. It is
	// false if its process ended, with the queue.
	Again bool
	// Logged means that it is known from the program's own log: what woke it and which calls are its own is concluded.
	Logged bool
}

// Running reports whether the reconcile has not ended.
func (s *Reconcile) Running() bool { return s.End == nil }

// Merged returns how many further events this reconcile answered.
func (s *Reconcile) Merged() int { return max(0, len(s.Woken)-1) }

// Outcome returns how it ended; empty while it runs.
func (s *Reconcile) Outcome() Outcome {
	if s.End == nil {
		return ""
	}
	return s.End.Outcome
}

// Calls returns its API calls in order.
func (s *Reconcile) Calls() []*Event { return s.steps(KindCall) }

// Logs returns its log lines in order.
func (s *Reconcile) Logs() []*Event { return s.steps(KindLog) }

func (s *Reconcile) steps(kind Kind) []*Event {
	var out []*Event
	for _, e := range s.Steps {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// clone returns a copy that can be changed without changing s.
func (s *Reconcile) clone() *Reconcile {
	c := *s
	c.Steps = slices.Clip(s.Steps)
	c.Tally = s.Tally.clone()
	return &c
}

// Reconciles returns the reconciles known at this state in the order they began.
func (l *loops) Reconciles() []*Reconcile {
	out := make([]*Reconcile, 0, len(l.finished)+len(l.running))
	out = append(out, l.finished...)
	for _, r := range l.running {
		out = append(out, r)
	}
	sort.Slice(out, func(i, k int) bool { return out[i].First < out[k].First })
	return out
}

// Running returns the reconciles that have not ended, in the order they began.
func (l *loops) Running() []*Reconcile {
	out := make([]*Reconcile, 0, len(l.running))
	for _, r := range l.running {
		out = append(out, r)
	}
	sort.Slice(out, func(i, k int) bool { return out[i].First < out[k].First })
	return out
}

// Reconcile returns the reconcile with a number, or nil.
func (l *loops) Reconcile(id int64) *Reconcile {
	if r := l.running[id]; r != nil {
		return r
	}
	for _, v := range slices.Backward(l.finished) {
		if v.ID == id {
			return v
		}
	}
	return nil
}

// begin folds a dequeue event in: the worker has the key.
func (l *loops) begin(e *Event) {
	qk := queueKeyOf(e)
	reconcile := &Reconcile{
		ID: e.Reconcile, Operator: e.Operator, Controller: e.Controller, Key: e.Key,
		Started: e.At, First: e.Seq, Last: e.Seq, Logged: e.Via == ViaLog,
	}
	if item := l.queue[qk]; item != nil {
		reconcile.Woken = item.Events
		delete(l.queue, qk)
	}
	if reconcile.Logged && e.Cause > 0 {
		reconcile.Woken = []*Event{e}
	}
	if old := l.running[e.Reconcile]; old != nil {
		l.finish(old, nil, e)
	}
	l.running[e.Reconcile] = reconcile
}

// step folds an event of a reconcile in.
func (l *loops) step(e *Event) {
	reconcile := l.running[e.Reconcile]
	if reconcile == nil {
		l.late(e)
		return
	}
	reconcile.Last = e.Seq
	if held := reconcile.Held; held != nil && (held.Seq == e.Cause || e.lostOf(held)) { // it passed, and may be held once more
		reconcile.Steps = without(reconcile.Steps, held)
		reconcile.Held = nil
	}
	if e.Kind == KindHold {
		reconcile.Held = e
	}
	reconcile.Steps = append(reconcile.Steps, e)
	reconcile.Tally.count(e)
}

// late folds in an event of a reconcile that stands there as aborted since its operator was stopped: it went on, or a write
// was carried out whose answer was lost.
func (l *loops) late(e *Event) {
	if e.Reconcile == 0 {
		return
	}
	i := len(l.finished) - 1 // what is late is of a reconcile that ended not long ago
	for i >= 0 && l.finished[i].ID != e.Reconcile {
		i--
	}
	if i < 0 || l.finished[i].Outcome() != OutcomeAborted && !e.Lost {
		return
	}
	reconcile := l.finished[i].clone() // checkpoints may share it
	reconcile.Last = e.Seq
	if e.Kind == KindEnd {
		reconcile.End, reconcile.Ended = e, e.At
	} else {
		sent := func(step *Event) bool { return step.Kind == KindHold && e.lostOf(step) }
		reconcile.Steps = append(slices.DeleteFunc(slices.Clone(reconcile.Steps), sent), e)
	}
	reconcile.Tally = Counters{}
	for _, step := range append(slices.Clip(reconcile.Steps), reconcile.End) {
		reconcile.Tally.count(step)
	}
	l.finished = slices.Clone(l.finished)
	l.finished[i] = reconcile
}

// lostOf reports whether an event is that of a write that was held before, and was carried out without an answer.
func (e *Event) lostOf(held *Event) bool {
	to, of := e.Object, held.Object
	to.UID, of.UID = "", "" // what is to be created has none yet
	return e.Lost && e.Verb == held.Verb && to == of
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

// finish moves a running reconcile to the finished ones. A nil end means that its worker died; the event at shows it.
func (l *loops) finish(reconcile *Reconcile, end, at *Event) {
	delete(l.running, reconcile.ID)
	reconcile.Held = nil
	if item := l.queue[reconcile.queueKey()]; end != nil && end.Outcome != OutcomeAborted && item != nil && item.Ready {
		reconcile.Again = true
	}
	if end == nil {
		end = &Event{
			Seq: at.Seq, At: at.At, Kind: KindEnd, Operator: reconcile.Operator, Controller: reconcile.Controller,
			Key: reconcile.Key, Reconcile: reconcile.ID, Outcome: OutcomeAborted,
		}
	}
	reconcile.End, reconcile.Ended, reconcile.Last = end, end.At, end.Seq
	reconcile.Tally.count(end)
	l.finished = append(l.finished, reconcile)
}
