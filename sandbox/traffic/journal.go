package traffic

import (
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Actor is the actor of all entries that a [Recorder] writes.
const Actor = "traffic"

// Recorder writes answers into a journal. It ignores failures before the first success, because the service may not
// exist yet. A Recorder must be used by one goroutine only.
type Recorder struct {
	journal *trace.Journal
	url     string

	begun bool
	last  string
}

// NewRecorder returns a recorder of the answers of the given URL.
func NewRecorder(journal *trace.Journal, url string) *Recorder {
	return &Recorder{journal: journal, url: url}
}

// Record writes an answer. The entry's verb is VerbSwitch when the text differs from the answer before, else
// VerbAnswer.
func (r *Recorder) Record(a Answer) {
	if !r.begun && !a.OK() {
		return
	}
	verb, text := trace.VerbAnswer, a.Text()
	if !r.begun || text != r.last {
		verb = trace.VerbSwitch
	}
	r.begun, r.last = true, text
	r.journal.Append(trace.Event{
		Kind: trace.KindTraffic, Actor: Actor, Verb: verb, Status: a.Status, Message: a.Body, Error: a.Problem(),
		Duration: a.Latency, Values: trace.TrafficValues(r.url),
	})
}
