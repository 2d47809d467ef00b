package remote

import "slices"

// forgetEvery is after how many events numbers are forgotten that nothing can refer to any more.
const forgetEvery = 1024

// seqs are the numbers of the process's events in the lab's journal.
type seqs struct {
	base  int64   // the process's number of the first of them
	local []int64 // 0 for an event that the lab's journal does not have
}

// put adds the event after the last one. A gap forgets all before it.
func (s *seqs) put(remote, local int64) {
	if remote != s.base+int64(len(s.local)) {
		s.base, s.local = remote, s.local[:0]
	}
	s.local = append(s.local, local)
}

// get returns the lab's number of an event; 0 if it is not known.
func (s *seqs) get(remote int64) int64 {
	if i := remote - s.base; i >= 0 && i < int64(len(s.local)) {
		return s.local[i]
	}
	return 0
}

// forget forgets the events that the lab's journal has forgotten, whose first one is given; not before they are most, so
// that the others are seldom copied.
func (s *seqs) forget(first int64) {
	n := slices.IndexFunc(s.local, func(seq int64) bool { return seq >= first })
	if n > len(s.local)/2 {
		s.base, s.local = s.base+int64(n), slices.Clone(s.local[n:])
	}
}

// lateReconciles is how many ended reconciles are remembered, for the events that their goroutines record late.
const lateReconciles = 4096

// numbers are the numbers of the process's reconciles in the lab's journal.
type numbers struct {
	of   map[int64]int64
	over []int64 // the process's numbers of those that ended, oldest first
}

func (n *numbers) add(remote, local int64) { n.of[remote] = local }

// ended forgets the oldest of the reconciles that ended, when they are many.
func (n *numbers) ended(remote int64) {
	if n.of[remote] == 0 {
		return
	}
	if n.over = append(n.over, remote); len(n.over) > lateReconciles {
		delete(n.of, n.over[0])
		n.over = n.over[1:]
	}
}
