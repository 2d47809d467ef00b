package collector

import (
	"context"
	"fmt"
	"runtime/debug"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// TestTheCollectorRunsAfterTheStart: main has switched the garbage collector off until the first collection, and it has to run
// as usual once a program has started.
func TestTheCollectorRunsAfterTheStart(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(-1)
	defer debug.SetGCPercent(before)
	RunSeldom(time.Millisecond)
	sandboxtest.Eventually(t, "the collector to run as usual", func(context.Context) error {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		if now != 100 {
			return fmt.Errorf("it runs at %d", now)
		}
		return nil
	})
}
