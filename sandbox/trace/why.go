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
	causeFound                    // the object was there when the operator started
	causeOwn                      // the operator's own write
	causeOther                    // a recorded write of somebody else
	causeChange                   // a change whose author is not known
	causeTimer                    // RequeueAfter, or another delay
	causeBackoff                  // an error's back-off
	causeAgain                    // Result.Requeue
)

// cause is what is known of the cause of an event.
type cause struct {
	kind      causeKind
	object    Ref
	verb      string // ADDED, MODIFIED, DELETED
	write     string // verb of the write
	sub       string // subresource written
	by        string // actor of the write
	reconcile int64  // the reconcile that made the write or set the timer; 0 if none
	delay     time.Duration
	try       int
}

// causeOf collects what is known of an enqueue, merge or ready event.
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
		c.by, c.reconcile = w.Write.Actor, w.Write.Reconcile
		if w.Own {
			c.kind = causeOwn
		}
	}
	return c
}

// visit is what is known of a reconcile.
type visit struct {
	id      int64
	cause   cause
	merged  int
	writes  []*Event // that succeeded
	failed  *Event   // the last write that failed
	woke    []int64  // reconciles that its writes woke
	pending int      // writes whose watch event has not come yet
	held    *Event
	end     *Event
}

// facts collects what is known of a reconcile.
func (s *State) facts(span *Span) visit {
	v := visit{id: span.ID, merged: span.Merged(), held: span.Held, end: span.End}
	if len(span.Woken) > 0 {
		v.cause = s.causeOf(span.Woken[0])
	}
	for _, e := range span.Calls() {
		if !e.IsWrite() {
			continue
		}
		if e.Error != "" {
			v.failed = e
			continue
		}
		v.writes = append(v.writes, e)
		for _, woken := range s.Woke(e) {
			if woken != span && !slices.Contains(v.woke, woken.ID) {
				v.woke = append(v.woke, woken.ID)
			}
		}
		if !e.NoOp && len(s.Effects(e)) == 0 {
			v.pending++
		}
	}
	return v
}

// changed returns the writes that changed something, each object and verb once.
func (v visit) changed() []*Event {
	var out []*Event
	for _, e := range v.writes {
		same := func(o *Event) bool { return o.Object == e.Object && o.Verb == e.Verb }
		if !e.NoOp && !slices.ContainsFunc(out, same) {
			out = append(out, e)
		}
	}
	return out
}

// WhySpan explains why a reconcile ran, what it did and what follows.
func (s *State) WhySpan(span *Span, l Language) string {
	if l == Japanese {
		return s.facts(span).japanese()
	}
	return s.facts(span).english()
}

// Why explains why an event happened or what it means. A reconcile's dequeue, start and end are explained as the
// reconcile.
func (s *State) Why(e *Event, l Language) string {
	switch e.Kind {
	case KindDequeue, KindStart, KindEnd:
		if span := s.Span(e.Reconcile); span != nil {
			return s.WhySpan(span, l)
		}
	}
	w := s.news(e)
	if l == Japanese {
		return w.japanese()
	}
	return w.english()
}

// news is what is known of an event.
type news struct {
	*Event
	cause cause
	woke  []int64 // reconciles that answer it
	keys  []Key   // keys made of a watch event
	drops int     // controllers that made no key of a watch event
	next  int64   // the reconcile that answers an enqueued key
}

func (s *State) news(e *Event) news {
	n := news{Event: e}
	switch e.Kind {
	case KindEnqueue, KindMerge, KindReady:
		n.cause = s.causeOf(e)
		if span := s.Answer(e); span != nil {
			n.next = span.ID
		}
	case KindWatch:
		n.cause = s.causeOfWatch(Wake{Event: e, Watch: e, Write: s.Cause(e)})
		for _, k := range s.Effects(e) {
			switch k.Kind {
			case KindDrop:
				n.drops++
			case KindEnqueue, KindMerge:
				n.keys = append(n.keys, k.Key)
				if span := s.Answer(k); span != nil && !slices.Contains(n.woke, span.ID) {
					n.woke = append(n.woke, span.ID)
				}
			}
		}
	case KindCall:
		for _, span := range s.Woke(e) {
			n.woke = append(n.woke, span.ID)
		}
	}
	return n
}

// WhyObject explains where an object comes from, who changed it last, and whether its status is behind its spec.
func (s *State) WhyObject(o *Object, l Language) string {
	t := thing{Object: o}
	if e := s.timeline.Event(o.Created); e != nil {
		t.created = s.authorOf(e)
		t.found = e.Initial || e.Verb == Modified
	}
	if e := s.timeline.Event(o.Changed); e != nil && o.Changed != o.Created {
		t.changed = s.authorOf(e)
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

// thing is what is known of an object.
type thing struct {
	*Object
	created, changed author
	found            bool // it existed before the journal saw it
	owner            string
}

// author is the actor of a change and the reconcile it was made in.
type author struct {
	actor     string
	reconcile int64
}

// authorOf returns the author of a call, or of the write that caused a watch event.
func (s *State) authorOf(e *Event) author {
	if e.Kind == KindWatch {
		if e = s.Cause(e); e == nil {
			return author{}
		}
	}
	return author{e.Actor, e.Reconcile}
}
