package members

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Actors in a journal: who looks at members, and who writes.
const (
	Actor  = "members"
	Writes = "writes"
)

// Recorder writes the memberships that an [Observer] reports into a journal: most changes at once, and those that come
// with each write, such as raft's index, at most once a second. A Recorder must be used by one goroutine only.
type Recorder struct {
	journal *trace.Journal
	told    map[types.NamespacedName]*told
}

type told struct {
	seen trace.Membership
	raw  json.RawMessage
	at   time.Time
}

// NewRecorder returns a recorder.
func NewRecorder(journal *trace.Journal) *Recorder {
	return &Recorder{journal: journal, told: map[types.NamespacedName]*told{}}
}

// leastTick is the least time between two events that only report indexes.
const leastTick = time.Second

// Record records what an [Observer] saw of a cluster.
func (r *Recorder) Record(cluster types.NamespacedName, seen trace.Membership) {
	last := r.told[cluster]
	if last == nil && len(seen.Members) == 0 {
		return // there is no cluster yet
	}
	verb := trace.VerbSwitch
	if last != nil && seen.Same(last.seen) {
		if time.Since(last.at) < leastTick {
			return
		}
		verb = trace.VerbAnswer
	}
	raw, err := json.Marshal(seen)
	if err != nil || last != nil && string(raw) == string(last.raw) {
		return
	}
	e := trace.Event{Kind: trace.KindMembers, Actor: Actor, Verb: verb, Object: Object(cluster), After: raw}
	if last != nil {
		e.Before = last.raw
	}
	r.journal.Append(e)
	r.told[cluster] = &told{seen, raw, time.Now()}
	if seen.Gone {
		delete(r.told, cluster)
	}
}
