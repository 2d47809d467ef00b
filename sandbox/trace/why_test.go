package trace_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestWhyAborted checks that nothing is claimed of the writes of a reconcile that was cut off: one may have been stored.
func TestWhyAborted(t *testing.T) {
	for outcome, want := range map[trace.Outcome]string{
		trace.OutcomeAborted: "No write of it was answered.", trace.OutcomeDone: "It wrote nothing.",
	} {
		j := trace.New(trace.Options{})
		e := trace.Event{Operator: "o", Controller: "c", Key: trace.Key{Name: "k"}}
		e.Kind = trace.KindEnqueue
		e.Cause = j.Append(e)
		e.Kind, e.Reconcile = trace.KindDequeue, j.NewReconcile()
		e.Cause = j.Append(e)
		e.Kind = trace.KindStart
		j.Append(e)
		e.Kind, e.Outcome = trace.KindEnd, outcome
		j.Append(e)
		timeline := trace.NewTimeline(j)
		timeline.Update()
		tip := timeline.Tip()
		got := tip.WhyReconcile(tip.Reconcile(e.Reconcile), trace.English)
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q does not say %q", outcome, got, want)
		}
	}
}

// TestErrorsAreWhole checks that what a program said is not shortened in a sentence, in either language.
func TestErrorsAreWhole(t *testing.T) {
	long := "admission webhook denied the request: " + strings.Repeat("spec.size is out of range; ", 20) + "that was all"
	j := trace.New(trace.Options{})
	j.Append(trace.Event{Kind: trace.KindCall, Actor: "cafe", Verb: trace.VerbCreate, Object: trace.Ref{Kind: "Pod", Name: "a"}, Error: long})
	j.Append(trace.Event{Kind: trace.KindLog, Operator: "cafe", Message: long})
	timeline := trace.NewTimeline(j)
	timeline.Update()
	for _, e := range j.Since(0) {
		for _, l := range []trace.Language{trace.English, trace.Japanese} {
			if got := timeline.Tip().Why(e, l); !strings.Contains(got, long) {
				t.Errorf("the sentence is %s", got)
			}
		}
	}
}

