package trace_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// breaking is a journal in which something is broken, told event by event.
type breaking struct {
	*testing.T
	*trace.Journal
}

func (b breaking) add(at time.Duration, e trace.Event) {
	e.At, e.Operator, e.Controller = at*time.Millisecond, "keeper", "keeper"
	if e.Actor == "" {
		e.Actor = "keeper"
	}
	b.Append(e)
}

func (b breaking) want(text string) {
	b.Helper()
	timeline := trace.NewTimeline(b.Journal)
	timeline.Update()
	a := timeline.Tip().Aftermath()
	if a == nil {
		b.Fatalf("nothing is broken; want %q", text)
	}
	if got := a.Text(trace.English); !strings.Contains(got, text) {
		b.Errorf("it says %q, want %q", got, text)
	}
	if ja := a.Text(trace.Japanese); ja == "" {
		b.Error("nothing is said in Japanese")
	}
}

// TestAftermathOfACrash tells of a crash after a write: the next life writes the same again.
func TestAftermathOfACrash(t *testing.T) {
	b := breaking{t, trace.New(trace.Options{})}
	key, other := trace.Key{Namespace: "default", Name: "a"}, trace.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "a"}
	run := func(at time.Duration, err string, write bool) {
		id := b.NewReconcile()
		b.add(at, trace.Event{Kind: trace.KindDequeue, Key: key, Reconcile: id})
		b.add(at, trace.Event{Kind: trace.KindStart, Key: key, Reconcile: id})
		if write {
			b.add(at, trace.Event{Kind: trace.KindCall, Key: key, Reconcile: id, Verb: trace.VerbApply, Object: other, ResourceVersion: "1"})
		}
		if err == "crash" {
			crash := trace.FaultPayload{Kind: trace.FaultCrash, Detail: "After", Of: []string{"1s"}}
			b.add(at, trace.Event{Kind: trace.KindFault, Reason: "f", Verb: trace.VerbApply, Object: other, Reconcile: id, Values: crash.Values()})
			b.add(at, trace.Event{Kind: trace.KindEnd, Key: key, Reconcile: id, Outcome: trace.OutcomeAborted})
			b.add(at, trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStop})
			return
		}
		outcome := trace.OutcomeDone
		if err != "" {
			outcome = trace.OutcomeError
		}
		b.add(at, trace.Event{Kind: trace.KindEnd, Key: key, Reconcile: id, Outcome: outcome, Error: err})
	}
	run(0, "", false)
	run(1000, "crash", true)
	b.want("Not healed after 0s and 0 reconciles, waiting for #2 default/a, keeper.")
	b.add(2000, trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStart})
	b.want("Not healed after 1s and 0 reconciles, waiting for #2 default/a.")
	run(2500, "no luck", false)
	b.want("Not healed after 1.5s and 1 reconcile")
	run(3100, "", true)
	b.want("Healed after 2.1s and 2 reconciles; 1 write was repeated.")
	timeline := trace.NewTimeline(b.Journal)
	timeline.Update()
	for _, l := range []trace.Language{trace.English, trace.Japanese} {
		story := timeline.Tip().Story(l)
		if text := strings.Join(story, "\n"); len(story) != 4 || strings.Contains(text, "%!") {
			t.Errorf("the story is\n%s", text)
		}
		for line := range strings.SplitSeq(strings.Join(story, "\n"), "\n") {
			if trace.TextWidth(line) > 80 {
				t.Errorf("%q is wider than a terminal", line)
			}
		}
	}
	if got, want := timeline.Tip().Story(trace.English)[0], "ran        4 reconciles in 3.1s: 1 failed, 1 cut off, 0 events seen"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	run(9000, "", true)
	b.want("Healed after 2.1s and 2 reconciles; 1 write was repeated.")
}

