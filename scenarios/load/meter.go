package load

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Call names calls of one sort that an operator made.
type Call struct {
	// Verb is that of the API, Kind that of the object, with the subresource if there is one.
	Verb string `json:"verb"`
	Kind string `json:"kind"`
	// From says who answered: the API server or the operator's cache.
	From trace.Source `json:"from"`
	// Line is the line of source that makes the call; empty if it is not known.
	Line string `json:"line,omitempty"`
	// Outside says that the calls belong to no reconcile: a handler of watch events makes them, or it is not known which reconcile does.
	Outside bool `json:"outside,omitempty"`
}

// CallCount counts calls of one sort.
type CallCount struct {
	Call
	// Calls is how many there were, and Items how many objects lists returned.
	Calls int `json:"calls"`
	Items int `json:"items,omitempty"`
	// Whole is how many lists returned almost all objects that there were of their kind, as far as that is known: the operator watches
	// the kind.
	Whole int `json:"whole,omitempty"`
	// NoOps is how many of the writes changed nothing, and Failed how many calls failed.
	NoOps  int `json:"noOps,omitempty"`
	Failed int `json:"failed,omitempty"`
}

// Wake names the keys that a controller made of watch events of one kind.
type Wake struct {
	// Controller is the controller whose queue the keys were put into, Kind that of the watched objects.
	Controller string `json:"controller"`
	Kind       string `json:"kind"`
}

// tally is what a meter counts in a phase.
type tally struct {
	reconciles, errors, conflicts, watched, others, keys, noOps, writes, queue int
	calls                                                                      map[Call]*CallCount
	wakes                                                                      map[Wake]int
	latencies                                                                  []time.Duration
}

// meter folds the journal of an operator, as it grows, into a tally of the phase, and knows whether the operator is at rest. One
// goroutine uses it; change may be called from another one.
type meter struct {
	journal  *trace.Journal
	operator string
	seq      int64
	missed   int64 // events that the journal forgot before they were read
	tally    *tally

	queue   map[trace.QueueKey]*waiting
	ready   int
	running map[int64]*reconcile
	idle    map[trace.QueueKey]int // reconciles in a row without a change
	spins   map[trace.QueueKey]int // reconciles in a row of this phase that changed an object, and made and deleted none
	spun    *trace.Key             // came to the limit of spins; nil: none did
	objects map[int64]object       // of watch events, by their Seq

	watched map[string]bool   // kinds of which watch events came
	seen    map[string]bool   // versions that came
	others  map[string]object // versions that came in this phase, and that no write of the operator made, as far as its answers came
	changes map[object]bool   // objects that the operator has changed in this phase
	writes  map[string]string // the kinds of written versions that did not come yet
	newest  map[object]string // versions of objects, as far as they came; without those that were deleted
	heard   map[object]bool   // what handlers of the operator heard of in this phase
	handled map[string]bool   // kinds that they have heard of
	alive   map[object]int    // of newest, by kind and namespace, and by kind alone

	mu      sync.Mutex // guards changed and spins
	changed map[trace.Key]*changed
	gated   bool          // it has no reconciles in the journal
	last    time.Duration // of the newest event of the operator
}

// object is an object of the API.
type object struct {
	kind string
	key  trace.Key
}

// waiting is a key in a queue.
type waiting struct {
	ready   bool
	byEvent bool          // not only by a timer
	due     time.Duration // of the timer
}

// reconcile is one that runs.
type reconcile struct {
	byEvent, changed, made bool
}

// changed is the newest change of an object by the load.
type changed struct{ at, settled time.Duration }

func newMeter(journal *trace.Journal, operator string) *meter {
	m := &meter{
		journal: journal, operator: operator, queue: map[trace.QueueKey]*waiting{}, running: map[int64]*reconcile{},
		idle: map[trace.QueueKey]int{}, objects: map[int64]object{}, watched: map[string]bool{},
		seen: map[string]bool{}, writes: map[string]string{}, newest: map[object]string{}, handled: map[string]bool{}, alive: map[object]int{}, gated: true,
	}
	m.begin()
	return m
}

