package verify_test

import (
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/scenarios/verify"
)

// BenchmarkExplore measures how many plans of a small operator are played in a second.
func BenchmarkExplore(b *testing.B) {
	scenario := written(b, keep)
	played, took := 0, time.Duration(0)
	for range b.N {
		began := time.Duration(0)
		r, err := explore(b, keeperWith(mended), scenario, verify.Options{
			Progress: func(p verify.Progress) { began = p.Elapsed },
		})
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range r.Faults {
			played += f.Played
		}
		took += began
	}
	b.ReportMetric(0, "ns/op") // not meaningful here
	b.ReportMetric(float64(played)/took.Seconds(), "plans/s")
	b.ReportMetric(float64(played)/float64(b.N), "plans")
}
