package collector

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestStart checks what the collector runs at after the first collection: as it did at first, or as somebody has set it before.
func TestStart(t *testing.T) {
	usual := percent
	defer debug.SetGCPercent(usual)
	limit := debug.SetMemoryLimit(-1)
	for _, set := range []int{-1, 400} {
		debug.SetGCPercent(set)
		Start()
		sandboxtest.Eventually(t, "the first collection to be over", func(context.Context) error {
			runtime.GC()
			if debug.SetMemoryLimit(-1) != limit {
				return errors.New("memory is still limited")
			}
			return nil
		})
		want := usual
		if set >= 0 {
			want = set
		}
		got := -1
		sandboxtest.Eventually(t, "the collector to be set", func(context.Context) error {
			if got = debug.SetGCPercent(usual); got >= 0 {
				debug.SetGCPercent(got)
				return nil
			}
			debug.SetGCPercent(got)
			return errors.New("it is off")
		})
		if got != want {
			t.Errorf("set to %d before the first collection it runs at %d, want %d", set, got, want)
		}
	}
}
