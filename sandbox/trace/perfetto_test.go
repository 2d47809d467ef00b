package trace

import (
	"bytes"
	"encoding/json"
	"testing"
)

// perfettoOf writes a journal as a trace and reads it again.
func perfettoOf(tb testing.TB, j *Journal) []perfettoEvent {
	tb.Helper()
	var out bytes.Buffer
	if err := WritePerfetto(&out, j, English); err != nil {
		tb.Fatal(err)
	}
	var file struct {
		Events []perfettoEvent `json:"traceEvents"`
	}
	if err := json.Unmarshal(out.Bytes(), &file); err != nil {
		tb.Fatal(err)
	}
	return file.Events
}

// wellFormed checks what the format demands: slices of a thread nest, threads have names, arrows begin and end once, each
// on a slice.
func wellFormed(tb testing.TB, events []perfettoEvent) (phases map[string]int) {
	tb.Helper()
	type thread struct{ process, thread int }
	slices, named, flows := map[thread][]perfettoEvent{}, map[thread]bool{}, map[int]string{}
	phases = map[string]int{}
	for _, e := range events {
		on := thread{e.Process, e.Thread}
		phases[e.Phase]++
		switch e.Phase {
		case "M":
			named[on] = true
		case "X":
			if e.Duration == nil || *e.Duration < 0 || e.Time < 0 {
				tb.Fatalf("a slice without a length: %+v", e)
			}
			for _, other := range slices[on] {
				end, otherEnd := e.Time+*e.Duration, other.Time+*other.Duration
				apart := end <= other.Time+0.0005 || otherEnd <= e.Time+0.0005
				inside := e.Time >= other.Time && end <= otherEnd+0.0005
				if !apart && !inside {
					tb.Fatalf("slices overlap: %+v and %+v", other, e)
				}
			}
			slices[on] = append(slices[on], e)
		}
	}
	bound := func(e perfettoEvent) bool {
		for _, s := range slices[thread{e.Process, e.Thread}] {
			if s.Time <= e.Time && e.Time <= s.Time+*s.Duration {
				return true
			}
		}
		return false
	}
	for _, e := range events {
		switch e.Phase {
		case "s", "f":
			if !bound(e) {
				tb.Fatalf("an arrow at no slice: %+v", e)
			}
			if flows[e.ID] += e.Phase; e.Phase == "f" && e.Binding != "e" {
				tb.Fatalf("an arrow to the next slice: %+v", e)
			}
		}
	}
	for id, phases := range flows {
		if phases != "sf" {
			tb.Fatalf("arrow %d is %q", id, phases)
		}
	}
	for on := range slices {
		if !named[on] {
			tb.Fatalf("%+v has no name", on)
		}
	}
	return phases
}

func TestPerfetto(t *testing.T) {
	j := tour(t)
	events := perfettoOf(t, j)
	phases := wellFormed(t, events)
	timeline := NewTimeline(j)
	timeline.Update()
	reconciles := 0
	for _, e := range events {
		if e.Category == "reconcile" {
			reconciles++
		}
	}
	if want := len(timeline.Tip().Reconciles()); reconciles != want {
		t.Errorf("%d reconciles, not %d", reconciles, want)
	}
	if phases["s"] == 0 || phases["i"] == 0 {
		t.Errorf("no arrows or no instants: %v", phases)
	}
	wellFormed(t, perfettoOf(t, New(Options{})))
}

// TestPerfettoAtOnce checks that what happens at once is on several threads.
func TestPerfettoAtOnce(t *testing.T) {
	j := New(Options{})
	for id, name := range []string{"", "a", "b"} {
		if id > 0 {
			j.Append(Event{At: 10, Kind: KindDequeue, Operator: "o", Controller: "c", Key: Key{Name: name}, Reconcile: int64(id)})
		}
	}
	call := Event{At: 90, Duration: 50, Kind: KindCall, Operator: "o", Controller: "c", Key: Key{Name: "a"}, Reconcile: 1, Verb: VerbGet}
	j.Append(call)
	call.At = 95
	j.Append(call)
	j.Append(Event{At: 100, Kind: KindEnd, Operator: "o", Controller: "c", Key: Key{Name: "a"}, Reconcile: 1, Outcome: OutcomeDone})
	j.Append(Event{At: 110, Kind: KindNote, Message: "b is running"})
	events := perfettoOf(t, j)
	wellFormed(t, events)
	threads := map[int]bool{}
	for _, e := range events {
		if e.Phase == "X" {
			threads[e.Thread] = true
		}
	}
	if len(threads) != 3 {
		t.Errorf("%d threads, not two workers and one for the calls at once: %+v", len(threads), events)
	}
}
