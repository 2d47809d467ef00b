package trace

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// hotLoop writes the journal of one key of one controller, reconcile after reconcile.
type hotLoop struct {
	journal  *Journal
	key      Key
	pass     int64
	version  int
	wakes    []Event // for the next reconcile
	contents map[string]json.RawMessage
}

func newHotLoop(j *Journal, name string) *hotLoop {
	l := &hotLoop{journal: j, key: Key{Namespace: "ns", Name: name}, contents: map[string]json.RawMessage{}}
	l.wake(Event{})
	return l
}

func (l *hotLoop) add(e Event) {
	e.Operator, e.Actor, e.Controller, e.Key = "keeper", "keeper", "song", l.key
	l.journal.Append(e)
}

// wake adds a reason for the next reconcile.
func (l *hotLoop) wake(e Event) {
	e.Kind = KindEnqueue
	l.wakes = append(l.wakes, e)
}

// write is a call of a reconcile: verb, kind of the object (its name is the key's), and its new content.
type write struct {
	verb, kind, after string
	refused, noop     bool
}

func change(after string) write { return write{verb: VerbUpdate, kind: "Song", after: after} }

// reconcile records a reconcile with some writes. Each successful one comes back as a watch event, and wakes the next.
func (l *hotLoop) reconcile(writes ...write) {
	l.pass++
	id := l.pass*1000 + int64(len(l.key.Name)) // differs between keys
	for _, e := range l.wakes {
		l.add(e)
	}
	l.wakes = nil
	l.add(Event{Kind: KindDequeue, Reconcile: id})
	l.add(Event{Kind: KindStart, Reconcile: id})
	for _, w := range writes {
		l.version++
		ref := Ref{APIVersion: "v1", Kind: w.kind, Namespace: l.key.Namespace, Name: l.key.Name, UID: w.kind + l.key.Name}
		call := Event{Kind: KindCall, Reconcile: id, Verb: w.verb, Object: ref, Before: l.contents[w.kind], NoOp: w.noop}
		if w.refused {
			call.Error, call.Reason = "refused", "Conflict"
		} else {
			call.ResourceVersion, call.After = fmt.Sprint(l.version), json.RawMessage(w.after)
		}
		l.add(call)
		if w.refused || w.noop {
			continue
		}
		l.contents[w.kind] = call.After
		seq := l.journal.Append(Event{
			Kind: KindWatch, Operator: "keeper", Verb: Modified, Object: ref, ResourceVersion: call.ResourceVersion, After: call.After,
		})
		l.wake(Event{Cause: seq})
	}
	l.add(Event{Kind: KindEnd, Reconcile: id, Outcome: OutcomeDone})
}

// somebodyElse records a write of the object by another client.
func (l *hotLoop) somebodyElse(after string) {
	l.contents["Song"] = json.RawMessage(after)
	seq := l.journal.Append(Event{
		Kind: KindWatch, Operator: "keeper", Verb: Modified, ResourceVersion: fmt.Sprint("other", l.pass), After: l.contents["Song"],
		Object: Ref{APIVersion: "v1", Kind: "Song", Namespace: "ns", Name: l.key.Name, UID: "Song" + l.key.Name},
	})
	l.wake(Event{Cause: seq})
}

func (l *hotLoop) hot() (Hot, bool) {
	timeline := NewTimeline(l.journal)
	timeline.Update()
	return timeline.Tip().Hot(QueueKey{Operator: "keeper", Controller: "song", Key: l.key})
}

// status returns a Song with a field in its status.
func status(field string, value any) string {
	return fmt.Sprintf(`{"metadata":{"resourceVersion":"r%v","generation":1},"status":{"constant":1,%q:%q}}`, value, field, fmt.Sprint(value))
}

