package tui

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// sim is an operator that does not exist: it records the journal of one, and can
// be held like one. Time passes only by tick, so that its journals are the same every time.
type sim struct {
	journal  *trace.Journal
	operator string
	parent   trace.Ref
	child    string // kind of its children
	words    []string
	conflict int // the create that fails once with a conflict, from 1; 0: none

	mu       sync.Mutex
	now      func() time.Duration
	rv       *int
	children []string
	paused   bool
	steps    int
	holding  bool
	sent     bool // the held write may be sent
	queue    []int64
	timers   []simTimer
	running  *simReconcile
	failed   bool
	gen      int
	raw      map[string]json.RawMessage // by name
	uids     map[string]string
}

type simTimer struct {
	due   time.Duration
	cause int64
}

// simReconcile is a reconcile under way: what it still has to do.
type simReconcile struct {
	id, start int64
	begun     time.Duration
	todo      []func(*simReconcile) bool // each returns true when it is over
	held      int64
}

func newSim(j *trace.Journal, now func() time.Duration, rv *int, operator, parent, name, child string, words ...string) *sim {
	s := &sim{
		journal: j, operator: operator, child: child, words: words, now: now, rv: rv, gen: 1,
		parent: trace.Ref{APIVersion: operator + ".example.org/v1", Kind: parent, Namespace: "default", Name: name, UID: operator + "-uid"},
		raw:    map[string]json.RawMessage{}, uids: map[string]string{},
	}
	s.append(trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStart})
	return s
}

func (s *sim) append(e trace.Event) int64 {
	if e.At == 0 {
		e.At = s.now()
	}
	e.Operator = s.operator
	if e.Actor == "" {
		e.Actor = s.operator
	} else {
		e.Operator = e.Actor
	}
	return s.journal.Append(e)
}

func (s *sim) keyed(e trace.Event) int64 {
	e.Controller, e.Key = s.operator, s.parent.Key()
	return s.append(e)
}

func (s *sim) version() string {
	*s.rv++
	return fmt.Sprint(*s.rv)
}

func (s *sim) childRef(name string) trace.Ref {
	return trace.Ref{APIVersion: s.parent.APIVersion, Kind: s.child, Namespace: "default", Name: name, UID: s.uids[name]}
}

// begin is the creation of the parent by you.
func (s *sim) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	rv := s.version()
	raw := s.parentRaw(rv)
	s.append(trace.Event{
		Kind: trace.KindCall, Actor: "you", Verb: trace.VerbCreate, Object: s.parent, ResourceVersion: rv,
		Generation: 1, After: raw, Source: trace.Server, Status: 201, Duration: 4 * time.Millisecond,
	})
	s.watch(trace.Added, s.parent, rv, raw, true)
}

func (s *sim) parentRaw(rv string) json.RawMessage {
	n := len(s.children)
	ready, reason := "False", "Singing"
	if n >= len(s.words) {
		ready, reason = "True", "Sung"
	}
	return json.RawMessage(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":"default","uid":%q,"resourceVersion":%q,"generation":%d},
"spec":{"intervalMillis":500,"numWords":%d,"mood":"cheerful"},"status":{"observedGeneration":%d,"said":%d,"conditions":[
{"type":"Ready","status":%q,"reason":%q,"message":"%d of %d words said"},{"type":"Progressing","status":"True","reason":"WaitingForTimer","message":"歌っています"}]}}`,
		s.parent.APIVersion, s.parent.Kind, s.parent.Name, s.parent.UID, rv, s.gen, len(s.words), s.gen, n, ready, reason, n, len(s.words)))
}

func (s *sim) childRaw(name, word, rv string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":"default","uid":%q,"resourceVersion":%q,
"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":true}]},"spec":{"say":%q}}`,
		s.parent.APIVersion, s.child, name, s.uids[name], rv, s.parent.APIVersion, s.parent.Kind, s.parent.Name, s.parent.UID, word))
}

// watch is a watch event, and the key it makes if it makes one.
func (s *sim) watch(verb string, ref trace.Ref, rv string, raw json.RawMessage, key bool) {
	before := s.raw[ref.Name]
	s.raw[ref.Name] = raw
	seq := s.append(trace.Event{Kind: trace.KindWatch, Verb: verb, Object: ref, ResourceVersion: rv, Generation: int64(s.gen), Before: before, After: raw})
	if !key {
		s.keyed(trace.Event{Kind: trace.KindDrop, Cause: seq, Reason: "status or metadata only", Object: ref})
		return
	}
	s.enqueue(trace.KindEnqueue, seq)
}

func (s *sim) enqueue(kind trace.Kind, cause int64) {
	if len(s.queue) > 0 {
		kind = trace.KindMerge
	}
	s.queue = append(s.queue, s.keyed(trace.Event{Kind: kind, Cause: cause, Running: s.running != nil}))
}

