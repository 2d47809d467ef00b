package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

// seenPatience limits the wait for the operator to see an object: it may not watch the kind.
const seenPatience = 2 * time.Second

// awaitSeen returns when the operator has seen the objects of the scenario as they are.
func (h *playHooks) awaitSeen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, seenPatience)
	defer cancel()
	for _, kind := range h.kindsOf() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if h.Reader.List(ctx, list, client.InNamespace(h.outcome.namespace)) != nil {
			continue // what cannot be listed is not compared either
		}
		for i := range list.Items {
			await(ctx, h.outcome.journal, 0, func(e *trace.Event) bool { return isVersion(e, &list.Items[i]) })
		}
	}
}

// isVersion reports whether an event tells of an object as it is, or as it became later.
func isVersion(e *trace.Event, o *unstructured.Unstructured) bool {
	if e.Object.UID != string(o.GetUID()) || e.Kind != trace.KindWatch {
		return false
	}
	return isNewer(e.ResourceVersion, o.GetResourceVersion())
}

// isNewer reports whether a version of an object is another one, or a later one.
func isNewer(version, than string) bool {
	newer, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && newer >= 0
}

// How long a scenario may take to settle; keys whose timers run out later than soon do not count; for one that has run out, and that
// the operator has not taken yet, soonest is waited; and how many reconciles without a write an operator that only looks around has
// settled after.
const (
	settlePatience = 20 * time.Second
	soon           = time.Second
	soonest        = 5 * time.Millisecond
	idleRounds     = 3
)

// settle returns when the operator serves, also after a crash, and has nothing more to do: its queue is empty, what it
// wrote has come back, and timers that run out soon have run out without a write. Events of the kind held do not come.
func (h *playHooks) settle(ctx context.Context, test *format.Test, held string) error {
	setup, err := h.Selection.Setup(test)
	if err != nil {
		return err
	}
	journal := h.Lab.Journal()
	ctx, cancel := context.WithTimeoutCause(ctx, settlePatience, fmt.Errorf("the operator is still at work after %v", settlePatience))
	defer cancel()
	pods := &stillness{reader: h.Reader, namespace: h.outcome.namespace}
	var before work
	for idle := 0; ; {
		since := journal.Stats().Last
		for _, name := range setup.Operators {
			if _, err := h.Lab.Load(ctx, name, setup.Spec); err != nil { // it is loaded: this waits until it serves
				return err
			}
		}
		if err := operatorhost.AwaitQuiet(ctx, journal, held); err != nil {
			return context.Cause(ctx)
		}
		if slices.ContainsFunc(journal.Since(since), func(e *trace.Event) bool { return e.Kind == trace.KindOperator }) {
			continue // it was quiet because it died: its next life has not begun yet
		}
		timeline := trace.NewTimeline(journal)
		timeline.Update()
		due, waits := nextTimer(timeline.Tip(), journal.Elapsed())
		now := workIn(journal)
		switch {
		case now.writes != before.writes:
			idle = 0
		case now.reconciles != before.reconciles:
			idle++
		}
		if before = now; !waits || idle > idleRounds {
			if !hasWorkloads(journal, h.outcome.namespace) {
				return nil
			}
			last := journal.Stats().Last
			was, err := h.awaitStill(ctx, pods)
			if err != nil {
				return err
			}
			if was && (idle > idleRounds || journal.Stats().Last == last) {
				return nil
			}
			if !was {
				idle = 0
			}
			continue
		}
		select {
		case <-time.After(max(due, soonest)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// nextTimer returns the time until the first timer of a key runs out; false if none does soon.
func nextTimer(s *trace.State, now time.Duration) (time.Duration, bool) {
	for _, item := range s.Queue() { // those that wait are sorted by time
		if !item.Ready {
			left := max(0, item.Due-now)
			return left, left <= soon
		}
	}
	return 0, false
}

// work counts what an operator has done.
type work struct{ writes, reconciles int }

func workIn(journal *trace.Journal) (w work) {
	for _, e := range journal.Since(0) {
		if isWrite(e) {
			w.writes++
		}
		if e.Kind == trace.KindEnd {
			w.reconciles++
		}
	}
	return w
}

// isWrite reports whether an event is a write that changed something.
func isWrite(e *trace.Event) bool {
	return e.Kind == trace.KindCall && e.IsWrite() && !e.NoOp && e.Error == ""
}

// awaitCollected returns when Kubernetes has deleted what belonged to objects that somebody deleted.
func awaitCollected(ctx context.Context, c client.Reader, o *outcome) error {
	if len(o.gone) == 0 {
		return nil
	}
	err := wait.PollUntilContextTimeout(ctx, goneEvery, settlePatience, true, func(ctx context.Context) (bool, error) {
		all, err := objects(ctx, c, o.journal, o.namespace)
		return !slices.ContainsFunc(all, func(object unstructured.Unstructured) bool {
			return slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return slices.Contains(o.gone, r.UID) })
		}), err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil // it is seen in the end
	}
	return err
}

// awaitHeard returns when the operator has heard of a change of an object after an event, or has not for a while: it may not
// watch the kind.
func awaitHeard(ctx context.Context, journal *trace.Journal, o *unstructured.Unstructured, after int64) {
	ctx, cancel := context.WithTimeout(ctx, seenPatience)
	defer cancel()
	await(ctx, journal, after, func(e *trace.Event) bool {
		return e.Kind == trace.KindWatch && e.Object.UID == string(o.GetUID())
	})
}

// await returns true when a journal has a certain event after another one, or false when the context ends.
func await(ctx context.Context, journal *trace.Journal, after int64, is func(e *trace.Event) bool) bool {
	grown, cancel := journal.Subscribe()
	defer cancel()
	for {
		for _, e := range journal.Since(after) {
			if after = e.Seq; is(e) {
				return true
			}
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return false
		}
	}
}
