package lab

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// loops computes the Loop objects of a journal.
type loops struct {
	mu       sync.Mutex
	start    time.Time
	timeline *trace.Timeline
	known    map[trace.QueueKey]*tally
	made     []v1alpha1.Loop // computed from the events up to Seq
	seq      int64
}

// tally holds what a Loop keeps while it exists, and counts that the journal's counters do not have.
type tally struct {
	uid                      types.UID
	created                  metav1.Time
	requeues, panics, failed int64
	items, dropped           int64
	logs                     []v1alpha1.LoopLog
}

// maxLogs bounds how many different log messages of a key are kept.
const maxLogs = 32

func newLoops(journal *trace.Journal) *loops {
	return &loops{
		start: journal.Header().Start, timeline: trace.NewTimeline(journal), known: map[trace.QueueKey]*tally{},
	}
}

func (l *loops) update() {
	for _, e := range l.timeline.Update() {
		if e.Operator == "" || e.Controller == "" || l.timeline.Tip().ModeOf(e.Operator).Gated { // whose queue is not known
			continue
		}
		if e.Kind == trace.KindDrop { // it put no key into the queue; counted only for known keys
			if t := l.known[trace.QueueKey{Operator: e.Operator, Controller: e.Controller, Key: e.Object.Key()}]; t != nil {
				t.dropped++
			}
			continue
		}
		if e.Key.IsZero() {
			continue
		}
		key := trace.QueueKey{Operator: e.Operator, Controller: e.Controller, Key: e.Key}
		if l.known[key] == nil {
			l.known[key] = &tally{uid: uuid.NewUUID(), created: metav1.NewTime(l.start.Add(e.At))}
		}
		l.known[key].count(e)
	}
}

func (t *tally) count(e *trace.Event) {
	switch {
	case e.Kind == trace.KindEnd && e.Outcome == trace.OutcomePanic:
		t.panics++
	case e.Kind == trace.KindEnd && (e.Outcome == trace.OutcomeRequeue || e.Outcome == trace.OutcomeRequeueAfter):
		t.requeues++
	case e.Kind == trace.KindLog:
		t.log(e)
	case e.Kind == trace.KindCall && e.IsWrite() && e.Failed():
		t.failed++
	case e.Kind == trace.KindCall && e.Verb == trace.VerbList && e.Error == "":
		t.items += int64(e.Count)
	case e.Kind == trace.KindCall && e.Verb == trace.VerbGet && e.Error == "":
		t.items++
	}
}

func (t *tally) log(e *trace.Event) {
	i := slices.IndexFunc(t.logs, func(l v1alpha1.LoopLog) bool { return l.Message == e.Message && l.Error == (e.Error != "") })
	switch {
	case i >= 0:
		t.logs[i].Times++
	case len(t.logs) < maxLogs:
		t.logs = append(t.logs, v1alpha1.LoopLog{Message: e.Message, Times: 1, Error: e.Error != ""})
	}
}

