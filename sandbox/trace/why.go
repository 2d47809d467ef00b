package trace

import (
	"slices"
	"time"
)

// Explanations: the facts are collected here, the sentences of each language are in a file of their own. They are
// written, not translated, because the order of what is said differs.

// causeKind is the kind of the cause of a reconcile.
type causeKind int

const (
	causeOutside causeKind = iota // a key added by something other than a watch
	causeUnknown                  // the program's log does not tell, and nothing that was seen fits
	causeFound                    // the object was there when the operator started
	causeOwn                      // the operator's own write
	causeOther                    // a recorded write of somebody else
	causeChange                   // a change whose author is not known
	causeTimer                    // RequeueAfter, or another delay
	causeBackoff                  // an error's back-off
	causeRetry                    // an error, after a back-off that is not known
	causeAgain                    // Result.Requeue
)

// cause describes the cause of an event, as far as it is known.
type cause struct {
	kind      causeKind
	object    Ref
	verb      string // ADDED, MODIFIED, DELETED, or marked
	write     string // verb of the write
	sub       string // subresource written
	by        string // actor of the write
	reconcile int64  // the reconcile that set the timer; 0 if none
	within    within // the reconcile of the write
	delay     time.Duration
	try       int
}

// marked is the verb of a MODIFIED that a delete has caused: the object waits for its grace period or its finalizers.
const marked = "marked"

// within says in which reconcile something happened.
type within struct {
	id       int64 // 0: in none
	probably bool
}

func withinOf(e *Event) within { return within{e.Reconcile, e.Probably} }

// causeOf returns the cause of an enqueue, merge or ready event.
func (s *State) causeOf(e *Event) cause {
	w := s.Wake(e)
	switch {
	case w.Requeue != nil:
		c := cause{kind: causeTimer, reconcile: w.Requeue.Reconcile, delay: w.Requeue.Delay, try: w.Requeue.Try}
		switch w.Requeue.Reason {
		case ReasonBackoff:
			c.kind = causeBackoff
		case ReasonRequeue:
			c.kind = causeAgain
		}
		switch w.Requeue.Outcome {
		case OutcomeError, OutcomePanic:
			c.kind = causeRetry
		case OutcomeRequeue:
			c.kind = causeAgain
		}
		return c
	case w.Watch != nil:
		return s.causeOfWatch(w)
	case e.Reason == ReasonBackoff:
		return cause{kind: causeBackoff, reconcile: e.Reconcile, delay: e.Delay, try: e.Try}
	case e.Reason == ReasonRequeue:
		return cause{kind: causeAgain, reconcile: e.Reconcile}
	}
	return cause{kind: causeOutside}
}

func (s *State) causeOfWatch(w Wake) cause {
	c := cause{kind: causeChange, object: w.Watch.Object, verb: w.Watch.Verb}
	switch {
	case w.Watch.Initial:
		c.kind = causeFound
	case w.Write != nil:
		c.kind, c.write, c.sub = causeOther, w.Write.Verb, w.Write.Object.Subresource
		c.by, c.within = w.Write.Actor, withinOf(w.Write)
		if w.Own {
			c.kind = causeOwn
		}
		if c.write == VerbDelete && c.verb == Modified {
			c.verb = marked
		}
	}
	return c
}

// reconcileFacts are the facts about a reconcile that its explanation tells.
type reconcileFacts struct {
	id     int64
	logged bool // see Reconcile.Logged
	cause  cause
	// probably marks the cause as concluded.
	probably bool
	merged   int
	writes   []*Event // that succeeded
	failed   *Event   // the last write that failed
	woke     []int64  // reconciles that its writes woke
	pending  int      // writes whose watch event has not come yet
	again    bool     // see Reconcile.Again
	held     *Event
	end      *Event
}

// reconcileFacts collects the facts about a reconcile.
func (s *State) reconcileFacts(reconcile *Reconcile) reconcileFacts {
	f := reconcileFacts{
		id: reconcile.ID, logged: reconcile.Logged, merged: reconcile.Merged(), held: reconcile.Held, end: reconcile.End,
		again: reconcile.Again,
	}
	switch {
	case len(reconcile.Woken) > 0:
		f.cause, f.probably = s.causeOf(reconcile.Woken[0]), reconcile.Woken[0].Probably
	case reconcile.Logged:
		f.cause.kind = causeUnknown
	}
	for _, e := range reconcile.Calls() {
		if !e.IsWrite() {
			continue
		}
		if e.Error != "" {
			f.failed = e
			continue
		}
		f.writes = append(f.writes, e)
		for _, woken := range s.Woke(e) {
			if woken != reconcile && !slices.Contains(f.woke, woken.ID) {
				f.woke = append(f.woke, woken.ID)
			}
		}
		// The watch of a process that has ended brings nothing back.
		if !e.NoOp && len(s.Effects(e)) == 0 && reconcile.Outcome() != OutcomeAborted {
			f.pending++
		}
	}
	return f
}

// ofReconcile returns a description of writes in a reconcile that says of which it is concluded that they belong to it.
func ofReconcile(write func(*Event) string, probably string) func(*Event) string {
	return func(e *Event) string {
		if e.Probably {
			return probably + write(e)
		}
		return write(e)
	}
}