// TestStoryOfAPause checks that of a key that waits in a paused loop it is not said that it goes on.
func TestStoryOfAPause(t *testing.T) {
	b := breaking{t, trace.New(trace.Options{})}
	now := func() string {
		timeline := trace.NewTimeline(b.Journal)
		timeline.Update()
		return timeline.Tip().Story(trace.English)[3]
	}
	b.add(0, trace.Event{Kind: trace.KindEnqueue, Key: trace.Key{Namespace: "default", Name: "a"}})
	if got := now(); got != "at the end 1 key in the queue: there was more to come" {
		t.Errorf("it says %q", got)
	}
	b.add(1, trace.Event{Kind: trace.KindControl, Verb: trace.VerbPause})
	if got := now(); got != "at the end 1 key in the queue of a loop that is paused" {
		t.Errorf("it says %q", got)
	}
}

// TestMarkedForDeletion tells of the event that a deletion with a grace period makes first: the object is not gone yet, and
// it is more than a change.
func TestMarkedForDeletion(t *testing.T) {
	for verb, want := range map[string][2]string{
		trace.VerbDelete: {"Pod a was marked for deletion by the demo", "デモによる Pod a の削除の開始を検知した"},
		trace.VerbUpdate: {"Pod a was changed by the demo", "デモによる Pod a の変更を検知した"},
	} {
		b := breaking{t, trace.New(trace.Options{})}
		pod := trace.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "a", UID: "1"}
		write := b.Append(trace.Event{Kind: trace.KindCall, Actor: trace.Demo, Operator: trace.Demo, Verb: verb, Object: pod, ResourceVersion: "2"})
		watch := b.Append(trace.Event{Kind: trace.KindWatch, Operator: "keeper", Verb: trace.Modified, Object: pod, ResourceVersion: "2", Cause: write})
		seq := b.Append(trace.Event{Kind: trace.KindEnqueue, Operator: "keeper", Controller: "keeper", Key: pod.Key(), Cause: watch})
		timeline := trace.NewTimeline(b.Journal)
		timeline.Update()
		for i, l := range []trace.Language{trace.English, trace.Japanese} {
			if got := timeline.Tip().Why(b.Get(seq), l); !strings.Contains(got, want[i]) {
				t.Errorf("after %s it says %q, want %q", verb, got, want[i])
			}
		}
	}
}

// TestAftermathOfAQuietCrash tells of a crash while nothing was reconciled: it is not over when the program runs again, but
// when that has looked at its object. An operator that has none has nothing to look at.
func TestAftermathOfAQuietCrash(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		b := breaking{t, trace.New(trace.Options{})}
		key, own := trace.Key{Namespace: "default", Name: "a"}, trace.Ref{APIVersion: "v1", Kind: "Keeper", Namespace: "default", Name: "a"}
		reconcile := func(at time.Duration) {
			id := b.NewReconcile()
			b.add(at, trace.Event{Kind: trace.KindDequeue, Key: key, Reconcile: id})
			b.add(at, trace.Event{Kind: trace.KindStart, Key: key, Reconcile: id})
			b.add(at, trace.Event{Kind: trace.KindEnd, Key: key, Reconcile: id, Outcome: trace.OutcomeDone})
		}
		object := json.RawMessage(`{"metadata": {"name": "a", "namespace": "default"}}`)
		b.add(0, trace.Event{Kind: trace.KindWatch, Verb: trace.Added, Object: own, ResourceVersion: "1", After: object})
		reconcile(100)
		if deleted {
			b.add(200, trace.Event{Kind: trace.KindWatch, Verb: trace.Deleted, Object: own, ResourceVersion: "2", Before: object})
		}
		b.add(1000, trace.Event{Kind: trace.KindFault, Reason: "f", Values: trace.FaultPayload{Kind: trace.FaultCrash}.Values()})
		b.add(1000, trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStop})
		b.want("Not healed after 0s and 0 reconciles, waiting for keeper.")
		b.add(1100, trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStart})
		if deleted {
			b.want("Healed after 100ms and 0 reconciles.")
			continue
		}
		b.want("Not healed after 100ms and 0 reconciles, waiting for keeper.")
		reconcile(1300)
		b.want("Healed after 300ms and 1 reconcile.")
	}
}

