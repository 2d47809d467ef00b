//go:build go1.23

package taps

// readyHeap orders the items that may be taken: by priority, then first in, first out.
type readyHeap []*item

// Len is part of heap.Interface.
func (h readyHeap) Len() int { return len(h) }

// Less is part of heap.Interface.
func (h readyHeap) Less(i, k int) bool {
	if h[i].priority != h[k].priority {
		return h[i].priority > h[k].priority
	}
	return h[i].order < h[k].order
}

// Swap is part of heap.Interface.
func (h readyHeap) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].index, h[k].index = i, k
}

// Push is part of heap.Interface.
func (h *readyHeap) Push(x any) {
	it := x.(*item)
	it.index = len(*h)
	*h = append(*h, it)
}

// Pop is part of heap.Interface.
func (h *readyHeap) Pop() any {
	old := *h
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	it.index = -1
	return it
}

// waitingHeap orders the items whose timers are running, the earliest first.
type waitingHeap []*item

// Len is part of heap.Interface.
func (h waitingHeap) Len() int { return len(h) }

// Less is part of heap.Interface.
func (h waitingHeap) Less(i, k int) bool {
	if !h[i].readyAt.Equal(h[k].readyAt) {
		return h[i].readyAt.Before(h[k].readyAt)
	}
	return readyHeap(h).Less(i, k)
}

// Swap is part of heap.Interface.
func (h waitingHeap) Swap(i, k int) { readyHeap(h).Swap(i, k) }

// Push is part of heap.Interface.
func (h *waitingHeap) Push(x any) { (*readyHeap)(h).Push(x) }

// Pop is part of heap.Interface.
func (h *waitingHeap) Pop() any { return (*readyHeap)(h).Pop() }
