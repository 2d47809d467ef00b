package trace

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// hotRun is the minimum number of consecutive self-caused reconciles of a hot loop.
const hotRun = 12

// Hot describes a hot loop: a loop that wakes itself without end.
type Hot struct {
	QueueKey
	// Object is the object that it writes again and again.
	Object Ref
	// Field is the field that changes again and again, such as status.lastSeen; empty if the writes change nothing that
	// is known.
	Field string
	// Values are the oldest values of the field, without consecutive repetitions; at most four.
	Values []string
	// Reconciles is the number of reconciles in the run, the newest of the key.
	Reconciles int
}

// Hot returns whether a key's newest reconciles form a hot loop: twelve or more in a row, each woken by the operator's
// own write and by nothing else, that created and deleted nothing and changed the same field of the same object, in
// every reconcile or in every other one. A loop that makes progress creates, deletes, does different things, or ends.
func (s *State) Hot(key QueueKey) (Hot, bool) {
	var reconciles []*Reconcile
	for _, reconcile := range s.finished {
		if reconcile.queueKey() == key {
			reconciles = append(reconciles, reconcile)
		}
	}
	return s.hot(key, reconciles)
}

// HotLoops returns all hot loops; see [State.Hot].
func (s *State) HotLoops() map[QueueKey]Hot {
	byKey := map[QueueKey][]*Reconcile{}
	for _, reconcile := range s.finished {
		byKey[reconcile.queueKey()] = append(byKey[reconcile.queueKey()], reconcile)
	}
	all := map[QueueKey]Hot{}
	for key, reconciles := range byKey {
		if hot, is := s.hot(key, reconciles); is {
			all[key] = hot
		}
	}
	return all
}

// hot checks the finished reconciles of a key.
func (s *State) hot(key QueueKey, reconciles []*Reconcile) (Hot, bool) {
	if len(reconciles) < hotRun {
		return Hot{}, false
	}
	var writes []*Event // one per reconcile, newest first
	for _, reconcile := range slices.Backward(reconciles) {
		write := changedOneObject(reconcile)
		if write == nil || !s.wokeItself(reconcile) || len(writes) > 0 && !sameObject(write, writes[0]) {
			break
		}
		writes = append(writes, write)
	}
	if len(writes) < hotRun {
		return Hot{}, false
	}
	hot := Hot{QueueKey: key, Object: writes[0].Object, Reconciles: len(writes)}
	values := map[string][]string{}
	for _, write := range slices.Backward(writes) {
		for path, value := range ChangedFields(write.Before, write.After) {
			values[path] = append(values[path], value)
		}
	}
	if len(values) == 0 {
		return hot, true
	}
	hot.Field = mostChanged(values)
	if 2*len(values[hot.Field]) < hot.Reconciles-1 { // every other one; the other field may have one more
		return Hot{}, false
	}
	hot.Values = slices.Compact(values[hot.Field])
	hot.Values = hot.Values[:min(4, len(hot.Values))]
	return hot, true
}

func sameObject(a, b *Event) bool {
	return a.Object.Kind == b.Object.Kind && a.Object.Key() == b.Object.Key()
}

// wokeItself reports whether only the operator's own writes are known to have caused a reconcile.
func (s *State) wokeItself(reconcile *Reconcile) bool {
	if len(reconcile.Woken) == 0 {
		return false
	}
	for _, e := range reconcile.Woken {
		if e.Probably || !s.Wake(e).Own {
			return false
		}
	}
	return true
}

// changedOneObject returns the newest write of a reconcile if the reconcile changed exactly one object and neither
// created nor deleted any; else nil.
func changedOneObject(reconcile *Reconcile) *Event {
	var write *Event
	for _, e := range reconcile.Calls() {
		if !e.IsWrite() || e.Error != "" || e.Via == ViaRecorder || e.NoOp {
			continue
		}
		switch e.Verb {
		case VerbUpdate, VerbPatch, VerbApply:
		default:
			return nil
		}
		if e.Before == nil || write != nil && !sameObject(write, e) {
			return nil
		}
		write = e
	}
	return write
}

// mostChanged returns the field with the most values; of several the first by name.
func mostChanged(values map[string][]string) (most string) {
	for _, path := range slices.Sorted(maps.Keys(values)) {
		if len(values[path]) > len(values[most]) {
			most = path
		}
	}
	return most
}

// ChangedFields returns the paths of the fields that differ, with their new values. Metadata that the API server itself
// changes is left out.
func ChangedFields(before, after json.RawMessage) map[string]string {
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