// TestAftermathOfADelete tells of an object that a person deleted, and that its controller makes again.
func TestAftermathOfADelete(t *testing.T) {
	b := breaking{t, trace.New(trace.Options{})}
	pod := json.RawMessage(`{"metadata":{"name":"a-1","ownerReferences":[{"kind":"Set","name":"a","uid":"u","controller":true}]}}`)
	ref := trace.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "a-1"}
	b.add(0, trace.Event{Kind: trace.KindWatch, Verb: trace.Added, Object: ref, After: pod})
	b.add(100, trace.Event{Kind: trace.KindCall, Actor: "you", Verb: trace.VerbDelete, Object: ref, Before: pod})
	b.want("Not healed after 0s and 0 reconciles, waiting for Pod a-1. You deleted Pod a-1.")
	b.add(200, trace.Event{Kind: trace.KindWatch, Verb: trace.Deleted, Object: ref, Before: pod, After: pod})
	b.want("Not healed")
	ref.Name = "a-2"
	b.add(300, trace.Event{Kind: trace.KindWatch, Verb: trace.Added, Object: ref, After: pod})
	b.want("Healed after 200ms and 0 reconciles. You deleted Pod a-1.")
}

// TestAftermathInAReconcile tells of an object that is made again by a reconcile that goes on after that.
func TestAftermathInAReconcile(t *testing.T) {
	b := breaking{t, trace.New(trace.Options{})}
	service := json.RawMessage(`{"metadata":{"name":"a","ownerReferences":[{"kind":"Set","name":"a","uid":"u","controller":true}]}}`)
	ref := trace.Ref{APIVersion: "v1", Kind: "Service", Namespace: "default", Name: "a"}
	key := trace.Key{Namespace: "default", Name: "a"}
	b.add(0, trace.Event{Kind: trace.KindWatch, Verb: trace.Added, Object: ref, After: service})
	b.add(90, trace.Event{Kind: trace.KindStart, Reconcile: 1, Key: key})
	b.add(100, trace.Event{Kind: trace.KindCall, Actor: trace.Demo, Verb: trace.VerbDelete, Object: ref, Before: service})
	b.add(110, trace.Event{Kind: trace.KindEnd, Reconcile: 1, Key: key})
	b.add(120, trace.Event{Kind: trace.KindStart, Reconcile: 2, Key: key})
	b.want("Not healed after 20ms and 2 reconciles, waiting for Service a.")
	b.add(200, trace.Event{Kind: trace.KindWatch, Verb: trace.Added, Object: ref, After: service})
	b.want("Healed after 100ms and 2 reconciles.")
	b.add(300, trace.Event{Kind: trace.KindEnd, Reconcile: 2, Key: key})
	b.want("Healed after 100ms and 2 reconciles.")
}

// TestAftermathUntilReady tells of a pod that was Ready when it was deleted: what is made instead has to be Ready, too.
func TestAftermathUntilReady(t *testing.T) {
	b := breaking{t, trace.New(trace.Options{})}
	pod := func(ready string) json.RawMessage {
		return json.RawMessage(`{"metadata":{"name":"a","ownerReferences":[{"kind":"Set","name":"a","uid":"u","controller":true}]},
		  "status":{"conditions":[{"type":"Ready","status":"` + ready + `"}]}}`)
	}
	ref := func(name string) trace.Ref {
		return trace.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: name, UID: "uid-" + name}
	}
	watch := func(at time.Duration, verb, name, was, is string) {
		e := trace.Event{Kind: trace.KindWatch, Verb: verb, Object: ref(name), After: pod(is)}
		if was != "" {
			e.Before = pod(was)
		}
		b.add(at, e)
	}
	watch(0, trace.Added, "a-1", "", "True")
	b.add(100, trace.Event{Kind: trace.KindCall, Actor: trace.Demo, Verb: trace.VerbDelete, Object: ref("a-1"), Before: pod("True")})
	watch(150, trace.Modified, "a-1", "True", "False")
	b.want("Not healed after 50ms and 0 reconciles, waiting for Pod a-1. The demo deleted Pod a-1.")
	b.add(200, trace.Event{
		Kind: trace.KindWatch, Verb: trace.Modified, Object: ref("a-1"), Before: pod("False"),
		After: json.RawMessage(`{"metadata":{"name":"a-1","deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"conditions":[{"type":"Ready","status":"False"}]}}`),
	})
	b.want("Not healed after 100ms and 0 reconciles, waiting for Pod a-1. The demo deleted Pod a-1.") // for what comes instead
	watch(250, trace.Added, "a-1", "", "True")                                                        // listed by an operator that begins anew
	b.want("Not healed after 150ms and 0 reconciles, waiting for Pod a-1. The demo deleted Pod a-1.")
	watch(300, trace.Added, "a-2", "", "False")
	watch(400, trace.Deleted, "a-1", "False", "False")
	b.want("Not healed after 300ms and 0 reconciles, waiting for Pod a-2. The demo deleted Pod a-1.")
	watch(500, trace.Deleted, "a-2", "False", "False")
	b.want("Not healed after 400ms and 0 reconciles, waiting for Pod a-1.")
	watch(600, trace.Added, "a-3", "", "False")
	b.want("Not healed after 500ms and 0 reconciles, waiting for Pod a-3.")
	watch(700, trace.Modified, "a-3", "False", "True")
	b.want("Healed after 600ms and 0 reconciles.")
	b.add(6000, trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStop}) // the run is over
	b.want("Healed after 600ms and 0 reconciles.")
	b.add(6100, trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStart})
	b.want("Healed after 600ms and 0 reconciles.")
}