// all returns the current Loops, ordered by operator, controller and key.
func (l *loops) all() []v1alpha1.Loop {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.update()
	state := l.timeline.Tip()
	if l.made != nil && l.seq == state.Seq() {
		return slices.Clone(l.made)
	}
	busy := busyKeys(state)
	last, hot := lastReconciles(state), state.HotLoops()
	keys := slices.SortedFunc(maps.Keys(l.known), func(a, b trace.QueueKey) int {
		return cmp.Or(cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Controller, b.Controller),
			cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	out := make([]v1alpha1.Loop, 0, len(keys))
	for _, key := range keys {
		loop := v1alpha1.Loop{
			ObjectMeta: metav1.ObjectMeta{
				Name: LoopName(key.Controller, key.Key.Name), Namespace: key.Key.Namespace,
				UID: l.known[key].uid, CreationTimestamp: l.known[key].created,
			},
			Spec: v1alpha1.LoopSpec{Operator: key.Operator, Controller: key.Controller, Key: key.Key.String()},
		}
		l.known[key].describe(&loop.Status, state.Keys()[key])
		loop.Status.Quiet = !busy[key]
		describeLast(&loop.Status, state, last[key])
		if h, is := hot[key]; is {
			loop.Status.Hot = true
			loop.Status.HotField = strings.TrimSuffix(h.Object.Kind+"."+h.Field, ".")
		}
		out = append(out, loop)
	}
	l.made, l.seq = out, state.Seq()
	return slices.Clone(out)
}

// LoopsIn returns the Loops of a recorded journal, as they were served at its end.
func LoopsIn(journal *trace.Journal) []v1alpha1.Loop { return newLoops(journal).all() }

// LoopName returns the name of the Loop for a controller and the name of a key.
func LoopName(controller, name string) string { return strings.ToLower(controller) + "." + name }

func (t *tally) describe(status *v1alpha1.LoopStatus, c *trace.Counters) {
	if c == nil {
		return
	}
	status.Reconciles = int64(c.Reconciles)
	status.Errors, status.Conflicts, status.Panics = int64(c.Errors), int64(c.Conflicts), t.panics
	status.Requeues = t.requeues
	status.Reads = v1alpha1.LoopReads{Cache: int64(c.CacheReads), Server: int64(c.ServerReads), Items: t.items}
	status.Logs = slices.Clone(t.logs)
	status.Events = v1alpha1.LoopEvents{Merged: int64(c.Merged), Dropped: t.dropped}
	status.Writes = v1alpha1.LoopWrites{
		Total: int64(c.Writes), NoOp: int64(c.NoOps), Failed: t.failed,
		ByVerb: map[string]int64{}, ByKind: map[string]int64{},
	}
	for what, n := range c.ByVerb {
		verb, kind, _ := strings.Cut(what, " ")
		status.Writes.ByVerb[verb] += int64(n)
		status.Writes.ByKind[kind] += int64(n)
	}
}

// busyKeys returns the keys that are being reconciled, are ready, or wait for a timer.
func busyKeys(state *trace.State) map[trace.QueueKey]bool {
	busy := map[trace.QueueKey]bool{}
	for _, reconcile := range state.Running() {
		busy[trace.QueueKey{Operator: reconcile.Operator, Controller: reconcile.Controller, Key: reconcile.Key}] = true
	}
	for _, item := range state.Queue() {
		busy[item.QueueKey] = true
	}
	return busy
}

// lastReconciles returns the newest finished reconcile of each key.
func lastReconciles(state *trace.State) map[trace.QueueKey]*trace.Reconcile {
	last := map[trace.QueueKey]*trace.Reconcile{}
	for _, reconcile := range state.Reconciles() {
		if !reconcile.Running() {
			last[trace.QueueKey{Operator: reconcile.Operator, Controller: reconcile.Controller, Key: reconcile.Key}] = reconcile
		}
	}
	return last
}

func describeLast(status *v1alpha1.LoopStatus, state *trace.State, reconcile *trace.Reconcile) {
	if reconcile == nil {
		return
	}
	status.Last = v1alpha1.LoopLast{
		Reconcile: reconcile.ID, Outcome: string(reconcile.Outcome()), Again: reconcile.Again, Error: reconcile.End.Error,
		Cause: state.WhyReconcile(reconcile, trace.English),
	}
}

// Explain describes, line by line, what a loop did last about an object: the newest reconcile of the object's own key,
// or of its owner's, or the newest one that wrote the object.
func (l *Lab) Explain(ref trace.Ref) []string {
	l.mu.Lock()
	loops := l.epoch.loops
	l.mu.Unlock()
	loops.mu.Lock()
	defer loops.mu.Unlock()
	loops.update()
	state := loops.timeline.Tip()
	reconcile := concerning(state, ref)
	if reconcile == nil {
		return nil
	}
	lines := []string{fmt.Sprintf("reconcile #%d of %s %s: %s", reconcile.ID, reconcile.Controller, reconcile.Key, outcomeText(reconcile))}
	lines = append(lines, state.WhyReconcile(reconcile, trace.English))
	for _, e := range reconcile.Calls() {
		if e.IsWrite() && e.Via == "" {
			lines = append(lines, writeText(e))
		}
	}
	return lines
}

func outcomeText(reconcile *trace.Reconcile) string {
	switch {
	case reconcile.Running():
		return "is running"
	case reconcile.End.Error != "":
		return string(reconcile.Outcome()) + ": " + reconcile.End.Error
	}
	return string(reconcile.Outcome())
}

func writeText(e *trace.Event) string {
	text := "  " + e.Verb + " " + e.Object.String()
	switch {
	case e.Error != "":
		text += ": " + e.Error
	case e.NoOp:
		text += ": changed nothing"
	case e.Lost:
		text += ": " + trace.LostText(trace.English)
	}
	return text
}

// concerning returns the newest reconcile that concerns an object, or nil.
func concerning(state *trace.State, ref trace.Ref) *trace.Reconcile {
	keys := map[trace.Key]bool{ref.Key(): true}
	if o := state.Object(ref); o != nil {
		for _, owner := range o.Meta().Owners {
			keys[trace.Key{Namespace: ref.Namespace, Name: owner.Name}] = true
		}
	}
	for _, reconcile := range slices.Backward(state.Reconciles()) {
		if keys[reconcile.Key] || wrote(reconcile, ref) {
			return reconcile
		}
	}
	return nil
}

func wrote(reconcile *trace.Reconcile, ref trace.Ref) bool {
	return slices.ContainsFunc(reconcile.Calls(), func(e *trace.Event) bool {
		return e.IsWrite() && e.Object.Kind == ref.Kind && e.Object.Key() == ref.Key()
	})
}
