package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/settle"
)

// seenPatience limits the wait for the operator to see an object: it may not watch the kind.
const seenPatience = 2 * time.Second

// awaitSeen returns when the operator has seen the objects of the scenario as they are, of the kinds that it watches, in its current
// life: one that began with an older view hears of them when that is over.
func (h *playHooks) awaitSeen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, seenPatience)
	defer cancel()
	var began int64
	for _, e := range h.outcome.journal.Since(0) {
		if e.Kind == trace.KindOperator && e.Verb == trace.VerbStart {
			began = e.Seq
		}
	}
	for _, kind := range h.kindsOf() {
		if r := h.player.reference; r != nil && !r.watches(kind) {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if h.Reader.List(ctx, list, client.InNamespace(h.outcome.namespace)) != nil {
			continue // what cannot be listed is not compared either
		}
		for i := range list.Items {
			operatorhost.AwaitEvent(ctx, h.outcome.journal, began, func(e *trace.Event) bool { return isVersion(e, &list.Items[i]) })
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

// stuckAfter is how long workloads must not have changed to be taken for stuck.
const stuckAfter = 3 * time.Second

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
	pods := &settle.Workloads{Reader: h.Reader, Namespace: h.outcome.namespace, Patience: stuckAfter}
	var before work
	var delivered time.Duration // how long events have been on their way
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
		timeline := trace.NewTimeline(journal)
		delivering := slices.ContainsFunc(setup.Operators, h.Lab.Delivering)
		timeline.Update() // after that: what comes of the events that all controllers have had is in it
		if delivering && delivered < seenPatience || isBusy(timeline.Tip(), setup.Operators) {
			if delivering {
				delivered += soonest
			}
			if err := pause(ctx, soonest); err != nil {
				return err
			}
			continue
		}
		if slices.ContainsFunc(journal.Since(since), func(e *trace.Event) bool { return e.Kind == trace.KindOperator }) {
			continue // it was quiet because it died
		}
		due, waits := timeline.Tip().NextTimer(journal.Elapsed())
		now := workIn(journal)
		switch {
		case now.writes != before.writes:
			idle = 0
		case now.reconciles != before.reconciles:
			idle++
		}
		if before = now; !waits || due > soon || idle > idleRounds {
			if !settle.HasWorkloads(journal, h.outcome.namespace) {
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
		if err := pause(ctx, max(due, soonest)); err != nil {
			return err
		}
	}
}

// pause waits for a time, or returns why the context ended.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// isBusy reports whether operators have a key to work on, or have died: then the next life has not begun yet.
func isBusy(s *trace.State, operators []string) bool {
	return len(s.Running()) > 0 || slices.ContainsFunc(s.Queue(), func(i *trace.Item) bool { return i.Ready }) ||
		slices.ContainsFunc(operators, func(name string) bool { return s.ModeOf(name).Down })
}

// work counts what an operator has done.
type work struct{ writes, reconciles int }

func workIn(journal *trace.Journal) (w work) {
	for _, e := range journal.Since(0) {
		if settle.IsWrite(e) {
			w.writes++
		}
		if e.Kind == trace.KindEnd {
			w.reconciles++
		}
	}
	return w
}

// awaitCollected returns when Kubernetes has deleted what belonged to objects that are gone.
func awaitCollected(ctx context.Context, c client.Reader, o *outcome) error {
	if len(o.gone) == 0 && !slices.ContainsFunc(o.journal.Since(0), func(e *trace.Event) bool { return e.Kind == trace.KindWatch && e.Verb == trace.Deleted }) {
		return nil
	}
	err := wait.PollUntilContextTimeout(ctx, goneEvery, settlePatience, true, func(ctx context.Context) (bool, error) {
		all, err := objects(ctx, c, o.journal, o.namespace)
		return o.isCollected(all), err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil // it is seen in the end
	}
	return err
}

// isCollected reports whether none of the objects belongs to one that is gone: Kubernetes is about to delete such an object.
func (o *outcome) isCollected(all []unstructured.Unstructured) bool {
	there, kinds := map[types.UID]bool{}, map[kind]bool{}
	for i := range all {
		there[all[i].GetUID()] = true
		kinds[kind{all[i].GetAPIVersion(), all[i].GetKind()}] = true
	}
	for _, e := range o.journal.Since(0) {
		if e.Kind == trace.KindWatch && e.Object.Namespace == o.namespace {
			kinds[kind{e.Object.APIVersion, e.Object.Kind}] = true // of which there may be none any more
		}
	}
	return !slices.ContainsFunc(all, func(object unstructured.Unstructured) bool {
		return slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
			return slices.Contains(o.gone, r.UID) || kinds[kind{r.APIVersion, r.Kind}] && !there[r.UID]
		})
	})
}

// awaitHeard returns when the operator has heard of a change of an object after an event, or has not for a while: it may not
// watch the kind.
func awaitHeard(ctx context.Context, journal *trace.Journal, o *unstructured.Unstructured, after int64) {
	ctx, cancel := context.WithTimeout(ctx, seenPatience)
	defer cancel()
	operatorhost.AwaitEvent(ctx, journal, after, func(e *trace.Event) bool {
		return e.Kind == trace.KindWatch && e.Object.UID == string(o.GetUID())
	})
}

// awaitStill returns true when the workloads are at rest, and the operator has heard so, or false if it had to wait for that: then it
// may have something to do.
func (h *playHooks) awaitStill(ctx context.Context, s *settle.Workloads) (was bool, err error) {
	for was = true; ; was = false {
		still, err := s.AtRest(ctx)
		if err != nil {
			return false, err
		}
		if still {
			break
		}
		if err := pause(ctx, stillEvery); err != nil {
			return false, err
		}
	}
	h.awaitVersions(ctx, h.Lab.Journal(), s.Versions())
	return was, nil
}

// stillEvery is how often the workloads are looked at.
const stillEvery = 50 * time.Millisecond

// awaitVersions returns when the operator has heard of these versions of the objects that it has heard of before, or after a while.
func (h *playHooks) awaitVersions(ctx context.Context, journal *trace.Journal, versions map[types.UID]string) {
	last := map[types.UID]string{}
	for _, e := range journal.Since(0) {
		if e.Kind == trace.KindWatch {
			last[types.UID(e.Object.UID)] = e.ResourceVersion
		}
	}
	ctx, cancel := context.WithTimeout(ctx, seenPatience)
	defer cancel()
	for uid, version := range versions {
		if seen, watched := last[uid]; watched && seen != version {
			operatorhost.AwaitEvent(ctx, journal, 0, func(e *trace.Event) bool {
				return e.Kind == trace.KindWatch && e.Object.UID == string(uid) && isNewer(e.ResourceVersion, version)
			})
		}
	}
}