// TestAftermathAtTheEnd checks that the end of a run is not told as what a fault has done.
func TestAftermathAtTheEnd(t *testing.T) {
	for kind, want := range map[string]string{
		trace.FaultAPI:   "Nothing fails and nothing is missing so far.",
		trace.FaultCrash: "Healed after 100ms and 0 reconciles.",
	} {
		b := breaking{t, trace.New(trace.Options{})}
		b.add(0, trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStart})
		b.add(100, trace.Event{Kind: trace.KindFault, Reason: "f", Values: trace.FaultPayload{Kind: kind}.Values()})
		if kind == trace.FaultCrash {
			b.add(100, trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStop})
			b.add(200, trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStart})
		}
		b.want(want)
		b.add(900, trace.Event{Kind: trace.KindOperator, Verb: trace.VerbStop})
		b.want(want)
	}
}

// TestAftermathOfAnUnwatchedPod tells of a pod that no operator watches: only the audit log has what becomes of it, and of what
// replaces it, and not always in order.
func TestAftermathOfAnUnwatchedPod(t *testing.T) {
	b := breaking{t, trace.New(trace.Options{})}
	call := func(at time.Duration, actor, verb, name, sub, more, ready, rv string) {
		ref := trace.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: name, UID: "uid-" + name, Subresource: sub}
		e := trace.Event{Kind: trace.KindCall, Actor: actor, Verb: verb, Object: ref, Source: trace.Server, Status: 200, ResourceVersion: rv}
		if verb == trace.VerbCreate {
			e.Status = 201
		}
		e.After = json.RawMessage(`{"metadata":{"name":"` + name + `"` + more + `,"ownerReferences":[{"kind":"ReplicaSet","name":"a","uid":"u","controller":true}]},
		  "status":{"conditions":[{"type":"Ready","status":"` + ready + `"}]}}`)
		e.At = at * time.Millisecond
		b.Append(e)
	}
	const ends = `,"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":30`
	call(0, "kubelet", trace.VerbPatch, "a-1", "status", "", "True", "5")
	call(100, trace.Demo, trace.VerbDelete, "a-1", "", ends, "True", "6")
	b.want("Not healed after 0s and 0 reconciles, waiting for Pod a-1. The demo deleted Pod a-1.")
	call(200, "kubelet", trace.VerbPatch, "a-1", "status", ends, "False", "8")
	call(300, "kube-scheduler", trace.VerbPatch, "a-2", "status", "", "False", "9") // the create comes late
	b.want("Not healed after 200ms and 0 reconciles, waiting for Pod a-1.")
	call(400, "kube-controller-manager/replicaset-controller", trace.VerbCreate, "a-2", "", "", "False", "7")
	b.want("Not healed after 300ms and 0 reconciles, waiting for Pod a-2.")
	call(500, "kubelet", trace.VerbDelete, "a-1", "", strings.Replace(ends, "30", "0", 1), "False", "10")
	b.want("Not healed after 400ms and 0 reconciles, waiting for Pod a-2.")
	call(600, "kubelet", trace.VerbPatch, "a-2", "status", "", "True", "11")
	b.want("Healed after 500ms and 0 reconciles. The demo deleted Pod a-1.")
}

