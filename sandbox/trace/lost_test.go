package trace

import (
	"bytes"
	"strings"
	"testing"
)

// TestLostAnswer checks that a write that was carried out stands in its reconcile, although its answer never reached the
// operator: in one that it ended, and in one that ended before the answer came.
func TestLostAnswer(t *testing.T) {
	for _, how := range []struct{ late, held bool }{{}, {late: true}, {held: true}, {true, true}} {
		late := how.late
		j := New(Options{})
		key := Key{"default", "a"}
		word := Ref{APIVersion: "x/v1", Kind: "Word", Namespace: "default", Name: "a-1", UID: "u1"}
		of := func(e Event) int64 {
			e.Operator, e.Actor, e.Controller, e.Key = "o", "o", "c", key
			return j.Append(e)
		}
		enqueue := of(Event{Kind: KindEnqueue})
		dequeue := of(Event{Kind: KindDequeue, Cause: enqueue, Reconcile: j.NewReconcile()})
		of(Event{Kind: KindStart, Cause: dequeue, Reconcile: 1})
		end := func() { of(Event{Kind: KindEnd, Reconcile: 1, Outcome: OutcomeAborted}) }
		tl := NewTimeline(j)
		if how.held { // it waited before it was sent
			unborn := word
			unborn.UID = ""
			of(Event{Kind: KindHold, Verb: VerbCreate, Object: unborn, Reconcile: 1})
		}
		if late {
			end()
			tl.Update()
		}
		before := j.Stats().Last
		of(Event{Kind: KindCall, Verb: VerbCreate, Source: Server, Object: word, ResourceVersion: "12", Reconcile: 1, Lost: true})
		if !late {
			end()
		}
		if tl.Update(); strings.Contains(tl.Tip().WhyReconcile(tl.Tip().Reconcile(1), English), "come back") {
			t.Errorf("late %t: the watch of a process that has ended is waited for", late)
		}
		watch := j.Append(Event{
			Kind: KindWatch, Operator: "o", Actor: "o", Verb: Added, Object: word, ResourceVersion: "12",
			After: []byte(`{"metadata":{"name":"a-1","ownerReferences":[{"kind":"Song","name":"s","controller":true}]}}`),
		})
		tl.Update()
		s := tl.Tip()
		reconcile := s.Reconcile(1)
		if c := reconcile.Tally; c.Writes != 1 || c.FailedCalls != 0 || len(reconcile.Calls()) != 1 {
			t.Errorf("late %t: %+v, %d calls", late, c, len(reconcile.Calls()))
		}
		if then := tl.At(before).Reconcile(1); len(then.Calls()) != 0 && !how.held {
			t.Errorf("late %t: the write is told before it was made", late)
		}
		for what, want := range map[string]string{
			s.WhyReconcile(reconcile, English):   "It created Word a-1 (committed, and its answer never arrived). ",
			s.WhyReconcile(reconcile, Japanese):  "Word a-1 を作成した。Word a-1 への書き込みはコミット済み、応答は届かなかった。",
			s.WhyObject(s.Object(word), English): "Word a-1 was created by o in #1 and is owned by Song s.",
			s.Why(tl.Event(watch), English):      "Word a-1 was added by o in #1",
			htmlOf(t, j, HTMLOptions{}):          "committed, and its answer never arrived",
			plainOf(t, j, English):               "create Word a-1 (rv 12): committed, and its answer never arrived",
			plainOf(t, j, Japanese):              "create Word a-1 (rv 12): コミット済み、応答は届かなかった",
		} {
			if !strings.Contains(what, want) {
				t.Errorf("late %t: %q is not in %q", late, want, what[:min(len(what), 400)])
			}
		}
	}
}

