package tui

import (
	"fmt"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// manyEvents is a journal of 100,000 events and 400 objects.
func manyEvents(tb testing.TB) *clockwork {
	tb.Helper()
	c := newClockwork()
	var sims []*sim
	for i := range 8 {
		words := make([]string, 50)
		for k := range words {
			words[k] = "Zun"
		}
		s := newSim(c.journal, c.now, &c.rv, fmt.Sprintf("operator-%d", i), "Hikawa", fmt.Sprintf("demo-%d", i), "Zundoko", words...)
		s.conflict = 7
		s.begin()
		sims = append(sims, s)
	}
	for c.journal.Stats().Last < 100_000 {
		c.run(100*time.Millisecond, sims...)
		for _, s := range sims {
			s.touch()
		}
	}
	return c
}

func sized(tb testing.TB, c *clockwork, w, h int) *Model {
	tb.Helper()
	return modelOf(tb, Options{Journal: c.journal}, w, h)
}

// BenchmarkFrame draws frames over 100,000 events; the target is 16 ms.
func BenchmarkFrame(b *testing.B) {
	c := manyEvents(b)
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}, {250, 100}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			m := sized(b, c, size[0], size[1])
			for b.Loop() {
				m.frame()
			}
		})
	}
}

// BenchmarkLive appends ten events, looks at the journal and draws, as a live loop does on every tick.
func BenchmarkLive(b *testing.B) {
	c := manyEvents(b)
	m := sized(b, c, 200, 50)
	for b.Loop() {
		for range 10 {
			c.journal.Append(trace.Event{Kind: trace.KindLog, At: c.at, Operator: "operator-0", Message: "hello"})
		}
		m.refresh(false)
		m.frame()
	}
}

// BenchmarkRewind moves the cursor by one reconcile and draws.
func BenchmarkRewind(b *testing.B) {
	c := manyEvents(b)
	m := sized(b, c, 200, 50)
	for b.Loop() {
		m.nav().goReconcile(-1)
		if m.cursor() < 1000 {
			m.nav().goLive()
		}
		m.frame()
	}
}

// BenchmarkOpen folds the whole journal, as opening a recording does once.
func BenchmarkOpen(b *testing.B) {
	c := manyEvents(b)
	for b.Loop() {
		sized(b, c, 200, 50).frame()
	}
}
