// Package oracle checks operators at the end of every scenario against rules that hold for all operators: a converged
// object is left alone, no loop is hot, nothing panics, nothing leaks.
package oracle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// The names of the oracles, by which they can be switched off. A new one must be added to [format.Oracles] too, and to the
// table in scenarios/README.md.
const (
	// Idempotent: one more reconcile of a converged object changes nothing.
	Idempotent = "idempotent"
	// HotLoop: no loop wakes itself without end.
	HotLoop = "hot-loop"
	// Panic: no reconcile panics.
	Panic = "panic"
	// Leak: when the objects of the scenario are deleted, the objects that the operator created for them are gone too.
	Leak = "leak"
	// LiveDelete: the operator deletes nothing that is still wanted.
	LiveDelete = "live-delete"
	// ObservedGeneration: when the loop is idle, no status observed an older generation than its object has.
	ObservedGeneration = "observed-generation"
	// Counts: the operator created and deleted as many objects as the reference says.
	Counts = "counts"
)

// Prober puts a key into the queue of a running operator's controller and reports whether there is such a controller;
// *[taps.Taps] is one.
type Prober interface {
	Probe(controller string, key trace.Key) bool
}

// Witness gives the oracles access to one scenario.
type Witness struct {
	// Journal is the journal of the scenario, from before its first step.
	Journal *trace.Journal
	// Reader reads the cluster without a cache.
	Reader client.Reader
	// Loops are the taps of the running operators, by operator.
	Loops map[string]Prober
	// Off are the names of the oracles that are switched off.
	Off map[string]bool
	// Reference is the total number of objects that the operator creates and deletes, such as "create Zundoko=5, create Kiyoshi=1". Default:
	// Counts is not checked.
	Reference string
}

// How long to wait for a loop to become idle, and for the garbage collector. Programs in pods may take a while to end:
// a leader of etcd looks for a successor for six seconds when all other members are ending too.
const (
	restPatience = 3 * time.Second
	goneAfter    = 15 * time.Second
)

// Settled checks the oracles after the steps, while all objects still exist. passed reports whether the steps passed;
// after a failure only problems that are independent of the steps are reported.
func (w *Witness) Settled(ctx context.Context, passed bool) []report.Finding {
	resting := w.rest(ctx)
	timeline := trace.NewTimeline(w.Journal)
	timeline.Update()
	var found []report.Finding
	found = w.ask(found, Panic, func() []report.Finding { return panics(timeline.Tip()) })
	found = w.ask(found, HotLoop, func() []report.Finding { return hotLoops(timeline.Tip()) })
	found = w.ask(found, LiveDelete, func() []report.Finding { return liveDeletes(w.Journal.Since(0)) })
	if !passed {
		return found
	}
	if resting {
		found = w.ask(found, ObservedGeneration, func() []report.Finding { return lagging(timeline.Tip()) })
	}
	found = w.ask(found, Counts, w.counts)
	if len(found) == 0 {
		found = w.ask(found, Idempotent, func() []report.Finding { return w.onceMore(ctx) })
	}
	return found
}

// Cleaned checks for leaks after the scenario's objects are deleted.
func (w *Witness) Cleaned(ctx context.Context) []report.Finding {
	return w.ask(nil, Leak, func() []report.Finding { return w.leaks(ctx) })
}

func (w *Witness) ask(found []report.Finding, name string, judge func() []report.Finding) []report.Finding {
	if w.Off[name] {
		return found
	}
	for _, f := range judge() {
		f.Oracle = name
		found = append(found, f)
	}
	return found
}

// rest waits until the loops are idle, and reports whether they became so.
func (w *Witness) rest(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, restPatience)
	defer cancel()
	return operatorhost.AwaitQuiet(ctx, w.Journal) == nil
}

func panics(s *trace.State) []report.Finding {
	var found []report.Finding
	for _, reconcile := range s.Reconciles() {
		if reconcile.Outcome() != trace.OutcomePanic {
			continue
		}
		f := report.Finding{Message: fmt.Sprintf("reconcile #%d of %s panicked: %s", reconcile.ID, loopText(reconcile), firstLine(strings.TrimPrefix(reconcile.End.Error, "panic: ")))}
		for _, log := range reconcile.Logs() {
			if log.Stack != "" {
				f.Details = strings.Split(strings.TrimSpace(log.Stack), "\n")
			}
		}
		found = append(found, f)
	}
	return found
}