// TestFirstWrite checks what is told of an object whose first event is a call: only one that makes an object created it.
func TestFirstWrite(t *testing.T) {
	start := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	made := func(at time.Time) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"metadata":{"name":"fans","creationTimestamp":%q}}`, at.Format(time.RFC3339)))
	}
	older, younger := made(start.Add(-time.Minute)), made(start.Add(time.Second))
	set := trace.Ref{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "n", Name: "fans", UID: "u"}
	status := set
	status.Subresource = "status"
	const (
		created = "ReplicaSet fans was created by you."
		changed = "; it was last changed by you."
		initial = "ReplicaSet fans was there before the operator started"
		before  = "ReplicaSet fans was there before it was first recorded"
	)
	for _, test := range []struct {
		trace.Event
		want string
	}{
		{trace.Event{Verb: trace.VerbCreate, Object: set, Status: 201, Source: trace.Server, After: younger}, created},
		{trace.Event{Verb: trace.VerbCreate, Object: status, Status: 201, Source: trace.Server, After: older}, initial + changed},
		{trace.Event{Verb: trace.VerbApply, Object: set, Status: 201, After: younger}, created},
		{trace.Event{Verb: trace.VerbApply, Object: set, After: younger}, created}, // in a journal without it
		{trace.Event{Verb: trace.VerbApply, Object: set, Status: 200, Source: trace.Server, After: older}, initial + changed},
		{trace.Event{Verb: trace.VerbUpdate, Object: status, Status: 200, Source: trace.Server, After: older}, initial + changed},
		{trace.Event{Verb: trace.VerbUpdate, Object: status, Status: 200, Source: trace.Server, After: younger}, before + changed},
		{trace.Event{Verb: trace.VerbUpdate, Object: set, Status: 200, Source: trace.Server}, before + changed},
		{trace.Event{Verb: trace.VerbPatch, Object: set, Status: 200, After: older}, before + changed}, // its clock may be another's
	} {
		journal := trace.New(trace.Options{Now: func() time.Time { return start }})
		e := test.Event
		e.Kind, e.Actor, e.ResourceVersion = trace.KindCall, "you", "7"
		journal.Append(e)
		timeline := trace.NewTimeline(journal)
		timeline.Update()
		objects := timeline.Tip().Objects()
		if len(objects) != 1 {
			t.Errorf("%+v: %d objects", e, len(objects))
			continue
		}
		if got := timeline.Tip().WhyObject(objects[0], trace.English); got != test.want {
			t.Errorf("%s %s, %d: %q instead of %q", e.Verb, e.Object, e.Status, got, test.want)
		}
		if got := timeline.Tip().WhyObject(objects[0], trace.Japanese); strings.Contains(got, "作成した") != (test.want == created) {
			t.Errorf("%s %s, %d: %q", e.Verb, e.Object, e.Status, got)
		}
	}
}

// TestDeleter checks that who deleted an object is told apart from who ended it: its node, or who took off the last finalizer.
func TestDeleter(t *testing.T) {
	ref := trace.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "n", Name: "a", UID: "u"}
	deleting := func(grace int) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"metadata":{"name":"a","deletionTimestamp":"2026-11-27T09:00:00Z","deletionGracePeriodSeconds":%d}}`, grace))
	}
	call := func(actor, verb, rv string, after json.RawMessage, reconcile int64) trace.Event {
		return trace.Event{Kind: trace.KindCall, Actor: actor, Verb: verb, Object: ref, ResourceVersion: rv, After: after, Reconcile: reconcile}
	}
	gone := trace.Event{Kind: trace.KindWatch, Verb: trace.Deleted, Object: ref, ResourceVersion: "5", After: deleting(0)}
	for want, calls := range map[string][]trace.Event{
		"; it is being deleted and has 30 s to end.": {call("you", trace.VerbDelete, "3", deleting(30), 0)},
		"; it is gone, deleted by you.":              {call("you", trace.VerbDelete, "", nil, 0)},
		"; it is gone, deleted by you, removed by kubelet.": {
			call("you", trace.VerbDelete, "3", deleting(30), 0), call("kubelet", trace.VerbDelete, "4", deleting(0), 0),
		},
		"; it is gone, deleted by you, removed by keeper in #7.": {
			call("you", trace.VerbDelete, "3", deleting(30), 0), call("keeper", trace.VerbUpdate, "3", deleting(0), 7), gone,
		},
		"; it is gone, removed by keeper in #7.": {call("keeper", trace.VerbUpdate, "3", deleting(0), 7), gone},
	} {
		journal := trace.New(trace.Options{})
		journal.Append(call("you", trace.VerbCreate, "2", json.RawMessage(`{"metadata":{"name":"a"}}`), 0))
		for _, e := range calls {
			journal.Append(e)
		}
		timeline := trace.NewTimeline(journal)
		timeline.Update()
		o := timeline.Tip().Object(ref)
		if got := timeline.Tip().WhyObject(o, trace.English); !strings.HasSuffix(got, want) {
			t.Errorf("%q does not end with %q", got, want)
		}
		if got := timeline.Tip().WhyObject(o, trace.Japanese); strings.Contains(got, "が削除し、") != strings.Contains(want, "deleted by") {
			t.Errorf("%q: %s", want, got)
		}
	}
}

// TestNotesEndOnce checks that a sentence that has an end gets no second full stop, in either language.
func TestNotesEndOnce(t *testing.T) {
	for message, want := range map[string][2]string{
		"the loop begins.": {"the loop begins.", "the loop begins."}, "x breaks it": {"x breaks it.", "x breaks it。"}, "ループが始まる。": {"ループが始まる。", "ループが始まる。"},
	} {
		j := trace.New(trace.Options{})
		j.Append(trace.Event{Kind: trace.KindNote, Message: message})
		timeline := trace.NewTimeline(j)
		timeline.Update()
		for i, l := range []trace.Language{trace.English, trace.Japanese} {
			if got := timeline.Tip().Why(j.Since(0)[0], l); got != want[i] {
				t.Errorf("%q becomes %q, not %q", message, got, want[i])
			}
		}
	}
}
