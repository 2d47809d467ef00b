// Package collector keeps the garbage collector from running until main begins, which calls [Start], and then until there is
// something to collect. What is allocated while 1,300 packages are initialized stays in use: without collections in
// between, a process of the binary needs a sixth less CPU time until main; and most command lines end before the first.
//
// It is initialized before them for the reason told in the package early. Only main imports it, and what only main
// imports: whoever did and did not call Start would never collect garbage.
package collector

import (
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// percent is the garbage collector's percentage as it was.
var percent = debug.SetGCPercent(-1)

// first is the size in bytes of the memory of this process at which garbage is collected for the first time, about twice
// that at the beginning of main.
const first = 64 << 20

// Start lets the garbage collector run once the process has grown, and as it did from then on, or as somebody else has set
// it in the meantime.
func Start() {
	limit := debug.SetMemoryLimit(-1)
	if percent < 0 || limit <= first {
		debug.SetGCPercent(percent)
		return
	}
	debug.SetMemoryLimit(first)
	collected := &struct{ next *int }{} // garbage that the first collection finds
	runtime.AddCleanup(collected, func(limit int64) {
		debug.SetMemoryLimit(limit)
		if set := debug.SetGCPercent(percent); set >= 0 {
			debug.SetGCPercent(set)
		}
	}, limit)
}

// RunSeldom lets the garbage collector run less often while a program of a sandbox starts, which is all allocation: the control
// plane is ready an eighth sooner. Afterwards memory counts again, and what starting left is given back.
func RunSeldom(starting time.Duration) {
	if os.Getenv("GOGC") != "" {
		return // set by the user
	}
	const usual = 100 // Go's default. What is set now says nothing: this package has switched the collector off.
	debug.SetGCPercent(400)
	time.AfterFunc(starting, func() {
		debug.SetGCPercent(usual)
		debug.FreeOSMemory()
	})
}