// begin begins a phase.
func (m *meter) begin() {
	m.tally = &tally{calls: map[Call]*CallCount{}, wakes: map[Wake]int{}}
	m.heard, m.changed, m.others = map[object]bool{}, map[trace.Key]*changed{}, map[string]object{}
	m.changes = map[object]bool{}
	m.spins, m.spun = map[trace.QueueKey]int{}, nil
}

// end ends a phase.
func (m *meter) end() *tally {
	for _, key := range slices.SortedFunc(maps.Keys(m.changed), compareKeys) {
		m.settle(m.changed[key])
	}
	for _, o := range m.others {
		if !m.changes[o] { // else it may be an answer to that
			m.tally.others++
		}
	}
	return m.tally
}

func compareKeys(a, b trace.Key) int { return cmp.Compare(a.String(), b.String()) }

// change takes note of a change of an object by the load.
func (m *meter) change(key trace.Key, at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before := m.changed[key]; before != nil {
		m.settle(before)
	}
	m.changed[key] = &changed{at: at}
	maps.DeleteFunc(m.spins, func(k trace.QueueKey, _ int) bool { return k.Key == key })
}

func (m *meter) settle(c *changed) {
	if c.settled > c.at {
		m.tally.latencies = append(m.tally.latencies, c.settled-c.at)
	}
}

// update folds what is new in the journal.
func (m *meter) update() {
	events := m.journal.Since(m.seq)
	if len(events) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missed += events[0].Seq - m.seq - 1
	m.seq = events[len(events)-1].Seq
	for _, e := range events {
		if e.Operator == m.operator && !e.Kind.Beside() {
			m.last = e.At
			m.fold(e)
		}
	}
}

func (m *meter) fold(e *trace.Event) {
	key := trace.QueueKey{Operator: e.Operator, Controller: e.Controller, Key: e.Key}
	switch e.Kind {
	case trace.KindWatch:
		m.watch(e)
	case trace.KindDrop:
		m.hear(e.Cause)
	case trace.KindEnqueue, trace.KindMerge, trace.KindReady, trace.KindRequeue:
		m.enqueue(key, e)
	case trace.KindDequeue:
		r := &reconcile{}
		if w := m.queue[key]; w != nil {
			r.byEvent = w.byEvent
			m.drop(key)
		}
		m.running[e.Reconcile] = r
		m.gated = false
	case trace.KindCall:
		m.call(e)
	case trace.KindEnd:
		m.ended(key, e)
	case trace.KindOperator:
		if e.Verb == trace.VerbStop {
			clear(m.queue)
			clear(m.running)
			clear(m.writes) // the watches of the ended process bring nothing back
			m.ready = 0
		}
	}
	m.tally.queue = max(m.tally.queue, m.ready)
}

func (m *meter) watch(e *trace.Event) {
	m.tally.watched++
	o := object{e.Object.Kind, e.Object.Key()}
	if _, own := m.writes[e.ResourceVersion]; !own && !m.seen[e.ResourceVersion] {
		m.others[e.ResourceVersion] = o
	}
	m.watched[e.Object.Kind], m.seen[e.ResourceVersion] = true, true
	delete(m.writes, e.ResourceVersion)
	m.objects[e.Seq] = o
	_, was := m.newest[o]
	switch is := e.Verb != trace.Deleted; {
	case is && !was:
		m.lives(o, 1)
	case was && !is:
		m.lives(o, -1)
	}
	m.newest[o] = e.ResourceVersion
	if e.Verb == trace.Deleted {
		delete(m.newest, o)
	}
}

