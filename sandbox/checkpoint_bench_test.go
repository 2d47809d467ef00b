package sandbox_test

import (
	"fmt"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox"
)

// BenchmarkUndo is how long a checkpoint takes, and a restore until everything can be used again, beside a plain start of
// the same sandbox.
func BenchmarkUndo(b *testing.B) {
	warm(b)
	for _, nodes := range []int{0, 1} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			var starts, checkpoints, restores series
			for range b.N {
				var s *sandbox.Sandbox
				starts.time(func() {
					s = must(b, func() (*sandbox.Sandbox, error) {
						return sandbox.Start(b.Context(), sandbox.Options{StateDir: stateDir, Ephemeral: true, Nodes: nodes})
					})
				})
				firstWrite(b, s.Config())
				var point *sandbox.Checkpoint
				checkpoints.time(func() {
					point = must(b, func() (*sandbox.Checkpoint, error) { return s.Checkpoints().Save(b.Context(), "bench") })
				})
				firstWrite(b, s.Config())
				restores.time(func() { check(b, s.Checkpoints().Restore(b.Context(), point)) })
				firstWrite(b, s.Config())
				check(b, s.Stop())
			}
			report(b, "start", starts)
			report(b, "checkpoint", checkpoints)
			report(b, "restore", restores)
			b.ReportMetric(float64(restores.median())/float64(starts.median()), "restore-ratio")
		})
	}
}
