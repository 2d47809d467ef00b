package trace

import "bytes"

// generationSize bounds how many writes a joiner remembers: at least this
// many, at most twice as many. A write's watch event follows within
// milliseconds, so thousands of writes in between mean the watch was lost.
const generationSize = 4096

// joiner knows which watch event is the echo of which write. The API server
// gives every version of an object its own resourceVersion, so the join by
// uid and resourceVersion is exact; only a DELETED event, whose version nobody
// was told, is joined by uid.
type joiner struct {
	recent, older map[version]int64
}

// version names one version of one object; rv is empty for its end.
type version struct{ uid, rv string }

// put remembers the Seq of a write.
func (j *joiner) put(v version, seq int64) {
	if j.recent == nil {
		j.recent = map[version]int64{}
	}
	if len(j.recent) >= generationSize {
		j.older, j.recent = j.recent, map[version]int64{}
	}
	j.recent[v] = seq
}

// get returns the Seq of a write, or 0.
func (j *joiner) get(v version) int64 {
	if seq := j.recent[v]; seq != 0 {
		return seq
	}
	return j.older[v]
}

// writeVersions returns the versions whose watch events a call brings about:
// none for reads, failures and writes without effect.
func writeVersions(e *Event) []version {
	if e.Kind != KindCall || !e.IsWrite() || e.Error != "" || e.Object.UID == "" || e.NoOp {
		return nil
	}
	var out []version
	if e.ResourceVersion != "" {
		out = append(out, version{e.Object.UID, e.ResourceVersion})
	}
	// A delete that finalizers (or a grace period) hold up answers with a
	// version: somebody else's write will end the object.
	if e.Verb == VerbDelete && e.ResourceVersion == "" || e.After != nil && endsObject(e) {
		out = append(out, version{e.Object.UID, ""})
	}
	return out
}

// endsObject reports whether a write took away the last finalizer of an object
// that is being deleted: the object is gone, although the call was no delete.
func endsObject(e *Event) bool {
	if !bytes.Contains(e.After, []byte(`"deletionTimestamp"`)) {
		return false // without parsing: this is called for every write
	}
	m := parseMeta(e.After)
	return m.Deleting && len(m.Finalizers) == 0
}

// echoOf returns the version under which a watch event's write is found.
func echoOf(e *Event) version {
	if e.Verb == Deleted {
		return version{e.Object.UID, ""}
	}
	return version{e.Object.UID, e.ResourceVersion}
}

// join sets the cause of a watch event that echoes a write, and remembers
// writes. The caller holds the journal's lock.
func (j *Journal) join(e *Event) {
	switch e.Kind {
	case KindWatch:
		if e.Cause == 0 && e.Object.UID != "" && !e.Initial {
			e.Cause = j.writes.get(echoOf(e))
		}
	case KindCall:
		for _, v := range writeVersions(e) {
			j.writes.put(v, e.Seq)
		}
	}
}