// tick lets the operator do what it has to do now: one thing at most.
func (s *sim) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, t := range s.timers {
		if t.due <= s.now() {
			s.timers = append(s.timers[:i:i], s.timers[i+1:]...)
			s.enqueue(trace.KindReady, t.cause)
			return
		}
	}
	if v := s.running; v != nil {
		if len(v.todo) == 0 {
			return
		}
		if v.todo[0](v) {
			v.todo = v.todo[1:]
		}
		return
	}
	if len(s.queue) == 0 || s.paused && s.steps == 0 {
		return
	}
	if s.paused {
		s.steps--
	}
	s.reconcile()
}

// reconcile takes the key and plans what the reconcile will do.
func (s *sim) reconcile() {
	v := &simReconcile{id: s.journal.NewReconcile(), begun: s.now()}
	cause, merged := s.queue[0], len(s.queue)-1
	s.queue = nil
	v.start = s.keyed(trace.Event{Kind: trace.KindDequeue, Reconcile: v.id, Cause: cause, Count: merged})
	v.start = s.keyed(trace.Event{Kind: trace.KindStart, Reconcile: v.id, Cause: v.start})
	s.running = v
	read := func(verb string, ref trace.Ref, n int) func(*simReconcile) bool {
		return func(v *simReconcile) bool {
			e := trace.Event{Kind: trace.KindCall, Reconcile: v.id, Cause: v.start, Verb: verb, Object: ref, Source: trace.Cache, Count: n, Duration: 100 * time.Microsecond}
			if verb == trace.VerbGet {
				e.ResourceVersion = fmt.Sprint(*s.rv)
			}
			s.keyed(e)
			return true
		}
	}
	v.todo = append(v.todo, read(trace.VerbGet, s.parent, 0),
		read(trace.VerbList, trace.Ref{APIVersion: s.parent.APIVersion, Kind: s.child, Namespace: "default"}, len(s.children)))
	due := len(s.timers) == 0 // the last word was said long enough ago
	switch {
	case len(s.children) >= len(s.words) || !due:
		v.todo = append(v.todo, s.end(trace.OutcomeDone, 0, nil))
	default:
		s.planWord(v)
	}
}

// planWord plans to say the next word.
func (s *sim) planWord(v *simReconcile) {
	n := len(s.children)
	name, word := fmt.Sprintf("%s-%03d", s.parent.Name, n+1), s.words[n]
	v.todo = append(v.todo, func(v *simReconcile) bool {
		s.keyed(trace.Event{Kind: trace.KindLog, Reconcile: v.id, Cause: v.start, Message: "next word", Values: []string{"say", word, "position", fmt.Sprint(n + 1)}})
		return true
	})
	s.uids[name] = name + "-uid"
	ref := s.childRef(name)
	if s.conflict == n+1 && !s.failed {
		s.failed = true
		v.todo = append(v.todo, s.write(trace.VerbCreate, ref, nil, s.childRaw(name, word, ""), func(e *trace.Event) {
			e.Error, e.Reason, e.Status = "Operation cannot be fulfilled on "+ref.Kind+" \""+name+"\": the object has been modified", "Conflict", 409
		}), s.end(trace.OutcomeError, 5*time.Millisecond, &trace.Event{Reason: trace.ReasonBackoff, Try: 1}))
		return
	}
	v.todo = append(v.todo,
		s.write(trace.VerbCreate, ref, nil, s.childRaw(name, word, ""), func(e *trace.Event) {
			e.ResourceVersion, e.Status = s.version(), 201
			e.After = s.childRaw(name, word, e.ResourceVersion)
			s.children = append(s.children, name)
		}),
		func(*simReconcile) bool {
			s.watch(trace.Added, ref, fmt.Sprint(*s.rv), s.childRaw(name, word, fmt.Sprint(*s.rv)), true)
			return true
		},
		func(v *simReconcile) bool {
			status := s.parent
			status.Subresource = "status"
			return s.write(trace.VerbPatch, status, s.raw[s.parent.Name], s.parentRaw(""), func(e *trace.Event) {
				e.ResourceVersion, e.Status, e.Generation = s.version(), 200, int64(s.gen)
				e.After = s.parentRaw(e.ResourceVersion)
			})(v)
		},
		func(*simReconcile) bool {
			s.watch(trace.Modified, s.parent, fmt.Sprint(*s.rv), s.parentRaw(fmt.Sprint(*s.rv)), false)
			return true
		},
		s.end(trace.OutcomeRequeueAfter, 500*time.Millisecond, &trace.Event{Reason: trace.ReasonRequeueAfter}))
}

// write is a write, held first if writes are held.
func (s *sim) write(verb string, ref trace.Ref, before, after json.RawMessage, answer func(*trace.Event)) func(*simReconcile) bool {
	return func(v *simReconcile) bool {
		e := trace.Event{Reconcile: v.id, Cause: v.start, Verb: verb, Object: ref, Before: before, After: after}
		if s.holding && v.held == 0 {
			e.Kind, s.sent = trace.KindHold, false
			v.held = s.keyed(e)
			return false
		}
		if v.held != 0 && s.holding && !s.sent {
			return false
		}
		if v.held != 0 {
			e.Cause, v.held, s.sent = v.held, 0, false
		}
		e.Kind, e.Source, e.Duration = trace.KindCall, trace.Server, 3200*time.Microsecond
		answer(&e)
		s.keyed(e)
		return true
	}
}