// TestLostUpdate checks that an object is known as it is after a write whose answer was lost, as soon as a watch event tells of it.
func TestLostUpdate(t *testing.T) {
	j := New(Options{})
	tl := NewTimeline(j)
	word := Ref{APIVersion: "x/v1", Kind: "Word", Namespace: "default", Name: "a-1", UID: "u1"}
	of := func(e Event) *Object {
		e.Operator, e.Actor, e.Object, e.Generation = "o", "o", word, 2
		j.Append(e)
		tl.Update()
		return tl.Tip().Object(word)
	}
	first, second := `{"status":{"observedGeneration":1}}`, `{"status":{"observedGeneration":2}}`
	was := of(Event{Kind: KindWatch, Verb: Modified, ResourceVersion: "11", After: []byte(first)})
	lost := of(Event{Kind: KindCall, Verb: VerbUpdate, Source: Server, ResourceVersion: "12", Lost: true})
	is := of(Event{Kind: KindWatch, Verb: Added, Initial: true, ResourceVersion: "12", After: []byte(second)})
	if !was.Lagging() || lost.ResourceVersion != "12" || string(lost.Raw) != first || is.Lagging() || string(is.Raw) != second || string(is.Before) != first {
		t.Errorf("it was %s, then %s, and is %s, before %s", was.Raw, lost.Raw, is.Raw, is.Before)
	}
}

// TestAbortedIsNotAgain checks that a reconcile whose process ended is not said to run again at once: the queue, in which its
// key was once more, ended too.
func TestAbortedIsNotAgain(t *testing.T) {
	j := New(Options{})
	of := func(e Event) int64 {
		e.Operator, e.Actor, e.Controller, e.Key = "o", "o", "c", Key{"default", "a"}
		return j.Append(e)
	}
	for _, outcome := range []Outcome{OutcomeAborted, OutcomeDone} {
		id := j.NewReconcile()
		dequeue := of(Event{Kind: KindDequeue, Cause: of(Event{Kind: KindEnqueue}), Reconcile: id})
		of(Event{Kind: KindStart, Cause: dequeue, Reconcile: id})
		of(Event{Kind: KindEnqueue, Running: true})
		of(Event{Kind: KindEnd, Reconcile: id, Outcome: outcome})
		tl := NewTimeline(j)
		tl.Update()
		r := tl.Tip().Reconcile(id)
		text := tl.Tip().WhyReconcile(r, English) + ResultText(r, English)
		if again := strings.Contains(text, "again at once"); again != (outcome == OutcomeDone) {
			t.Errorf("one that is %s: %s", outcome, text)
		}
	}
}

// TestEndAfterStop checks that a reconcile that went on after its operator was stopped has what it did and how it ended.
func TestEndAfterStop(t *testing.T) {
	j := New(Options{})
	of := func(e Event) int64 {
		e.Operator, e.Actor, e.Controller, e.Key = "o", "o", "c", Key{"default", "a"}
		return j.Append(e)
	}
	word := Ref{APIVersion: "x/v1", Kind: "Word", Namespace: "default", Name: "a-1", UID: "u1"}
	dequeue := of(Event{Kind: KindDequeue, Cause: of(Event{Kind: KindEnqueue}), Reconcile: j.NewReconcile()})
	of(Event{Kind: KindStart, Cause: dequeue, Reconcile: 1})
	j.Append(Event{Kind: KindOperator, Verb: VerbStop, Operator: "o"})
	tl := NewTimeline(j)
	tl.Update()
	stopped := j.Stats().Last
	of(Event{Kind: KindCall, Verb: VerbCreate, Source: Server, Object: word, ResourceVersion: "12", Reconcile: 1})
	of(Event{Kind: KindEnd, Reconcile: 1, Outcome: OutcomeDone})
	tl.Update()
	r := tl.Tip().Reconcile(1)
	if c := r.Tally; r.Outcome() != OutcomeDone || c.Reconciles != 1 || c.Writes != 1 || len(r.Calls()) != 1 {
		t.Errorf("it ended %s, %+v", r.Outcome(), c)
	}
	if then := tl.At(stopped).Reconcile(1); then.Outcome() != OutcomeAborted || len(then.Calls()) != 0 {
		t.Errorf("when the operator was stopped it was %s, %d calls", then.Outcome(), len(then.Calls()))
	}
	if plain := plainOf(t, j, English); !strings.Contains(plain, "#1 ") || !strings.Contains(plain, "create Word a-1") {
		t.Errorf("plain text: %s", plain)
	}
}

// plainOf returns a journal as plain text.
func plainOf(t *testing.T, j *Journal, l Language) string {
	t.Helper()
	var b bytes.Buffer
	p := NewPrinter(&b, j, PrintOptions{Language: l})
	if err := p.Update(); err != nil {
		t.Fatal(err)
	}
	if err := p.Summary(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
