package verify_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/verify"
)

// BenchmarkExplore measures how many plans are played in a second: of a small operator, and of the bundled one that needs no pods.
func BenchmarkExplore(b *testing.B) {
	zundoko, _ := operators.Find("zundoko")
	for _, test := range []struct {
		operator operators.Operator
		scenario *format.Loaded
	}{
		{zoo(mended), written(b, keep)},
		{zundoko, load(b, filepath.Join("..", "zundoko", "demo", "chainsaw-test.yaml"))},
	} {
		b.Run(test.operator.Name, func(b *testing.B) {
			played, took := 0, time.Duration(0)
			for range b.N {
				began := time.Duration(0)
				r, err := explore(b, test.operator, test.scenario, verify.Options{
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
		})
	}
}