// lives counts an object that is there, or is no more.
func (m *meter) lives(o object, by int) {
	m.alive[object{kind: o.kind}] += by
	if o.key.Namespace != "" {
		m.alive[object{o.kind, trace.Key{Namespace: o.key.Namespace}}] += by
	}
}

// whole is the share of all objects of a kind that a list of almost all of them has: the journal may be behind the cache.
const whole = 0.9

// hear takes note that a handler heard of the object of a watch event, perhaps once more, and returns its kind.
func (m *meter) hear(watch int64) (kind string) {
	o, known := m.objects[watch]
	if known {
		m.heard[o], m.handled[o.kind] = true, true
	}
	return o.kind
}

// heardAll reports whether handlers heard in this phase of each object of the kinds that they hear of.
func (m *meter) heardAll() bool {
	for o := range m.newest {
		if m.handled[o.kind] && !m.heard[o] {
			return false
		}
	}
	return true
}

func (m *meter) enqueue(key trace.QueueKey, e *trace.Event) {
	w := m.queue[key]
	if w == nil {
		w = &waiting{}
		m.queue[key] = w
	}
	if e.Kind == trace.KindRequeue {
		w.due = e.At + e.Delay
		return
	}
	if !w.ready {
		w.ready = true
		m.ready++
	}
	if e.Kind == trace.KindReady || e.Reason != "" {
		return
	}
	w.byEvent = true
	if kind := m.hear(e.Cause); kind != "" {
		m.tally.keys++
		m.tally.wakes[Wake{e.Controller, kind}]++
	}
}

func (m *meter) drop(key trace.QueueKey) {
	if m.queue[key].ready {
		m.ready--
	}
	delete(m.queue, key)
}

func (m *meter) call(e *trace.Event) {
	if e.Via == trace.ViaRecorder || e.Via == trace.ViaDryRun {
		return
	}
	call := Call{e.Verb, e.Object.Kind, e.Source, e.Line, e.Reconcile == 0}
	if e.Object.Subresource != "" {
		call.Kind += "/" + e.Object.Subresource
	}
	c := m.tally.calls[call]
	if c == nil {
		c = &CallCount{Call: call}
		m.tally.calls[call] = c
	}
	c.Calls++
	if e.Verb == trace.VerbList {
		c.Items += e.Count
		if all := m.alive[object{e.Object.Kind, trace.Key{Namespace: e.Object.Namespace}}]; all > 0 && float64(e.Count) >= whole*float64(all) {
			c.Whole++
		}
	}
	r := m.running[e.Reconcile]
	switch {
	case e.Failed():
		c.Failed++
		if e.Reason == "Conflict" {
			m.tally.conflicts++
		}
	case e.IsWrite() && e.NoOp:
		c.NoOps++
		m.tally.noOps++
	case e.IsWrite():
		m.tally.writes++
		m.changes[object{e.Object.Kind, e.Object.Key()}] = true
		if r != nil {
			switch e.Verb {
			case trace.VerbUpdate, trace.VerbPatch, trace.VerbApply:
				r.changed = true
			default:
				r.made = true
			}
		}
		delete(m.others, e.ResourceVersion) // its event was faster than its answer
		deletes := e.Verb == trace.VerbDelete || e.Verb == trace.VerbDeleteAll
		if e.Via == "" && !e.Lost && !deletes && !m.seen[e.ResourceVersion] {
			m.writes[e.ResourceVersion] = e.Object.Kind
		}
	}
}

// spinLimit is how many reconciles in a row may change an object, and make and delete none, without a change from outside.
const spinLimit = 100