func loopText(reconcile *trace.Reconcile) string {
	return reconcile.Controller + " " + reconcile.Key.String()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func hotLoops(s *trace.State) []report.Finding {
	var found []report.Finding
	for _, key := range sortedKeys(s) {
		hot, is := s.Hot(key)
		if !is {
			continue
		}
		f := report.Finding{Message: fmt.Sprintf("%s %s wakes itself without end: each of its last %d reconciles was brought about by its own write to %s",
			key.Controller, key.Key, hot.Reconciles, hot.Object)}
		if hot.Field != "" {
			f.Details = []string{"the field that differs each time: " + hot.Field + " (" + strings.Join(hot.Values, ", ") + ")"}
		}
		found = append(found, f)
	}
	return found
}

func sortedKeys(s *trace.State) []trace.QueueKey {
	keys := make([]trace.QueueKey, 0, len(s.Keys()))
	for key := range s.Keys() {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b trace.QueueKey) int {
		return strings.Compare(a.Operator+"\x00"+a.Controller+"\x00"+a.Key.String(), b.Operator+"\x00"+b.Controller+"\x00"+b.Key.String())
	})
	return keys
}

// lagging finds reconciled objects whose status, or a condition of it, observed an older generation.
func lagging(s *trace.State) []report.Finding {
	reconciled := map[trace.Key]bool{}
	for key := range s.Keys() {
		if !s.ModeOf(key.Operator).Gated { // of others it is not known whether the key waits
			reconciled[key.Key] = true
		}
	}
	var found []report.Finding
	for _, o := range s.Objects() {
		meta := o.Meta()
		if o.Deleted || meta.Deleting || !reconciled[o.Ref.Key()] || len(meta.Owners) > 0 {
			continue
		}
		if o.Lagging() {
			found = append(found, report.Finding{Message: fmt.Sprintf("%s is of generation %d, its status has observed only %d",
				o.Ref, o.Generation, meta.ObservedGeneration)})
		}
		for _, c := range meta.Conditions {
			if c.ObservedGeneration != 0 && c.ObservedGeneration < o.Generation {
				found = append(found, report.Finding{Message: fmt.Sprintf("%s is of generation %d, its condition %s has observed only %d",
					o.Ref, o.Generation, c.Type, c.ObservedGeneration)})
			}
		}
	}
	return found
}

// liveDeletes finds deletions by an operator of objects that are still wanted: an object that somebody else created and
// nobody is deleting, or one that the operator creates again although nobody changed anything in between.
func liveDeletes(events []*trace.Event) []report.Finding {
	type maker struct{ operator string }
	made := map[string]maker{}           // by UID
	deleted := map[string]*trace.Event{} // by kind and name: the operator's own deletion
	known := map[string]bool{}           // versions that the operator has written or has seen already
	for _, e := range events {
		if e.Kind == trace.KindCall && e.Operator != "" && e.IsWrite() {
			known[e.ResourceVersion] = true
		}
	}
	var found []report.Finding
	for _, e := range events {
		if e.Kind == trace.KindWatch {
			// Somebody else's write, also one that nobody recorded. An older view repeats what was seen before; the
			// ConfigMap that Kubernetes makes in each namespace is no reason for anything.
			if !known[e.ResourceVersion] && e.Object.Name != "kube-root-ca.crt" {
				maps.DeleteFunc(deleted, func(name string, d *trace.Event) bool {
					return name != e.Object.Kind+" "+e.Object.Key().String() && (e.Object.Namespace == "" || e.Object.Namespace == d.Object.Namespace)
				})
			}
			known[e.ResourceVersion] = true
			continue
		}
		if e.Kind == trace.KindFault && e.Fault().Kind == trace.FaultStale && e.Fault().Detail != "Over" {
			clear(deleted) // what is made again after this, an older view asks for
		}
		if e.Kind != trace.KindCall || !e.IsWrite() || e.Error != "" || e.Via == trace.ViaRecorder || e.Probably {
			continue
		}
		name := e.Object.Kind + " " + e.Object.Key().String()
		switch {
		case e.Operator == "" || e.Actor != e.Operator: // somebody else's write: it may be the reason for what follows
			clear(deleted)
		case e.Verb == trace.VerbCreate:
			made[e.Object.UID] = maker{e.Operator}
			if d := deleted[name]; d != nil && d.Reconcile != e.Reconcile {
				found = append(found, report.Finding{Message: fmt.Sprintf(
					"%s deleted %s in reconcile #%d and made it again in #%d, and nobody else wrote anything in between", e.Operator, e.Object, d.Reconcile, e.Reconcile)})
			}
			delete(deleted, name)
		case e.Verb == trace.VerbDelete:
			deleted[name] = e
			if _, own := made[e.Object.UID]; !own && e.Object.UID != "" && isOthers(e) {
				found = append(found, report.Finding{Message: fmt.Sprintf(
					"%s deleted %s in reconcile #%d, which it has not made and which nobody was deleting", e.Operator, e.Object, e.Reconcile)})
			}
		}
	}
	return found
}

// isOthers reports whether a deleted object was not being deleted before and had no controller.
func isOthers(e *trace.Event) bool {
	o := trace.ReadMeta(e.Before)
	if o.Deleting || e.Before == nil {
		return false
	}
	return !slices.ContainsFunc(o.Owners, func(owner trace.Owner) bool { return owner.Controller })
}
