package operatorhost

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// quietPatience limits the wait, with nothing else happening, for a watch event that may never come because the
// operator stopped watching.
const quietPatience = 2 * time.Second

// AwaitEvent returns true when a journal has a certain event after another one, or false when ctx ends.
func AwaitEvent(ctx context.Context, journal *trace.Journal, after int64, is func(*trace.Event) bool) bool {
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

// AwaitQuiet returns when the operators of a journal have nothing to do now: no reconcile runs, no key is ready, their
// controllers have taken up each watch event, and every write they made has come back as a watch event, if the kind is
// watched. That goes for a write that changed nothing, too: what it found may be an earlier one whose answer was lost.
// Keys that wait for a timer count as quiet. So do operators that ended, or that are paused with nothing ready. Events of
// the kinds in held are not waited for.
func AwaitQuiet(ctx context.Context, journal *trace.Journal, held ...string) error {
	return await(ctx, journal, settled, held...)
}

// AwaitStill returns when the operators of a journal do nothing more unless somebody acts: like AwaitQuiet, but without
// waiting for the ready keys of a paused operator.
func AwaitStill(ctx context.Context, journal *trace.Journal, held ...string) error {
	return await(ctx, journal, IsStill, held...)
}

func await(ctx context.Context, journal *trace.Journal, rests func(*trace.State) bool, held ...string) error {
	changed, cancel := journal.Subscribe()
	defer cancel()
	timeline := trace.NewTimeline(journal)
	echoes := newEchoes(held)
	patience := time.NewTimer(quietPatience)
	defer patience.Stop()
	for {
		events := timeline.Update()
		if slices.ContainsFunc(events, concernsLoops) {
			patience.Reset(quietPatience)
		}
		echoes.note(events)
		if rests(timeline.Tip()) && echoes.complete() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-patience.C:
			if rests(timeline.Tip()) {
				return nil
			}
			patience.Reset(quietPatience)
		}
	}
}

// concernsLoops reports whether an event belongs to the operators, not to periodic traffic.
func concernsLoops(e *trace.Event) bool { return !e.Kind.Beside() }

func settled(s *trace.State) bool {
	return len(s.Running()) == 0 && !slices.ContainsFunc(s.Queue(), func(i *trace.Item) bool { return i.Ready })
}

// IsStill reports whether no reconcile runs, and no key is ready that an operator may take: a paused one may not.
func IsStill(s *trace.State) bool {
	return len(s.Running()) == 0 && !slices.ContainsFunc(s.Queue(), func(i *trace.Item) bool {
		return i.Ready && !s.ModeOf(i.Operator).Paused
	})
}

// echoes matches writes with the watch events that they cause.
type echoes struct {
	held    []string            // kinds whose events do not come
	watched map[string]bool     // kinds that the operator watches, as far as seen
	writes  map[objectID]string // newest resourceVersion of writes without a watch event so far; also of those that found all done
	seen    map[objectID]string // newest resourceVersion of watch events
	// unanswered are watch events, by Seq, of which no controller has made a key or dropped it.
	unanswered map[int64]bool
}

// objectID tells objects apart, also one that was made again under its name.
type objectID struct{ kind, uid string }

func newEchoes(held []string) *echoes {
	return &echoes{held: held, watched: map[string]bool{}, writes: map[objectID]string{}, seen: map[objectID]string{}, unanswered: map[int64]bool{}}
}

func (e *echoes) note(events []*trace.Event) {
	for _, event := range events {
		delete(e.unanswered, event.Cause)
		of := objectID{event.Object.Kind, event.Object.UID}
		switch {
		case event.Kind == trace.KindOperator:
			clear(e.unanswered) // nobody is left to answer
		case event.Kind == trace.KindWatch:
			if event.Via == "" {
				e.unanswered[event.Seq] = true
			}
			e.watched[event.Object.Kind] = true
			if isLater(event.ResourceVersion, e.seen[of]) {
				e.seen[of] = event.ResourceVersion
			}
			if !isLater(e.writes[of], e.seen[of]) { // an earlier version does not come any more: an informer that lists anew has missed it
				delete(e.writes, of)
			}
		case event.Kind == trace.KindCall && event.IsWrite() && event.Via == "" && event.Error == "" && !event.Lost &&
			event.Verb != trace.VerbDelete && event.Verb != trace.VerbDeleteAll && isLater(event.ResourceVersion, e.seen[of]):
			if isLater(event.ResourceVersion, e.writes[of]) {
				e.writes[of] = event.ResourceVersion
			}
		}
	}
}

// isLater reports whether a resourceVersion is a later one than another, which is empty if there is none.
func isLater(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0 || than == "" && version != ""
}

func (e *echoes) complete() bool {
	if len(e.unanswered) > 0 {
		return false
	}
	for of := range e.writes {
		if e.watched[of.kind] && !slices.Contains(e.held, of.kind) {
			return false
		}
	}
	return true
}
