//go:build go1.23

package trace

import (
	"bytes"
	"encoding/json"
	"time"
)

// generationSize bounds how many writes a joiner remembers: at least this many, at most twice as many. A write's watch
// event follows within milliseconds; after thousands of other writes it was lost.
const generationSize = 4096

// joiner matches watch events with the writes that caused them. The API server gives every version of an object its own
// resourceVersion, so the join by UID and resourceVersion is exact. Only a DELETED event, whose version no call
// returned, is joined by UID.
type joiner struct {
	recent, older map[version]recordedWrite
}

// recordedWrite says which event tells of a write, and when it was recorded.
type recordedWrite struct {
	seq int64
	at  time.Duration
}

// version identifies one version of an object; rv is empty for its deletion.
type version struct{ uid, rv string }

// put remembers a write.
func (j *joiner) put(v version, w recordedWrite) {
	if j.recent == nil {
		j.recent = map[version]recordedWrite{}
	}
	if len(j.recent) >= generationSize {
		j.older, j.recent = j.recent, map[version]recordedWrite{}
	}
	j.recent[v] = w
}

// get returns a write, or the zero value.
func (j *joiner) get(v version) recordedWrite {
	if w, ok := j.recent[v]; ok {
		return w
	}
	return j.older[v]
}

// writeVersions returns the versions whose watch events a call causes: none for reads, dry runs, failures and writes
// without effect.
func writeVersions(e *Event) []version {
	if e.Kind != KindCall || !e.IsWrite() || e.Error != "" || e.Object.UID == "" || e.NoOp || e.Via == ViaDryRun {
		return nil
	}
	switch {
	case endsObject(e):
		return []version{{e.Object.UID, ""}}
	case e.ResourceVersion != "":
		return []version{{e.Object.UID, e.ResourceVersion}}
	}
	return nil
}

// endsObject reports whether an object is gone after a write: a delete, unless that waits for finalizers or a grace period,
// or any write that removed the last finalizer of an object that is being deleted. The answer to the latter has the version
// of the write before it, which is not its own. A delete is answered with the object that is being deleted, with one that is gone as
// it was, or with a Status.
func endsObject(e *Event) bool {
	deletes := e.Verb == VerbDelete
	if deletes && e.ResourceVersion == "" {
		return true
	}
	if !bytes.Contains(e.After, []byte(`"deletionTimestamp"`)) {
		return deletes && len(e.After) > 0 // without parsing, because every write comes here
	}
	var namespace struct{ Spec struct{ Finalizers []string } }
	if e.Object.Kind == "Namespace" && json.Unmarshal(e.After, &namespace) == nil && len(namespace.Spec.Finalizers) > 0 {
		return false // it has finalizers of its own
	}
	m := parseMeta(e.After)
	return m.Deleting && len(m.Finalizers) == 0 && m.Grace == 0
}

// echoOf returns the version of the write that caused a watch event.
func echoOf(e *Event) version {
	if e.Verb == Deleted {
		return version{e.Object.UID, ""}
	}
	return version{e.Object.UID, e.ResourceVersion}
}

// join sets the cause of a watch event to the write that caused it, and remembers writes. begun is when a call began. The
// caller holds the journal's lock.
//
// Of two writes whose answers have the same version, one changed nothing, though its sender may not have known that version
// yet. It is the later one. An operator's call is recorded when its answer is there, others' a little later: so that another
// call that began before the operator's was recorded is taken for the one that wrote.
func (j *Journal) join(e *Event, begun time.Duration) {
	switch e.Kind {
	case KindWatch:
		if e.Cause == 0 && e.Object.UID != "" && !e.Initial {
			e.Cause = j.writes.get(echoOf(e)).seq
		}
	case KindCall:
		for _, v := range writeVersions(e) {
			earlier := j.writes.get(v)
			if v.rv != "" && earlier.seq != 0 && (e.Operator != "" || begun >= earlier.at) {
				e.NoOp = true
				continue
			}
			j.writes.put(v, recordedWrite{e.Seq, e.At})
		}
	}
}
