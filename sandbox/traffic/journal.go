package traffic

import (
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Actor is who asks, in a journal.
const Actor = "traffic"

// Recorder writes answers into a journal, from the first success on: before that there is nothing to be asked yet. It
// belongs to one goroutine.
type Recorder struct {
	journal *trace.Journal
	url     string

	begun bool
	last  string
}

// NewRecorder returns a recorder of the answers of a URL.
func NewRecorder(journal *trace.Journal, url string) *Recorder {
	return &Recorder{journal: journal, url: url}
}

// Record writes an answer, and whether it is another than the one before.
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
		Duration: a.Latency, Values: []string{r.url},
	})
}