// TestAftermathOfAnAuditedDelete tells of a pod that was deleted with kubectl: the audit log tells of it without the object,
// and here after its replacement has come.
func TestAftermathOfAnAuditedDelete(t *testing.T) {
	b := breaking{t, trace.New(trace.Options{})}
	pod := func(more string) json.RawMessage {
		return json.RawMessage(`{"metadata":{"name":"a-1"` + more + `,"ownerReferences":[{"kind":"Set","name":"a","uid":"u","controller":true}]}}`)
	}
	ref := trace.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "a-1", UID: "1"}
	next := trace.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "a-2", UID: "2"}
	b.add(0, trace.Event{Kind: trace.KindWatch, Verb: trace.Added, Object: ref, After: pod("")})
	b.add(100, trace.Event{Kind: trace.KindWatch, Verb: trace.Modified, Object: ref, After: pod(`,"deletionTimestamp":"2026-01-01T00:00:00Z"`)})
	b.add(300, trace.Event{Kind: trace.KindWatch, Verb: trace.Added, Object: next, After: pod("")})
	b.add(400, trace.Event{Kind: trace.KindCall, Actor: trace.Demo, Verb: trace.VerbDelete, Object: ref})
	b.want("Healed after 200ms and 0 reconciles. The demo deleted Pod a-1.")
	// What the demo wants later takes its time, too; that is not the time that the break took.
	set := trace.Ref{APIVersion: "v1", Kind: "Set", Namespace: "default", Name: "a", UID: "u"}
	status := func(is string) json.RawMessage {
		return json.RawMessage(`{"metadata":{"name":"a"},"status":{"conditions":[{"type":"Ready","status":"` + is + `"}]}}`)
	}
	b.add(410, trace.Event{Kind: trace.KindCall, Actor: trace.Demo, Verb: trace.VerbPatch, Object: set, Before: status("True"), After: status("True")})
	b.add(420, trace.Event{Kind: trace.KindWatch, Verb: trace.Modified, Object: set, Before: status("True"), After: status("False")})
	b.want("Healed after 200ms and 0 reconciles. The demo deleted Pod a-1.")
	b.add(430, trace.Event{Kind: trace.KindWatch, Verb: trace.Modified, Object: set, Before: status("False"), After: status("True")})
	b.want("Healed after 200ms and 0 reconciles. The demo deleted Pod a-1.")
	b.add(500, trace.Event{Kind: trace.KindCall, Actor: "you", Verb: trace.VerbDelete, Object: next})
	b.want("Not healed after 0s and 0 reconciles, waiting for Pod a-2. You deleted Pod a-2.")
}

// TestKubectl tells of what a person did by the screen as a command.
func TestKubectl(t *testing.T) {
	e := trace.Event{
		Kind: trace.KindCall, Actor: "you", Verb: trace.VerbPatch, Object: trace.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "web", Name: "a"},
		Before: json.RawMessage(`{"metadata":{"resourceVersion":"1","labels":{"x":"1"}},"spec":{"replicas":1,"paused":true},"status":{"n":1}}`),
		After:  json.RawMessage(`{"metadata":{"resourceVersion":"2","labels":{"x":"1"}},"spec":{"replicas":2},"status":{"n":1}}`),
	}
	want := `kubectl patch deployment.apps a -n web --type merge -p '{"spec":{"paused":null,"replicas":2}}'`
	if got := trace.Kubectl(&e); got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
	e.Verb = trace.VerbDelete
	if got := trace.Kubectl(&e); got != "kubectl delete deployment.apps a -n web" {
		t.Errorf("a delete is %s", got)
	}
	e.Actor = "keeper"
	if got := trace.Kubectl(&e); got != "" {
		t.Errorf("what an operator does is told as yours: %s", got)
	}
}
