package operatorhost_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestTrafficDoesNotKeepItWaiting checks that waiting for the watch event of a write is given up, even while a page is
// requested again and again.
func TestTrafficDoesNotKeepItWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := trace.New(trace.Options{})
		word := trace.Ref{Kind: "Zundoko", Name: "lost", UID: "u"}
		j.Append(trace.Event{Kind: trace.KindWatch, Verb: trace.Added, Object: word, ResourceVersion: "1"})
		j.Append(trace.Event{Kind: trace.KindCall, Verb: trace.VerbUpdate, Object: word, ResourceVersion: "2"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			for tick := time.NewTicker(time.Second); ; {
				select {
				case <-tick.C:
					j.Append(trace.Event{Kind: trace.KindTraffic, Verb: trace.VerbAnswer, Message: "Production Page !"})
				case <-ctx.Done():
					return
				}
			}
		}()
		if err := operatorhost.AwaitQuiet(ctx, j); err != nil {
			t.Error(err)
		}
		cancel()
	})
}

// TestUnknownVersion checks that a write which changed nothing is no end, while what it found is not seen yet.
func TestUnknownVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := trace.New(trace.Options{})
		word := trace.Ref{Kind: "Zundoko", Name: "one", UID: "u"}
		j.Append(trace.Event{Kind: trace.KindWatch, Verb: trace.Added, Object: word, ResourceVersion: "1"})
		j.Append(trace.Event{Kind: trace.KindCall, Verb: trace.VerbUpdate, Object: word, ResourceVersion: "1", NoOp: true})
		if err := operatorhost.AwaitQuiet(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		j.Append(trace.Event{Kind: trace.KindCall, Verb: trace.VerbUpdate, Object: word, ResourceVersion: "2", NoOp: true})
		seen := false
		time.AfterFunc(time.Second, func() {
			seen = true
			j.Append(trace.Event{Kind: trace.KindWatch, Verb: trace.Modified, Object: word, ResourceVersion: "2"})
		})
		if err := operatorhost.AwaitQuiet(t.Context(), j); err != nil || !seen {
			t.Errorf("%v, with the event seen: %v", err, seen)
		}
	})
}

// TestHeldByAPause checks that a ready key is not quiet while its operator may take it, and that [operatorhost.AwaitQuiet]
// waits for it also while the operator is paused.
func TestHeldByAPause(t *testing.T) {
	type wait = func(context.Context, *trace.Journal) error
	quiet := func(ctx context.Context, journal *trace.Journal) error { return operatorhost.AwaitQuiet(ctx, journal) }
	for _, test := range []struct {
		name    string
		await   wait
		paused  string
		resumed bool
		want    error
	}{
		{"still, paused", operatorhost.AwaitStill, "zundoko", false, nil},
		{"still, another one paused", operatorhost.AwaitStill, "maintpage", false, context.DeadlineExceeded},
		{"still, resumed", operatorhost.AwaitStill, "zundoko", true, context.DeadlineExceeded},
		{"quiet, paused", quiet, "zundoko", false, context.DeadlineExceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := trace.New(trace.Options{})
				j.Append(trace.Event{Kind: trace.KindControl, Operator: test.paused, Verb: trace.VerbPause})
				if test.resumed {
					j.Append(trace.Event{Kind: trace.KindControl, Operator: test.paused, Verb: trace.VerbResume})
				}
				j.Append(trace.Event{
					Kind: trace.KindEnqueue, Operator: "zundoko", Controller: "hikawa", Key: trace.Key{Namespace: "default", Name: "demo"},
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := test.await(ctx, j); !errors.Is(err, test.want) {
					t.Errorf("the wait ended with %v, want %v", err, test.want)
				}
			})
		})
	}
}
