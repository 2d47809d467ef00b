package lab

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// script writes the journal of one key.
type script struct {
	journal *trace.Journal
	key     trace.Key
	pass    int64
}

func (s *script) add(e trace.Event) {
	e.Operator, e.Actor, e.Controller, e.Key = "supervisor", "supervisor", "Song", s.key
	s.journal.Append(e)
}

// reconcile records one reconcile that was woken by an event, with its end.
func (s *script) reconcile(cause int64, end trace.Event, calls ...trace.Event) {
	s.pass++
	s.add(trace.Event{Kind: trace.KindEnqueue, Cause: cause})
	s.add(trace.Event{Kind: trace.KindDequeue, Reconcile: s.pass})
	s.add(trace.Event{Kind: trace.KindStart, Reconcile: s.pass})
	for _, e := range calls {
		e.Reconcile = s.pass
		s.add(e)
	}
	end.Kind, end.Reconcile = trace.KindEnd, s.pass
	s.add(end)
}

func (s *script) object() trace.Ref {
	return trace.Ref{APIVersion: "v1", Kind: "Song", Namespace: s.key.Namespace, Name: s.key.Name, UID: "u-" + s.key.Name}
}

func newScript(name string) *script {
	return &script{journal: trace.New(trace.Options{}), key: trace.Key{Namespace: "ns", Name: name}}
}

func only(t *testing.T, l *loops) v1alpha1.Loop {
	t.Helper()
	all := l.all()
	if len(all) != 1 {
		t.Fatalf("there are %d loops: %+v", len(all), all)
	}
	return all[0]
}

// TestHotLoopIsNamed checks that a Loop names the field that the operator flips.
func TestHotLoopIsNamed(t *testing.T) {
	s := newScript("a")
	l := newLoops(s.journal)
	before := json.RawMessage(`{"status":{"on":"never"}}`)
	var cause int64
	for i := range 20 {
		after := json.RawMessage(fmt.Sprintf(`{"status":{"on":%v}}`, i%2 == 0))
		version := fmt.Sprint(i + 1)
		s.reconcile(cause, trace.Event{Outcome: trace.OutcomeDone}, trace.Event{
			Kind: trace.KindCall, Verb: trace.VerbUpdate, Object: s.object(), Before: before, After: after, ResourceVersion: version,
		})
		cause = s.journal.Append(trace.Event{
			Kind: trace.KindWatch, Operator: "supervisor", Verb: trace.Modified, Object: s.object(), ResourceVersion: version, After: after,
		})
		before = after
	}
	loop := only(t, l)
	if !loop.Status.Hot || loop.Status.HotField != "Song.status.on" || !loop.Status.Quiet || loop.Status.Reconciles != 20 {
		t.Errorf("the loop is %+v", loop.Status)
	}
	s.reconcile(0, trace.Event{Outcome: trace.OutcomeDone})
	if cold := only(t, l); cold.Status.Hot || cold.Status.HotField != "" || cold.UID != loop.UID {
		t.Errorf("at its end the loop is %+v", cold.Status)
	}
}

// TestLoopTallies checks the counts that the journal's own counters do not have.
func TestLoopTallies(t *testing.T) {
	s := newScript("a")
	l := newLoops(s.journal)
	drop := trace.Event{Kind: trace.KindDrop, Operator: "supervisor", Controller: "Song", Object: s.object()}
	s.journal.Append(drop) // before the key was in the queue
	read := trace.Event{Kind: trace.KindCall, Source: trace.Cache, Object: s.object()}
	list, get, none := read, read, read
	list.Verb, list.Count = trace.VerbList, 7
	get.Verb = trace.VerbGet
	none.Verb, none.Error, none.Reason = trace.VerbGet, "not found", "NotFound"
	refused := trace.Event{Kind: trace.KindCall, Verb: trace.VerbUpdate, Object: s.object(), Error: "refused", Reason: "Conflict"}
	said := trace.Event{Kind: trace.KindLog, Message: "said"}
	complained := trace.Event{Kind: trace.KindLog, Message: "said", Error: "why"}
	s.reconcile(0, trace.Event{Outcome: trace.OutcomeRequeueAfter}, list, get, none, said)
	s.reconcile(0, trace.Event{Outcome: trace.OutcomeRequeue}, said, complained)
	s.reconcile(0, trace.Event{Outcome: trace.OutcomeError, Error: "refused"}, refused)
	s.reconcile(0, trace.Event{Outcome: trace.OutcomePanic, Error: "panic: a bug"})
	s.journal.Append(drop)
	other := drop
	other.Object.Name = "another"
	s.journal.Append(other)
	s.add(trace.Event{Kind: trace.KindEnqueue})
	status := only(t, l).Status
	if status.Reconciles != 4 || status.Requeues != 2 || status.Errors != 2 || status.Panics != 1 || status.Conflicts != 1 || status.Quiet {
		t.Errorf("the loop is %+v", status)
	}
	if status.Reads != (v1alpha1.LoopReads{Cache: 3, Items: 8}) || status.Writes.Failed != 1 || status.Writes.Total != 0 || status.Events.Dropped != 1 {
		t.Errorf("counted are %+v %+v %+v", status.Reads, status.Writes, status.Events)
	}
	if len(status.Logs) != 2 || status.Logs[0] != (v1alpha1.LoopLog{Message: "said", Times: 2}) || status.Logs[1] != (v1alpha1.LoopLog{Message: "said", Times: 1, Error: true}) {
		t.Errorf("the log is %+v", status.Logs)
	}
	if status.Last.Outcome != "panic" || status.Last.Error != "panic: a bug" || status.Last.Reconcile != 4 {
		t.Errorf("the last one is %+v", status.Last)
	}
}

func TestLoopKeepsFewLogs(t *testing.T) {
	s := newScript("a")
	l := newLoops(s.journal)
	for i := range 2 * maxLogs {
		s.reconcile(0, trace.Event{Outcome: trace.OutcomeDone}, trace.Event{Kind: trace.KindLog, Message: fmt.Sprint("message ", i)})
	}
	if logs := only(t, l).Status.Logs; len(logs) != maxLogs || logs[0].Message != "message 0" {
		t.Errorf("there are %d messages, from %q on", len(logs), logs[0].Message)
	}
}

// BenchmarkLoops measures a read of all loops after a change: a thousand keys, ten reconciles each.
func BenchmarkLoops(b *testing.B) {
	const keys, passes = 1000, 10
	journal := trace.New(trace.Options{})
	scripts := make([]*script, keys)
	number := int64(0)
	for i := range scripts {
		scripts[i] = &script{journal: journal, key: trace.Key{Namespace: "ns", Name: fmt.Sprint("key-", i)}}
		for range passes {
			scripts[i].pass = number
			scripts[i].reconcile(0, trace.Event{Outcome: trace.OutcomeDone})
			number++
		}
	}
	l := newLoops(journal)
	l.all()
	for b.Loop() {
		scripts[0].add(trace.Event{Kind: trace.KindLog, Message: "one more"})
		l.all()
	}
}