// changed returns the writes that changed something, each object and verb once.
func (f reconcileFacts) changed() []*Event {
	var out []*Event
	for _, e := range f.writes {
		same := func(o *Event) bool { return o.Object == e.Object && o.Verb == e.Verb }
		if !e.NoOp && !slices.ContainsFunc(out, same) {
			out = append(out, e)
		}
	}
	return out
}

// WhyReconcile explains why a reconcile ran, what it did and what follows.
func (s *State) WhyReconcile(reconcile *Reconcile, l Language) string {
	if l == Japanese {
		return s.reconcileFacts(reconcile).japanese()
	}
	return s.reconcileFacts(reconcile).english()
}

// Why explains why an event happened or what it means. A reconcile's dequeue, start and end are explained as the
// reconcile.
func (s *State) Why(e *Event, l Language) string {
	switch e.Kind {
	case KindDequeue, KindStart, KindEnd:
		if reconcile := s.Reconcile(e.Reconcile); reconcile != nil {
			return s.WhyReconcile(reconcile, l)
		}
	}
	f := s.eventFacts(e)
	if l == Japanese {
		return f.japanese()
	}
	return f.english()
}

// eventFacts are the facts about an event that its explanation tells.
type eventFacts struct {
	*Event
	cause cause
	woke  []int64 // reconciles that answer it
	guess bool    // that they answer it was concluded
	keys  []Key   // keys made of a watch event
	drops int     // controllers that made no key of a watch event
	next  int64   // the reconcile that answers an enqueued key
}

func (s *State) eventFacts(e *Event) eventFacts {
	n := eventFacts{Event: e}
	switch e.Kind {
	case KindEnqueue, KindMerge, KindReady:
		n.cause = s.causeOf(e)
		if reconcile := s.Answer(e); reconcile != nil {
			n.next = reconcile.ID
		}
	case KindWatch:
		n.cause = s.causeOfWatch(Wake{Event: e, Watch: e, Write: s.Cause(e)})
		for _, k := range s.Effects(e) {
			switch k.Kind {
			case KindDrop:
				n.drops++
			case KindDequeue: // read in the program's log
				n.guess = true
				n.woke = append(n.woke, k.Reconcile)
			case KindEnqueue, KindMerge:
				n.keys = append(n.keys, k.Key)
				if reconcile := s.Answer(k); reconcile != nil && !slices.Contains(n.woke, reconcile.ID) {
					n.woke = append(n.woke, reconcile.ID)
				}
			}
		}
	case KindCall:
		for _, reconcile := range s.Woke(e) {
			n.woke = append(n.woke, reconcile.ID)
			n.guess = n.guess || reconcile.Logged
		}
	}
	return n
}

// WhyObject explains where an object comes from, who changed it last, and whether its status is behind its spec.
func (s *State) WhyObject(o *Object, l Language) string {
	t := objectFacts{Object: o}
	if e := s.timeline.Event(o.Created); e != nil {
		t.created = s.authorOf(e)
		t.initial = e.Initial
		t.found = e.Initial || e.Verb == Modified
		if write := s.writeOf(e); write != nil && !write.creates() { // of an object of which nothing was known
			t.created, t.changed, t.found = author{}, t.created, true
			// What the audit log told has the clock of the journal; another cluster's need not.
			t.initial = write.byOthers() && s.timeline.journal.Header().Older(o.Meta().Made)
		}
	}
	if e := s.timeline.Event(o.Changed); e != nil && o.Changed != o.Created {
		t.changed = s.authorOf(e)
	}
	if o.Deleted {
		t.deleted = s.deleterOf(o)
	}
	for _, owner := range o.Meta().Owners {
		if owner.Controller || t.owner == "" {
			t.owner = owner.Kind + " " + owner.Name
		}
	}
	if l == Japanese {
		return t.japanese()
	}
	return t.english()
}

// objectFacts are the facts about an object that its explanation tells.
type objectFacts struct {
	*Object
	created, changed author
	deleted          author // who asked for the deletion of what is gone; changed is who ended it
	found            bool   // it existed before its first event in the journal
	initial          bool   // it existed before the operator started
	owner            string
}

// author is the actor of a change and the reconcile it was made in.
type author struct {
	actor  string
	within within
}

// authorOf returns the author of a call, or of the write that caused a watch event.
func (s *State) authorOf(e *Event) author {
	if e = s.writeOf(e); e == nil {
		return author{}
	}
	return author{e.Actor, withinOf(e)}
}

// deleterOf returns who first deleted an object that is gone: a pod goes only when its node has ended it, others when the last
// finalizer is taken off.
func (s *State) deleterOf(o *Object) author {
	for _, e := range s.timeline.journal.Since(o.Created - 1) {
		if e.Seq > s.seq {
			break
		}
		if e.IsWrite() && e.Kind == KindCall && e.Verb == VerbDelete && e.Error == "" &&
			e.Object.UID == o.Ref.UID && e.Object.Name == o.Ref.Name && e.Object.Subresource == "" {
			return author{e.Actor, withinOf(e)}
		}
	}
	return author{}
}

// writeOf returns a call, or the write that caused a watch event; nil if it was not recorded.
func (s *State) writeOf(e *Event) *Event {
	if e.Kind == KindWatch || e.Kind == KindFound {
		return s.Cause(e)
	}
	return e
}
