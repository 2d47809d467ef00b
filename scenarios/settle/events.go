package settle

import "github.com/operator-lab/operator-lab/sandbox/trace"

// IsWrite reports whether an event is a write that changed something.
func IsWrite(e *trace.Event) bool {
	return e.Kind == trace.KindCall && e.IsWrite() && !e.NoOp && e.Error == ""
}

// IsChange reports whether an event is a write that changed something that operators manage: no Lease, which is renewed for ever,
// and no Event, which a journal has with the object that it is about if an operator's recorder wrote it.
func IsChange(e *trace.Event) bool {
	return IsWrite(e) && e.Via != trace.ViaRecorder && e.Object.Kind != "Lease" && e.Object.Kind != "Event"
}
