//go:build go1.23

package taps

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// logged are the reconciles that the log of a program without taps tells of in one run. When they begin, when they end
// and how is in the log. The rest is concluded: a request belongs to the one reconcile that is open; if there are several, to
// the one that fits. What woke a reconcile is the watch event about its object, or about one that the object owns, since its
// key was reconciled last, or else the end of that reconcile, if it asked for another one or failed.
type logged struct {
	taps *Taps

	mu      sync.Mutex
	open    map[string]*loggedReconcile // by reconcileID
	last    map[loggedLoop]*loggedReconcile
	news    map[objectKey][]news
	outside map[asked]bool // the requests that were made while no reconcile was open
}

// loggedReconcile is a reconcile that the log tells of.
type loggedReconcile struct {
	*runningReconcile
	object objectKey
	// ended is the Seq of its end, 0 while it is open; due is when it asked to be run again.
	ended int64
	due   time.Duration
	again bool // it failed, or asked to be requeued: it is run again after a time that is not known
}

// asked is what a request asks for.
type asked struct {
	verb     string
	resource schema.GroupResource
}

// loggedLoop identifies a controller and a key.
type loggedLoop struct {
	controller string
	key        trace.Key
}

// objectKey identifies an object by its kind and name.
type objectKey struct {
	schema.GroupKind
	key trace.Key
}

// news is a watch event about an object, or about one that it owns.
type news struct {
	seq int64
	at  time.Duration
}

// manyNews is how many of them are remembered for an object: those since its last reconcile, which are few.
const manyNews = 64

func newLogged(t *Taps) *logged {
	return &logged{
		taps: t, open: map[string]*loggedReconcile{}, last: map[loggedLoop]*loggedReconcile{},
		news: map[objectKey][]news{}, outside: map[asked]bool{},
	}
}

// LogLine takes a line that a program without taps has printed, for the journal: its log, and the reconciles that it tells
// of. Of a log in JSON, lines above verbosity 0 are left out otherwise.
func (t *Taps) LogLine(line string) {
	l, ok := parseLogLine(line)
	if !ok {
		t.append(trace.Event{Kind: trace.KindLog, Message: line})
		return
	}
	t.logged.Load().take(l)
}

// take takes a line.
func (g *logged) take(l logLine) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.open[l.reconcileID]
	switch {
	case r == nil && l.begins():
		g.begin(l)
	case r != nil && l.end(r.runningReconcile):
		delete(g.open, l.reconcileID)
		g.end(r)
	case l.level > 0:
	case r != nil:
		e := l.event()
		e.Controller, e.Key, e.Reconcile, e.Cause = r.controller, r.key, r.id, r.start
		g.taps.append(e)
	default:
		g.taps.append(l.event())
	}
}

// begin records the beginning of a reconcile. The caller holds the lock.
func (g *logged) begin(l logLine) {
	t := g.taps
	r := &loggedReconcile{
		runningReconcile: &runningReconcile{
			taps: t, controller: l.controller, key: l.key, id: t.journal.NewReconcile(), begun: t.journal.Elapsed(),
		},
		object: objectKey{schema.GroupKind{Group: l.group, Kind: l.kind}, l.key},
	}
	loop := loggedLoop{l.controller, l.key}
	before := g.last[loop]
	if before != nil && before.ended == 0 { // a key has one worker at a time: its end was not logged
		maps.DeleteFunc(g.open, func(_ string, o *loggedReconcile) bool { return o == before })
		g.end(before)
	}
	g.last[loop], g.open[l.reconcileID] = r, r
	e := trace.Event{Kind: trace.KindDequeue, Via: trace.ViaLog, Controller: r.controller, Key: r.key, Reconcile: r.id}
	e.Cause = g.causeOf(r, before)
	e.Probably = e.Cause > 0
	seq := t.append(e)
	e.Kind, e.Cause, e.Probably = trace.KindStart, seq, false
	r.start = t.append(e)
}

// end records the end of a reconcile. The caller holds the lock.
func (g *logged) end(r *loggedReconcile) {
	e, _ := r.runningReconcile.end()
	e.Via, e.Controller, e.Key = trace.ViaLog, r.controller, r.key
	switch e.Outcome {
	case trace.OutcomeRequeueAfter:
		r.due = g.taps.journal.Elapsed() + e.Delay
	case trace.OutcomeError, trace.OutcomePanic, trace.OutcomeRequeue:
		r.again = true
	}
	r.ended = g.taps.append(e)
}

