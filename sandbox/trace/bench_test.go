package trace

import (
	"fmt"
	"runtime"
	"testing"
)

// busy returns a journal of n events of a busy operator: the recorded tour repeated with different objects.
func busy(tb testing.TB, n int) *Journal {
	tb.Helper()
	events := tour(tb).Since(0)
	j := New(Options{MaxEvents: n})
	for i := range n {
		e := *events[i%len(events)]
		round := int64(i / len(events))
		base := round * int64(len(events))
		if e.Cause > 0 {
			e.Cause += base
		}
		if e.Reconcile > 0 {
			e.Reconcile += round * 20
		}
		if e.ResourceVersion != "" {
			e.ResourceVersion = fmt.Sprintf("%d%s", round+1, e.ResourceVersion)
		}
		e.At = 0
		e.Before = nil
		if e.After != nil {
			e.After = append([]byte(nil), e.After...)
		}
		j.Append(e)
	}
	return j
}

func BenchmarkAppend(b *testing.B) {
	j := New(Options{})
	e := *tour(b).Get(10)
	b.ReportAllocs()
	for b.Loop() {
		j.Append(e)
	}
}

// BenchmarkUpdate folds 100,000 events, as a reader of a long journal does.
func BenchmarkUpdate(b *testing.B) {
	j := busy(b, 100_000)
	for b.Loop() {
		NewTimeline(j).Update()
	}
}

// BenchmarkRewind moves the cursor in a journal of 100,000 events.
func BenchmarkRewind(b *testing.B) {
	j := busy(b, 100_000)
	t := NewTimeline(j)
	t.Update()
	n := int64(0)
	for b.Loop() {
		n = (n + 7919) % 100_000
		t.At(n)
	}
}

// BenchmarkMemory reports the memory of a journal of 100,000 events, and of a
// timeline over it.
func BenchmarkMemory(b *testing.B) {
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	for b.Loop() {
		before := heap()
		j := busy(b, 100_000)
		journal := heap()
		t := NewTimeline(j)
		t.Update()
		timeline := heap()
		b.ReportMetric(journal-before, "MiB/journal")
		b.ReportMetric(timeline-journal, "MiB/timeline")
		runtime.KeepAlive(t)
	}
}