func (m *meter) ended(key trace.QueueKey, e *trace.Event) {
	r := m.running[e.Reconcile]
	if r == nil {
		return
	}
	delete(m.running, e.Reconcile)
	m.tally.reconciles++
	switch e.Outcome {
	case trace.OutcomeError, trace.OutcomePanic, trace.OutcomeTerminal:
		m.tally.errors++
	}
	m.idle[key]++
	if r.changed || r.made || e.Error != "" { // what failed is tried again
		m.idle[key] = 0
	}
	switch {
	case r.made:
		m.spins[key] = 0
	case r.changed:
		m.spins[key]++
		if m.spins[key] >= spinLimit {
			m.spun = &key.Key
		}
	}
	if c := m.changed[key.Key]; c != nil && (r.byEvent || r.changed || r.made) {
		c.settled = e.At
	}
	if e.Delay > 0 && m.queue[key] == nil { // its timer is about to be set
		m.queue[key] = &waiting{due: e.At + e.Delay}
	}
}

// spin says what the reconciles of the key that spins do.
func (m *meter) spin() string {
	type changing struct{ field, kind string }
	values, controllers := map[changing][]string{}, map[string]bool{}
	for _, e := range m.journal.Since(0) {
		if e.Operator != m.operator || e.Key != *m.spun || e.Kind != trace.KindCall || !e.IsWrite() || e.Error != "" || e.NoOp {
			continue
		}
		controllers[e.Controller] = true
		for field, value := range trace.ChangedFields(e.Before, e.After) {
			c := changing{field, e.Object.Kind}
			values[c] = append(values[c], value)
		}
	}
	var most changing
	for c, v := range values {
		if len(v) > len(values[most]) || len(v) == len(values[most]) && c.field < most.field {
			most = c
		}
	}
	who := strings.Join(slices.Sorted(maps.Keys(controllers)), " and ")
	text := fmt.Sprintf("%d reconciles in a row of %s by %s changed something, although nobody else did", spinLimit, *m.spun, who)
	if last := slices.Compact(values[most]); len(last) > 0 {
		text += fmt.Sprintf("; they write %s of %s again and again: … %s", most.field, most.kind, strings.Join(last[max(0, len(last)-4):], ", "))
	}
	return text
}

// How long rest is waited for: a timer that runs out later than soon does not count, nor does one of a key that has not changed
// anything idleRounds times. An event that does not come is waited for as long as patience, and an operator of which no
// reconciles are seen has to have done nothing for silence. A lull is the time in which a handler makes keys of an event.
const (
	soon       = time.Second
	idleRounds = 3
	patience   = 3 * time.Second
	silence    = time.Second
	lull       = 50 * time.Millisecond
)

// rest returns 0 if the operator has nothing more to do, or else the time until it is worth looking again without an event.
func (m *meter) rest() time.Duration {
	now := m.journal.Elapsed()
	if len(m.running) > 0 || m.ready > 0 {
		return silence
	}
	least := lull
	if m.gated {
		least = silence
	}
	if now-m.last < least {
		return least - (now - m.last)
	}
	if m.pending() && now-m.last < patience {
		return patience - (now - m.last)
	}
	var next time.Duration
	for key, w := range m.queue {
		if left := max(w.due-now, time.Millisecond); left <= soon && m.idle[key] < idleRounds && (next == 0 || left < next) {
			next = left
		}
	}
	return next
}

// pending reports whether a written version has not come back.
func (m *meter) pending() bool {
	for _, kind := range m.writes {
		if m.watched[kind] {
			return true
		}
	}
	return false
}

// has reports whether a version of an object came, or a later one.
func (m *meter) has(kind string, key trace.Key, version string) bool {
	newer, err := resourceversion.CompareResourceVersion(m.newest[object{kind, key}], version)
	return err == nil && newer >= 0
}

// follow folds the journal until done returns true, a key spins, or the context ends. It looks at least as often as done says.
func (m *meter) follow(ctx context.Context, done func() (bool, time.Duration)) error {
	grown, cancel := m.journal.Subscribe()
	defer cancel()
	for {
		m.update()
		over, again := done()
		if over || m.spun != nil {
			return nil
		}
		timer := time.NewTimer(max(again, time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-grown:
		case <-timer.C:
		}
		timer.Stop()
	}
}
