package trace

import "encoding/json"

// Change returns the object before and after a write, for a diff of what it changed, or would change. Either may be nil.
//
// A server-side apply that is held or failed has in After only the fields that it sent; the others stay as they are. So of
// the object before, it returns these fields only. Items of a list are those of the same name, type or key.
func (e *Event) Change() (before, after json.RawMessage) {
	before, after = e.Before, e.After
	switch {
	case e.Verb == VerbDelete || e.Verb == VerbDeleteAll:
		if e.ResourceVersion == "" || len(after) == 0 {
			after = nil // the object is deleted
		}
	case e.Verb == VerbApply && (e.Kind == KindHold || e.Error != "") && len(before) > 0 && len(after) > 0:
		var was, sent any
		if json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &sent) != nil {
			break
		}
		if raw, err := json.Marshal(alike(was, sent)); err == nil {
			before = raw
		}
	}
	return before, after
}

// alike returns the parts of a value that another one has, too.
func alike(was, sent any) any {
	switch sent := sent.(type) {
	case map[string]any:
		old, is := was.(map[string]any)
		if !is {
			return was
		}
		out := map[string]any{}
		for name, value := range sent {
			if there, has := old[name]; has {
				out[name] = alike(there, value)
			}
		}
		return out
	case []any:
		old, is := was.([]any)
		if !is {
			return was
		}
		out := []any{}
		for i, item := range sent {
			if there, has := sameItem(old, i, item); has {
				out = append(out, alike(there, item))
			}
		}
		return out
	}
	return was
}

// sameItem returns the item of a list that has the name, type or key of another one; of others the one at its place.
func sameItem(list []any, i int, item any) (any, bool) {
	if fields, is := item.(map[string]any); is {
		for _, id := range []string{"name", "type", "key", "uid"} {
			if fields[id] == nil {
				continue
			}
			for _, other := range list {
				if old, is := other.(map[string]any); is && old[id] == fields[id] {
					return other, true
				}
			}
			return nil, false
		}
	}
	if i < len(list) {
		return list[i], true
	}
	return nil, false
}
