// Package usage tells what processes of this machine use, where the system tells it.
package usage

import "time"

// Used is what processes have used.
type Used struct {
	// CPU is the time on all processors since they began, with that of their children which have ended.
	CPU time.Duration
	// Resident is the memory in bytes that they hold now, as ps shows it: memory that several of them share counts for
	// each.
	Resident uint64
}
