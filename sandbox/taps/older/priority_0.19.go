//go:build ignore

package taps

import "time"

// addOpts are the options with which a key is added. Before v0.20 controller-runtime's queue has no priorities.
type addOpts struct {
	After       time.Duration
	RateLimited bool
	Priority    int
}

// priorityOf returns the priority asked for.
func priorityOf(o addOpts) int { return o.Priority }
