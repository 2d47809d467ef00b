package sandbox_test

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox"
)

// TestProcessIsAsItWas checks that a process that imports the package sandbox, as this one does, collects garbage, and finds
// the user's caches: those of Go among them, without which a go command compiles everything again.
func TestProcessIsAsItWas(t *testing.T) {
	percent := debug.SetGCPercent(-1)
	debug.SetGCPercent(percent)
	if percent < 0 && os.Getenv("GOGC") != "off" {
		t.Error("the garbage collector is off")
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	state, err := sandbox.StateDir()
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(dir, state) {
		t.Errorf("the cache directory is %s, in the state directory", dir)
	}
}
