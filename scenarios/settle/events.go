package settle

import (
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// IsWrite reports whether an event is a write that changed something.
func IsWrite(e *trace.Event) bool {
	return e.Kind == trace.KindCall && e.IsWrite() && !e.NoOp && e.Error == ""
}

// IsChange reports whether an event is a write that changed something that operators manage: no Lease, which is renewed for ever,
// and no Event, which a journal has with the object that it is about if an operator's recorder wrote it.
func IsChange(e *trace.Event) bool {
	return IsWrite(e) && e.Via != trace.ViaRecorder && e.Object.Kind != "Lease" && e.Object.Kind != "Event"
}

// NextTimer returns the time until the first timer of a key runs out, and false if there is none.
func NextTimer(s *trace.State, now time.Duration) (time.Duration, bool) {
	for _, item := range s.Queue() { // those that wait are sorted by time
		if !item.Ready {
			return max(0, item.Due-now), true
		}
	}
	return 0, false
}
