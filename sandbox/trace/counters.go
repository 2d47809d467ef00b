package trace

import (
	"maps"
	"time"
)

// Counters counts what was observed, in total or for one controller, key or reconcile.
type Counters struct {
	Reconciles  int           // reconciles that ended
	Requeues    int           // reconciles that asked to run again, errors included
	Errors      int           // reconciles that failed or panicked
	Conflicts   int           // writes refused because the object had changed
	CacheReads  int           // reads answered by the cache
	ServerReads int           // reads answered by the API server
	Writes      int           // writes that succeeded
	FailedCalls int           // calls that failed
	NoOps       int           // writes that succeeded and changed nothing
	Watched     int           // watch events
	Enqueued    int           // keys put into the queue by an event or a timer
	Merged      int           // keys merged into one that was already there
	Dropped     int           // watch events of which a controller made no key
	Passed      int           // keys that controllers made of watch events
	Busy        time.Duration // time spent in reconciles
	// ByVerb counts writes that succeeded by verb and kind, such as "create Zundoko" and "update Hikawa/status".
	ByVerb map[string]int
}

func (c *Counters) clone() Counters {
	n := *c
	n.ByVerb = maps.Clone(c.ByVerb)
	return n
}

// add adds the numbers of other counters.
func (c *Counters) add(o *Counters) {
	c.Reconciles += o.Reconciles
	c.Requeues += o.Requeues
	c.Errors += o.Errors
	c.Conflicts += o.Conflicts
	c.CacheReads += o.CacheReads
	c.ServerReads += o.ServerReads
	c.Writes += o.Writes
	c.FailedCalls += o.FailedCalls
	c.NoOps += o.NoOps
	c.Watched += o.Watched
	c.Enqueued += o.Enqueued
	c.Merged += o.Merged
	c.Dropped += o.Dropped
	c.Passed += o.Passed
	c.Busy += o.Busy
	for verb, n := range o.ByVerb {
		if c.ByVerb == nil {
			c.ByVerb = map[string]int{}
		}
		c.ByVerb[verb] += n
	}
}

func cloneCounters[K comparable](in map[K]*Counters) map[K]*Counters {
	out := make(map[K]*Counters, len(in))
	for k, c := range in {
		n := c.clone()
		out[k] = &n
	}
	return out
}

// count counts one event.
func (c *Counters) count(e *Event) {
	if (e.Kind == KindEnqueue || e.Kind == KindMerge) && e.Cause > 0 && e.Reason == "" {
		c.Passed++
	}
	switch e.Kind {
	case KindWatch:
		c.Watched++
	case KindDrop:
		c.Dropped++
	case KindEnqueue, KindReady:
		c.Enqueued++
	case KindMerge:
		c.Merged++
	case KindCall:
		c.countCall(e)
	case KindEnd:
		c.countEnd(e)
	}
}

func (c *Counters) countCall(e *Event) {
	switch {
	case e.Failed():
		c.FailedCalls++
		if e.Reason == "Conflict" {
			c.Conflicts++
		}
	case e.IsWrite():
		c.Writes++
		if e.NoOp {
			c.NoOps++
		}
		if c.ByVerb == nil {
			c.ByVerb = map[string]int{}
		}
		kind := e.Object.Kind
		if e.Object.Subresource != "" {
			kind += "/" + e.Object.Subresource
		}
		c.ByVerb[e.Verb+" "+kind]++
	case e.Source == Cache:
		c.CacheReads++
	case e.Source == Server:
		c.ServerReads++
	}
}

func (c *Counters) countEnd(e *Event) {
	c.Reconciles++
	c.Busy += e.Duration
	switch e.Outcome {
	case OutcomeError, OutcomePanic:
		c.Errors++
		c.Requeues++
	case OutcomeTerminal:
		c.Errors++
	case OutcomeRequeue, OutcomeRequeueAfter:
		c.Requeues++
	}
}

// counts are the counters of all events, by controller and by key.
type counts struct {
	total Counters
	byCtl map[ControllerKey]*Counters
	byKey map[QueueKey]*Counters
}

func newCounts() counts {
	return counts{byCtl: map[ControllerKey]*Counters{}, byKey: map[QueueKey]*Counters{}}
}

func (s *counts) clone() counts {
	return counts{total: s.total.clone(), byCtl: cloneCounters(s.byCtl), byKey: cloneCounters(s.byKey)}
}

// apply adds an event to all counters that it belongs to. Events written by event recorders and dry runs are not
// counted: the first belong to no reconcile, the second change nothing.
func (s *counts) apply(e *Event) {
	if e.Via == ViaRecorder || e.Via == ViaDryRun {
		return
	}
	s.total.count(e)
	if e.Operator == "" {
		return
	}
	ctl := ControllerKey{e.Operator, e.Controller}
	if s.byCtl[ctl] == nil {
		s.byCtl[ctl] = &Counters{}
	}
	s.byCtl[ctl].count(e)
	if e.Key.IsZero() {
		return
	}
	key := queueKeyOf(e)
	if s.byKey[key] == nil {
		s.byKey[key] = &Counters{}
	}
	s.byKey[key].count(e)
}

// Total returns the counters of all events.
func (s *counts) Total() *Counters { return &s.total }

// Controllers returns the counters by controller. Events of an operator that belong to no single controller, such as
// watch events, are under the empty name.
func (s *counts) Controllers() map[ControllerKey]*Counters { return s.byCtl }

// Keys returns the counters by key.
func (s *counts) Keys() map[QueueKey]*Counters { return s.byKey }
