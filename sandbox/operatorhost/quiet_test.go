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

// TestOnItsWay checks that it is not quiet while a controller has not taken up a watch event, or what a write without a change found
// was not seen.
func TestOnItsWay(t *testing.T) {
	word := trace.Ref{Kind: "Zundoko", Name: "one", UID: "u"}
	for name, before := range map[string]trace.Event{
		"event":   {Kind: trace.KindWatch, Verb: trace.Modified, Object: word, ResourceVersion: "2"},
		"version": {Kind: trace.KindCall, Verb: trace.VerbUpdate, Object: word, ResourceVersion: "2", NoOp: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := trace.New(trace.Options{})
				see := func(version string) {
					seq := j.Append(trace.Event{Kind: trace.KindWatch, Verb: trace.Modified, Object: word, ResourceVersion: version})
					j.Append(trace.Event{Kind: trace.KindDrop, Cause: seq})
				}
				see("1")
				began := time.Now()
				if err := operatorhost.AwaitQuiet(t.Context(), j); err != nil || time.Since(began) > 0 {
					t.Fatalf("%v after %v", err, time.Since(began))
				}
				seq := j.Append(before)
				time.AfterFunc(time.Second, func() {
					if before.Kind == trace.KindWatch {
						j.Append(trace.Event{Kind: trace.KindDrop, Cause: seq})
					} else {
						see("2")
					}
				})
				if err := operatorhost.AwaitQuiet(t.Context(), j); err != nil || time.Since(began) != time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
		})
	}
}

// TestMissedVersion checks that nobody waits for the watch event of a write when that of a later version of the object has come, and
// that it is waited for when that was another object of the name.
func TestMissedVersion(t *testing.T) {
	for name, later := range map[string]struct {
		uid  string
		want time.Duration
	}{"the same object": {uid: "u"}, "another one of its name": {uid: "v", want: 2 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := trace.New(trace.Options{})
				write := func(version string) {
					j.Append(trace.Event{
						Kind: trace.KindCall, Verb: trace.VerbUpdate, Object: trace.Ref{Kind: "Zundoko", Name: "one", UID: "u"}, ResourceVersion: version,
					})
				}
				see := func(uid, version string) {
					seq := j.Append(trace.Event{
						Kind: trace.KindWatch, Verb: trace.Modified, Object: trace.Ref{Kind: "Zundoko", Name: "one", UID: uid}, ResourceVersion: version,
					})
					j.Append(trace.Event{Kind: trace.KindDrop, Cause: seq})
				}
				see("u", "7")
				write("8")
				write("9")
				see(later.uid, "10")
				began := time.Now()
				if err := operatorhost.AwaitQuiet(t.Context(), j); err != nil || time.Since(began) != later.want {
					t.Errorf("%v after %v, want %v", err, time.Since(began), later.want)
				}
			})
		})
	}
}

// TestHeldByAPause checks that a ready key is not quiet while its operator may take it, and that [operatorhost.AwaitQuiet]
// waits for it also while the operator is paused.
func TestHeldByAPause(t *testing.T) {
	type wait = func(context.Context, *trace.Journal, ...string) error
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
		{"quiet, paused", operatorhost.AwaitQuiet, "zundoko", false, context.DeadlineExceeded},
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