func TestHot(t *testing.T) {
	tests := []struct {
		name string
		play func(l *hotLoop, i int)
		// field is the expected name; "no" if the loop is not hot.
		field string
	}{
		{"flips a field", func(l *hotLoop, i int) { l.reconcile(change(status("on", i%2 == 0))) }, "status.on"},
		{"counts in the status", func(l *hotLoop, i int) { l.reconcile(change(status("passes", i))) }, "status.passes"},
		{"writes what only the server counts", func(l *hotLoop, i int) {
			l.reconcile(change(fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"}}`, i)))
		}, ""},
		{"has a write refused now and then", func(l *hotLoop, i int) {
			l.reconcile(write{verb: VerbUpdate, kind: "Song", refused: true}, change(status("on", i%2 == 0)))
		}, "status.on"},
		{"writes twice", func(l *hotLoop, i int) {
			l.reconcile(change(status("on", 2*i)), change(status("on", 2*i+1)))
		}, "status.on"},
		{"flips two fields in turns", func(l *hotLoop, i int) {
			l.reconcile(change(fmt.Sprintf(`{"status":{"a":%d,"b":%d}}`, (i+1)/2, i/2)))
		}, "status.a"},

		{"creates each time", func(l *hotLoop, i int) {
			l.reconcile(change(status("said", i)), write{verb: VerbCreate, kind: "Word", after: `{}`})
		}, "no"},
		{"deletes each time", func(l *hotLoop, i int) {
			l.reconcile(change(status("left", i)), write{verb: VerbDelete, kind: "Word", after: `{}`})
		}, "no"},
		{"does another thing each time", func(l *hotLoop, i int) {
			l.reconcile(change(fmt.Sprintf(`{"status":{"step-%d":"done"}}`, i)))
		}, "no"},
		{"writes two objects", func(l *hotLoop, i int) {
			l.reconcile(change(status("on", i%2 == 0)), write{verb: VerbUpdate, kind: "Word", after: status("on", i)})
		}, "no"},
		{"is woken by others too", func(l *hotLoop, i int) {
			l.somebodyElse(status("on", "maybe"))
			l.reconcile(change(status("on", i)))
		}, "no"},
		{"writes and changes nothing", func(l *hotLoop, i int) {
			l.reconcile(write{verb: VerbUpdate, kind: "Song", after: status("on", i), noop: true})
		}, "no"},
		{"is told something else in the middle", func(l *hotLoop, i int) {
			if i == 20 {
				l.somebodyElse(status("on", "maybe"))
			}
			l.reconcile(change(status("on", i)))
		}, "no"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := newHotLoop(New(Options{}), "song")
			l.contents["Song"] = json.RawMessage(`{}`)
			l.contents["Word"] = json.RawMessage(`{}`)
			for i := range 2 * hotRun {
				test.play(l, i)
			}
			hot, is := l.hot()
			if want := test.field != "no"; is != want {
				t.Fatalf("hot: %v, want %v (%+v)", is, want, hot)
			}
			if is && (hot.Field != test.field || hot.Object.Kind != "Song" || hot.Reconciles < hotRun) {
				t.Errorf("it is %+v, want the field %q", hot, test.field)
			}
		})
	}
}

// TestHotBeginsWithTheTwelfth checks that a loop is not hot before the twelfth reconcile, nor after it has ended.
func TestHotBeginsWithTheTwelfth(t *testing.T) {
	l := newHotLoop(New(Options{}), "song")
	l.contents["Song"] = json.RawMessage(`{}`)
	for i := range hotRun { // the first was woken by somebody else
		l.reconcile(change(status("passes", i)))
		if hot, is := l.hot(); is {
			t.Fatalf("hot after %d reconciles: %+v", i+1, hot)
		}
	}
	l.reconcile(change(status("passes", "last")))
	hot, is := l.hot()
	if !is || hot.Reconciles != hotRun || !slices.Equal(hot.Values, []string{"1", "2", "3", "4"}) {
		t.Errorf("hot: %v, %+v", is, hot)
	}
	l.reconcile() // it was progress: there is nothing left to do
	if hot, is := l.hot(); is {
		t.Errorf("hot at its end: %+v", hot)
	}
}

// TestHotAfterAnotherObject checks that what the loop did before it ran hot does not matter.
func TestHotAfterAnotherObject(t *testing.T) {
	l := newHotLoop(New(Options{}), "song")
	l.contents["Song"], l.contents["Word"] = json.RawMessage(`{}`), json.RawMessage(`{}`)
	for i := range 3 {
		l.reconcile(write{verb: VerbUpdate, kind: "Word", after: status("on", i)})
	}
	for i := range hotRun + 1 {
		l.reconcile(change(status("on", i%2 == 0)))
	}
	if hot, is := l.hot(); !is || hot.Object.Kind != "Song" || hot.Field != "status.on" {
		t.Errorf("hot: %v, %+v", is, hot)
	}
}

// TestHotIsOfOneKey checks that another key of the same controller is not hot.
func TestHotIsOfOneKey(t *testing.T) {
	j := New(Options{})
	hot, cold := newHotLoop(j, "hot"), newHotLoop(j, "cold")
	hot.contents["Song"] = json.RawMessage(`{}`)
	for i := range 2 * hotRun {
		hot.reconcile(change(status("on", i%2 == 0)))
		cold.reconcile()
	}
	if _, is := hot.hot(); !is {
		t.Error("the hot one is not hot")
	}
	timeline := NewTimeline(j)
	timeline.Update()
	if all := timeline.Tip().HotLoops(); len(all) != 1 || all[QueueKey{Operator: "keeper", Controller: "song", Key: hot.key}].Field != "status.on" {
		t.Errorf("hot are %+v", all)
	}
	if found, is := cold.hot(); is {
		t.Errorf("the cold one is hot: %+v", found)
	}
	if found, is := newHotLoop(j, "unknown").hot(); is {
		t.Errorf("an unknown one is hot: %+v", found)
	}
}
