package trace

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
)

// hotRun is how many reconciles in a row a loop must have brought about itself to be called hot.
const hotRun = 12

// Hot is a loop that wakes itself without end.
type Hot struct {
	QueueKey
	// Object that it writes again and again.
	Object Ref
	// Field that differs each time, such as status.lastSeen; empty when the writes change nothing that is known.
	Field string
	// Values that the field had, oldest first, without repetitions in a row; at most four.
	Values []string
	// Reconciles in the run, the newest ones of the key.
	Reconciles int
}

// Hot returns whether a key's newest reconciles form a hot loop: twelve or more in a row, each woken by the operator's own
// write and by nothing else, that created and deleted nothing and changed the same fields of the same object each time. A
// loop that makes progress creates, deletes, or comes to an end.
func (s *State) Hot(key QueueKey) (Hot, bool) {
	var run []*Span
	for _, span := range slices.Backward(s.finished) {
		if span.Operator != key.Operator || span.Controller != key.Controller || span.Key != key.Key {
			continue
		}
		if !s.wokeItself(span) || changedOneObject(span) == nil {
			break
		}
		run = append(run, span)
	}
	if len(run) < hotRun {
		return Hot{}, false
	}
	slices.Reverse(run)
	hot := Hot{QueueKey: key, Object: changedOneObject(run[0]).Object, Reconciles: len(run)}
	fields := map[string]int{}
	values := map[string][]string{}
	for _, span := range run {
		write := changedOneObject(span)
		if write.Object.Key() != hot.Object.Key() || write.Object.Kind != hot.Object.Kind {
			return Hot{}, false
		}
		for path, value := range changedFields(write.Before, write.After) {
			fields[path]++
			values[path] = append(values[path], value)
		}
	}
	hot.Field = alwaysChanged(fields, len(run))
	if hot.Field != "" {
		hot.Values = slices.Compact(values[hot.Field])
		hot.Values = hot.Values[:min(4, len(hot.Values))]
	}
	return hot, true
}

// wokeItself reports whether nothing but the operator's own writes brought a reconcile about.
func (s *State) wokeItself(span *Span) bool {
	if len(span.Woken) == 0 {
		return false
	}
	for _, e := range span.Woken {
		if !s.Wake(e).Own {
			return false
		}
	}
	return true
}

// changedOneObject returns the newest write of a reconcile that changed an object, if it changed that object alone and
// neither created nor deleted any; else nil.
func changedOneObject(span *Span) *Event {
	var write *Event
	for _, e := range span.Calls() {
		if !e.IsWrite() || e.Error != "" || e.Via == ViaRecorder || e.NoOp {
			continue
		}
		switch e.Verb {
		case VerbUpdate, VerbPatch, VerbApply:
		default:
			return nil
		}
		if e.Before == nil || write != nil && (write.Object.Kind != e.Object.Kind || write.Object.Key() != e.Object.Key()) {
			return nil
		}
		write = e
	}
	return write
}

// alwaysChanged returns the field that each of n writes changed, the first by name; empty if there is none.
func alwaysChanged(fields map[string]int, n int) string {
	var always []string
	for path, times := range fields {
		if times == n {
			always = append(always, path)
		}
	}
	sort.Strings(always)
	if len(always) == 0 {
		return ""
	}
	return always[0]
}

// changedFields returns the paths of the fields that differ, with their new values. What the API server itself counts up
// is left out.
func changedFields(before, after json.RawMessage) map[string]string {
	var a, b map[string]any
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(after, &b) != nil {
		return nil
	}
	out := map[string]string{}
	compareFields(out, "", a, b)
	return out
}

var countedByServer = map[string]bool{
	"metadata.resourceVersion": true, "metadata.generation": true, "metadata.managedFields": true,
}

func compareFields(out map[string]string, path string, a, b any) {
	if countedByServer[path] {
		return
	}
	x, isMap := a.(map[string]any)
	y, bothMaps := b.(map[string]any)
	if !isMap || !bothMaps {
		if !reflect.DeepEqual(a, b) {
			out[path] = fmt.Sprint(b)
		}
		return
	}
	keys := map[string]bool{}
	for k := range x {
		keys[k] = true
	}
	for k := range y {
		keys[k] = true
	}
	for k := range keys {
		below := k
		if path != "" {
			below = path + "." + k
		}
		compareFields(out, below, x[k], y[k])
	}
}
