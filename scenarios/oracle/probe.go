package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// apart is longer than one second, the resolution of Kubernetes' timestamps, so that an operator that stores the time
// at each reconcile is seen to write.
const apart = 1100 * time.Millisecond

// onceMore reconciles every idle key once more, and reports what that changed. If something changed, it probes a second
// time: the first reconcile may have read a change elsewhere before its event was delivered.
func (w *Witness) onceMore(ctx context.Context) []report.Finding {
	found, _ := w.probe(ctx)
	if len(found) == 0 {
		return nil
	}
	select {
	case <-time.After(apart):
	case <-ctx.Done():
		return found
	}
	if again, asked := w.probe(ctx); asked {
		return again
	}
	return found
}

// probe reconciles every idle key once more. It reports what that changed, and whether any key was probed.
func (w *Witness) probe(ctx context.Context) (found []report.Finding, asked bool) {
	timeline := trace.NewTimeline(w.Journal)
	timeline.Update()
	before := timeline.Tip().Seq()
	probed := false
	for _, key := range sortedKeys(timeline.Tip()) {
		if loop := w.Loops[key.Operator]; loop != nil && key.Controller != "" && !failing(timeline.Tip(), key) {
			probed = loop.Probe(key.Controller, key.Key) || probed
		}
	}
	if !probed || !w.rest(ctx) {
		return nil, false
	}
	timeline.Update()
	for _, reconcile := range timeline.Tip().Reconciles() {
		if reconcile.First > before && isProbe(reconcile) {
			found = append(found, changes(reconcile)...)
		}
	}
	return found, true
}

// failing reports whether the newest reconcile of a key ended with an error, so that the key has not converged.
func failing(s *trace.State, key trace.QueueKey) bool {
	failed := false
	for _, reconcile := range s.Reconciles() {
		if reconcile.Operator == key.Operator && reconcile.Controller == key.Controller && reconcile.Key == key.Key && !reconcile.Running() {
			failed = reconcile.End.Error != ""
		}
	}
	return failed
}

func isProbe(reconcile *trace.Reconcile) bool {
	return len(reconcile.Woken) == 1 && reconcile.Woken[0].Reason == trace.ReasonProbe
}

func lines(object json.RawMessage) []string {
	return trace.YAMLLines(object, trace.YAMLStyle{Omit: []string{"resourceVersion", "generation", "uid", "creationTimestamp"}})
}

// diffBound bounds the time for the diff of two objects; see [trace.Diff].
const diffBound = 1 << 20

func changes(reconcile *trace.Reconcile) []report.Finding {
	var found []report.Finding
	for _, e := range reconcile.Calls() {
		if !e.IsWrite() || e.NoOp || e.Error != "" || e.Via == trace.ViaRecorder {
			continue
		}
		f := report.Finding{Message: fmt.Sprintf("%s had nothing to do, and one more reconcile wrote: %s %s", loopText(reconcile), e.Verb, e.Object)}
		for _, line := range trace.NearChanges(trace.Diff(lines(e.Before), lines(e.After), diffBound), 1) {
			f.Details = append(f.Details, string(line.Op)+" "+line.Text)
		}
		found = append(found, f)
	}
	return found
}

// counts compares what the operators created and deleted with the reference.
func (w *Witness) counts() []report.Finding {
	want, err := format.ParseCounts(w.Reference)
	if err != nil {
		return []report.Finding{{Message: err.Error()}}
	}
	got := w.done()
	var found []report.Finding
	for _, c := range want {
		if got[c.What] != c.N {
			found = append(found, report.Finding{Message: fmt.Sprintf("%s: %d times, the reference says %d", c.What, got[c.What], c.N)})
		}
	}
	return found
}

// done counts the operators' creations and deletions by verb and kind.
func (w *Witness) done() map[string]int {
	got := map[string]int{}
	created := map[string]bool{} // by UID
	for _, e := range w.writes() {
		verb := e.Verb
		if creates(e) {
			if created[e.Object.UID] {
				continue
			}
			created[e.Object.UID] = true
			verb = trace.VerbCreate
		}
		got[verb+" "+e.Object.Kind]++
	}
	return got
}

// writes returns the operators' successful writes in order, including those whose result an operator never learned
// because a fault ended it or dropped the reply.
func (w *Witness) writes() []*trace.Event {
	var writes []*trace.Event
	for _, e := range w.Journal.Since(0) {
		if e.Kind == trace.KindCall && e.Error == "" && trace.IsWriteVerb(e.Verb) && e.Via == "" && w.Loops[e.Operator] != nil {
			writes = append(writes, e)
		}
	}
	return writes
}

// creates reports whether a write created an object. An apply may do so; the API server's status says so.
func creates(e *trace.Event) bool {
	return e.Verb == trace.VerbCreate || e.Verb == trace.VerbApply && e.Status == http.StatusCreated
}

// leaks finds objects that operators created and that still exist after the garbage collector had its time.
func (w *Witness) leaks(ctx context.Context) []report.Finding {
	ctx, cancel := context.WithTimeout(ctx, goneAfter)
	defer cancel()
	var left []report.Finding // from the last complete look; the next may be interrupted
	for {
		now, err := w.left(ctx)
		if err == nil {
			left = now
		}
		if err == nil && len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			if err != nil && len(left) == 0 {
				return []report.Finding{{Message: "nobody can tell whether something is left: " + err.Error()}}
			}
			return left
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// left finds the objects created by operators that exist now.
func (w *Witness) left(ctx context.Context) ([]report.Finding, error) {
	var found []report.Finding
	looked := map[string]bool{} // by UID
	for _, e := range w.writes() {
		if !creates(e) || e.Object.UID == "" || e.Object.Kind == "Event" || looked[e.Object.UID] {
			continue
		}
		looked[e.Object.UID] = true
		there, err := w.exists(ctx, e.Object)
		if err != nil {
			return found, err
		}
		if there {
			found = append(found, report.Finding{Message: fmt.Sprintf(
				"%s in namespace %s, made by %s in reconcile #%d, is still there", e.Object, orNone(e.Object.Namespace), e.Operator, e.Reconcile)})
		}
	}
	return found, nil
}

func orNone(namespace string) string {
	if namespace == "" {
		return "none"
	}
	return namespace
}

// exists reports whether the object with this UID exists.
func (w *Witness) exists(ctx context.Context, ref trace.Ref) (bool, error) {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	err := w.Reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, o)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return true, err
	}
	return string(o.UID) == ref.UID, nil
}