// The times by which causes are told apart: a line of the log may come late by lateLine, and a key that a watch event has
// put into the queue is hardly still there after prompt.
const (
	lateLine = 50 * time.Millisecond
	prompt   = time.Second
)

// causeOf returns the Seq of what probably woke a reconcile; 0 if nothing is known that may have. The caller holds the lock.
func (g *logged) causeOf(r, before *loggedReconcile) int64 {
	since, due := int64(0), time.Duration(0)
	if before != nil {
		since, due = before.start, before.due
	}
	timed := due > 0 && r.begun+lateLine >= due
	var fits []news
	for _, n := range g.news[r.object] {
		if n.seq > since && (!timed || n.at >= due-lateLine) {
			fits = append(fits, n)
		}
	}
	for _, n := range fits {
		if r.begun-n.at <= prompt {
			return n.seq
		}
	}
	switch {
	case timed || before != nil && before.again:
		return before.ended
	case len(fits) > 0:
		return fits[0].seq
	}
	return 0
}

// hear takes a watch event that the program has got.
func (g *logged) hear(seq int64, v version) {
	g.mu.Lock()
	defer g.mu.Unlock()
	about := append(ownersOf(v), objectKey{kindOf(v.ref).GroupKind(), v.ref.Key()})
	for _, o := range about {
		all := append(g.news[o], news{seq, g.taps.journal.Elapsed()})
		g.news[o] = all[max(0, len(all)-manyNews):]
	}
}

// ownersOf returns the owners of an object. An owner in no namespace has the object's here, too.
func ownersOf(v version) []objectKey {
	var owners []objectKey
	if !bytes.Contains(v.raw, []byte(`"ownerReferences"`)) {
		return nil // without parsing: most have none
	}
	for _, o := range trace.ReadMeta(v.raw).Owners {
		kind := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind()
		owners = append(owners, objectKey{kind, trace.Key{Namespace: v.ref.Namespace, Name: o.Name}})
		if v.ref.Namespace != "" {
			owners = append(owners, objectKey{kind, trace.Key{Name: o.Name}})
		}
	}
	return owners
}

// conclude finds the reconcile that the request belongs to. An informer's list and watch belong to none.
func (x *exchange) conclude(object trace.Ref, planned version) {
	if x.verb == trace.VerbList && x.req.URL.Query().Has("resourceVersion") {
		return
	}
	last := x.taps.lastKnown(kindOf(object), object.Namespace, object.Name)
	owners := append(ownersOf(planned), ownersOf(last)...)
	r, sure := x.to.logged.reconcileOf(asked{x.verb, x.target.GroupResource()}, object, owners)
	x.reconcile, x.probably = r, r != nil && !sure
	if sure { // a fault that happens to the request names it
		x.req = x.req.WithContext(context.WithValue(x.req.Context(), reconcileKey{}, r))
	}
}

// reconcileOf returns the reconcile that a request about an object belongs to, and whether that is sure: it is the only one
// that is open, and such requests are not made outside of reconciles. Otherwise it is the only one that fits, if there is one.
func (g *logged) reconcileOf(request asked, object trace.Ref, owners []objectKey) (r *runningReconcile, sure bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.open) == 0 {
		g.outside[request] = true
		return nil, false
	}
	self := objectKey{kindOf(object).GroupKind(), object.Key()}
	for _, fits := range []func(*loggedReconcile) bool{
		func(*loggedReconcile) bool { return true },
		func(r *loggedReconcile) bool { return r.object == self },
		func(r *loggedReconcile) bool { return slices.Contains(owners, r.object) },
		func(r *loggedReconcile) bool { return r.key.Namespace == object.Namespace },
	} {
		var found []*loggedReconcile
		for _, r := range g.open {
			if fits(r) {
				found = append(found, r)
			}
		}
		if len(found) == 1 {
			return found[0].runningReconcile, len(g.open) == 1 && !g.outside[request]
		}
	}
	return nil, false
}
