package members

import (
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// WriteSum adds up writes, beginning with the first acknowledged one, because the cluster may not exist before. The
// zero value is ready to use.
type WriteSum struct {
	// OK and Failed count the acknowledged and the failed writes.
	OK, Failed int
	// Longest is the longest time from one acknowledgement to the next, or to the last failure.
	Longest time.Duration
	// Gap is the length of the last period without acknowledgements in which writes failed.
	Gap time.Duration
	// Failing reports whether the newest write failed.
	Failing bool
	// Problem is the reason of the last failure.
	Problem string

	acknowledged, sent time.Time
}

// Add adds a write, and reports whether it counts.
func (s *WriteSum) Add(w Write) bool {
	came := w.Sent.Add(w.Latency)
	switch {
	case w.Err == nil:
		if s.OK > 0 {
			s.Longest = max(s.Longest, came.Sub(s.acknowledged))
		}
		if s.Failing {
			s.Gap = came.Sub(s.acknowledged)
		}
		s.OK++
		if came.After(s.acknowledged) {
			s.acknowledged = came
		}
	case s.OK == 0:
		return false
	default:
		s.Failed++
		s.Problem = w.Problem()
		s.Longest = max(s.Longest, came.Sub(s.acknowledged))
	}
	if !w.Sent.Before(s.sent) { // a late failure says nothing about newer writes
		s.sent, s.Failing = w.Sent, w.Err != nil
	}
	return true
}

// Print writes the summary in one line.
func (s *WriteSum) Print(out io.Writer) error {
	line := fmt.Sprintf("%d writes acknowledged, %d failed; longest time without an acknowledgement %s", s.OK, s.Failed, trace.FormatDuration(s.Longest))
	if s.Problem != "" {
		line += "; the last failure: " + s.Problem
	}
	_, err := fmt.Fprintln(out, line)
	return err
}

// WriteRecorder writes the outcomes of writes into a journal: once a second, and at once when they begin to fail or to
// succeed again. It must be used by one goroutine only.
type WriteRecorder struct {
	journal  *trace.Journal
	cluster  types.NamespacedName
	endpoint string

	sum  WriteSum
	told WriteSum
	at   time.Time
	// switched is the time of the last event about writes that began to fail or to succeed again.
	switched time.Time
}

// NewWriteRecorder returns a recorder of the writes to a cluster.
func NewWriteRecorder(journal *trace.Journal, cluster types.NamespacedName, endpoint string) *WriteRecorder {
	return &WriteRecorder{journal: journal, cluster: cluster, endpoint: endpoint}
}

// leastSwitch is the least time between two such events when writes fail and succeed in turns.
const leastSwitch = 250 * time.Millisecond

// Record adds the outcome of a write.
func (r *WriteRecorder) Record(w Write) {
	first := r.sum.OK == 0
	if !r.sum.Add(w) {
		return
	}
	now := w.Sent.Add(w.Latency)
	switch {
	case first, r.sum.Failing != r.told.Failing && now.Sub(r.switched) >= leastSwitch:
		r.tell(trace.VerbSwitch, now)
		r.switched = now
	case now.Sub(r.at) >= leastTick:
		r.tell(trace.VerbAnswer, now)
	}
}

// Over records that there is no longer a cluster to write to.
func (r *WriteRecorder) Over() {
	if r.sum.OK == 0 {
		return
	}
	r.sum.Failing = false
	r.tell(trace.VerbStop, time.Now())
	*r = WriteRecorder{journal: r.journal, cluster: r.cluster, endpoint: r.endpoint}
}

func (r *WriteRecorder) tell(verb string, now time.Time) {
	e := trace.Event{
		Kind: trace.KindWrites, Actor: Writes, Verb: verb, Object: Object(r.cluster), Count: r.sum.OK - r.told.OK,
		Duration: r.sum.Longest,
	}
	payload := trace.WritesPayload{Endpoint: r.endpoint, Failed: r.sum.Failed - r.told.Failed}
	if !r.at.IsZero() {
		e.Delay = max(0, now.Sub(r.at))
	}
	failing := r.sum.Failing
	if verb == trace.VerbAnswer {
		failing = r.told.Failing // only a switch event reports the change
	}
	switch {
	case failing:
		e.Error = r.sum.Problem
	case r.told.Failing && verb == trace.VerbSwitch:
		payload.Gap = trace.FormatDuration(r.sum.Gap)
	}
	e.Values = payload.Values()
	r.journal.Append(e)
	r.told, r.at = r.sum, now
	r.told.Failing = failing
}
