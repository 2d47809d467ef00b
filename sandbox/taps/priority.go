//go:build go1.23

package taps

import "sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

// addOpts are the options with which a key is added.
type addOpts = priorityqueue.AddOpts

var (
	_ priorityqueue.PriorityQueue[request] = &queue{}
	_ priorityqueue.PriorityQueue[request] = sourceQueue{}
)

// priorityOf returns the priority asked for; 0 without one.
func priorityOf(o addOpts) int {
	if o.Priority == nil {
		return 0
	}
	return *o.Priority
}