// end ends the reconcile; a delay brings the key back.
func (s *sim) end(outcome trace.Outcome, delay time.Duration, requeue *trace.Event) func(*simReconcile) bool {
	return func(v *simReconcile) bool {
		e := trace.Event{Kind: trace.KindEnd, Reconcile: v.id, Cause: v.start, Outcome: outcome, Delay: delay, Duration: s.now() - v.begun}
		if outcome == trace.OutcomeError {
			e.Error, e.Try = "create "+s.child+": the object has been modified; please apply your changes to the latest version", 1
		}
		cause := s.keyed(e)
		s.running = nil
		if requeue != nil {
			r := *requeue
			r.Kind, r.Cause, r.Delay, r.Reconcile = trace.KindRequeue, cause, delay, v.id
			s.timers = append(s.timers, simTimer{s.now() + delay, s.keyed(r)})
		}
		return true
	}
}

// touch is an edit of the parent by you.
func (s *sim) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gen++
	rv := s.version()
	s.append(trace.Event{
		Kind: trace.KindCall, Actor: "you", Verb: trace.VerbUpdate, Object: s.parent, ResourceVersion: rv, Generation: int64(s.gen),
		Before: s.raw[s.parent.Name], After: s.parentRaw(rv), Source: trace.Server, Status: 200, Duration: 2 * time.Millisecond,
	})
	s.watch(trace.Modified, s.parent, rv, s.parentRaw(rv), true)
}

// control records what a person did to the loop, if it had an effect.
func (s *sim) control(verb string, do func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if do() {
		s.append(trace.Event{Kind: trace.KindControl, Verb: verb})
	}
}

func (s *sim) Pause() {
	s.control(trace.VerbPause, func() bool {
		done := s.paused
		s.paused = true
		return !done
	})
}

func (s *sim) Resume() {
	s.release()
	s.control(trace.VerbResume, func() bool {
		was := s.paused
		s.paused, s.steps = false, 0
		return was
	})
}

func (s *sim) release() {
	s.control(trace.VerbSendWrites, func() bool {
		was := s.holding
		s.holding = false
		return was
	})
}

func (s *sim) Step() {
	s.Pause()
	s.release()
	s.control(trace.VerbStep, s.admit)
}

func (s *sim) admit() bool {
	if s.running == nil {
		s.steps++
	}
	return true
}

func (s *sim) StepCall() {
	s.Pause()
	s.control(trace.VerbHoldWrites, func() bool {
		done := s.holding
		s.holding = true
		return !done
	})
	held := false
	s.control(trace.VerbRelease, func() bool {
		held = s.running != nil && s.running.held != 0
		s.sent = s.sent || held
		return held
	})
	if !held {
		s.control(trace.VerbStep, s.admit)
	}
}

// clockwork is a journal whose time passes by hand.
type clockwork struct {
	journal *trace.Journal
	at      time.Duration
	rv      int
}

func newClockwork() *clockwork {
	c := &clockwork{rv: 800}
	base := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	c.journal = trace.New(trace.Options{Now: func() time.Time { return base.Add(c.at) }, MaxEvents: 1 << 20})
	return c
}

func (c *clockwork) now() time.Duration { return c.at }

func (c *clockwork) zundoko(words ...string) *sim {
	return newSim(c.journal, c.now, &c.rv, "hikawa", "Hikawa", "demo", "Zundoko", words...)
}

// run lets time pass, a millisecond at a time.
func (c *clockwork) run(d time.Duration, sims ...*sim) {
	for end := c.at + d; c.at < end; c.at += time.Millisecond {
		for _, s := range sims {
			s.tick()
		}
	}
}

var song = []string{"Zun", "Zun", "Zun", "ズン", "ドコ"}

// story is the run of the sketches: a song, a conflict, a pause with edits that
// merge, and a write that is held.
func story() *clockwork {
	c := newClockwork()
	c.at = 400 * time.Millisecond
	h := c.zundoko(song...)
	h.conflict = 3
	h.begin()
	c.run(1700*time.Millisecond, h)
	h.Pause()
	c.run(900*time.Millisecond, h)
	for range 2 {
		h.touch()
		c.run(50*time.Millisecond, h)
	}
	h.StepCall()
	c.run(41*time.Second, h)
	return c
}

// duet is a run of two operators that is over.
func duet() *clockwork {
	c := newClockwork()
	c.at = 200 * time.Millisecond
	h := c.zundoko(song...)
	e := newSim(c.journal, c.now, &c.rv, "etcd", "EtcdCluster", "kv", "Pod", "a", "b")
	h.begin()
	c.run(30*time.Millisecond, h, e)
	e.begin()
	c.run(4*time.Second, h, e)
	c.journal.Append(trace.Event{Kind: trace.KindNote, Actor: "lab", Message: "Kiyoshi!"})
	return c
}
