package lab

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestAwaitDone checks what an operator has to do with an event before the next one comes: hear of it, reconcile, and once more if an
// error asks for that soon. An event of a kind that it does not watch is not waited for.
func TestAwaitDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := trace.New(trace.Options{})
		e := &effects{lab: &Lab{}, epoch: &epoch{journal: journal}}
		e.lab.epoch = e.epoch
		e.AwaitDone(t.Context(), "singer", "Song", "5")

		heard := trace.Event{Kind: trace.KindWatch, Verb: trace.Modified, Operator: "singer", Object: trace.Ref{Kind: "Song", Name: "a", UID: "u"}}
		see := func(version string) int64 {
			heard.ResourceVersion = version
			return journal.Append(heard)
		}
		loop := func(kind trace.Kind, with trace.Event) int64 {
			with.Kind, with.Operator, with.Controller, with.Key = kind, "singer", "song", trace.Key{Namespace: "ns", Name: "a"}
			return journal.Append(with)
		}
		loop(trace.KindDrop, trace.Event{Cause: see("4")})
		done := make(chan struct{})
		go func() {
			e.AwaitDone(t.Context(), "singer", "Song", "5")
			close(done)
		}()
		still := func(what string) {
			t.Helper()
			synctest.Wait()
			select {
			case <-done:
				t.Fatalf("it is done when %s", what)
			default:
			}
		}
		still("it has not heard")
		seq := see("5")
		still("its controller has not taken it up")
		seq = loop(trace.KindEnqueue, trace.Event{Cause: seq})
		still("a key is ready")
		reconcile := func(cause int64) int64 {
			id := journal.NewReconcile()
			seq := loop(trace.KindStart, trace.Event{Reconcile: id, Cause: loop(trace.KindDequeue, trace.Event{Reconcile: id, Cause: cause})})
			still("it reconciles")
			return loop(trace.KindEnd, trace.Event{Reconcile: id, Cause: seq})
		}
		seq = loop(trace.KindRequeue, trace.Event{Cause: reconcile(seq), Delay: soon / 2, Reason: trace.ReasonBackoff})
		for range retries {
			time.Sleep(soon / 4) //nolint:forbidigo // in a bubble
			still("it tries again soon")
			time.Sleep(soon / 4) //nolint:forbidigo // in a bubble
			seq = loop(trace.KindReady, trace.Event{Cause: seq})
			seq = loop(trace.KindRequeue, trace.Event{Cause: reconcile(seq), Delay: soon / 2, Reason: trace.ReasonBackoff})
		}
		<-done // it is not waited for again and again

		// Two controllers watch the kind: one has dropped the event, and the other one makes a key while its taps are asked.
		seq = see("6")
		loop(trace.KindDrop, trace.Event{Cause: seq})
		taps := &lastToHear{hear: func() { seq = loop(trace.KindEnqueue, trace.Event{Cause: seq}) }}
		e.epoch.supervisors = map[string]*supervisor{"singer": {taps: taps}}
		done = make(chan struct{})
		go func() {
			e.AwaitDone(t.Context(), "singer", "Song", "6")
			close(done)
		}()
		still("the other controller has made a key")
		reconcile(seq)
		<-done

		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if e.AwaitDone(limited, "singer", "Song", "7"); limited.Err() == nil {
			t.Error("it has not heard of an event, and that was not waited for")
		}
	})
}

// lastToHear are taps of which one controller hears of an event when they are asked for the first time.
type lastToHear struct {
	Taps
	hear func()
}

func (l *lastToHear) Delivering() bool {
	if l.hear != nil {
		l.hear()
		l.hear = nil
	}
	return false
}
