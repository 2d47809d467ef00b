package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// fieldPath names a field of an object by its keys and indexes.
type fieldPath []string

// parseField reads a path such as spec.replicas, status.conditions[0] or metadata.annotations["example.com/word"]. A
// dot that belongs to a key may also be written \. as in kubectl's JSON paths.
func parseField(s string) (fieldPath, error) {
	var path fieldPath
	rest := strings.TrimPrefix(s, ".")
	for rest != "" {
		var key string
		var err error
		if rest[0] == '[' {
			key, rest, err = bracketed(rest[1:])
		} else {
			key, rest, err = plainKey(rest)
		}
		if err != nil {
			return nil, err
		}
		path = append(path, key)
	}
	if len(path) == 0 {
		return nil, errors.New("is empty")
	}
	return path, nil
}

// plainKey reads a key up to the next dot or bracket.
func plainKey(s string) (key, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i == len(s) {
				return "", "", errors.New(`ends in \`)
			}
			b.WriteByte(s[i])
			continue
		case '.', '[':
			if b.Len() == 0 || s[i:] == "." {
				return "", "", errors.New("has a key without a name")
			}
			return b.String(), strings.TrimPrefix(s[i:], "."), nil
		}
		b.WriteByte(s[i])
	}
	return b.String(), "", nil
}

// bracketed reads an index or a quoted key after its opening bracket.
func bracketed(s string) (key, rest string, err error) {
	end := strings.IndexByte(s, ']')
	if end > 0 && (s[0] == '"' || s[0] == '\'') {
		if q := strings.Index(s[1:], s[:1]+"]"); q > 0 {
			key, rest = s[1:q+1], s[q+3:]
			return key, strings.TrimPrefix(rest, "."), nil
		}
		return "", "", errors.New("has a quote that does not end")
	}
	if end < 0 {
		return "", "", errors.New("has a bracket that does not end")
	}
	if n, err := strconv.Atoi(s[:end]); err != nil || n < 0 {
		return "", "", fmt.Errorf("has [%s], which is neither an index nor a quoted key", s[:end])
	}
	return s[:end], strings.TrimPrefix(s[end+1:], "."), nil
}

// of returns the value at the path; nil if there is none.
func (p fieldPath) of(object any) any {
	for _, key := range p {
		switch v := object.(type) {
		case map[string]any:
			object = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			object = v[i]
		default:
			return nil
		}
	}
	return object
}

// in reports whether an object has the field.
func (p fieldPath) in(object any) bool { return !blank(p.of(object)) }

// differs reports whether two objects differ in the field. Null, an empty object and an empty list count as absent,
// because clients differ in which of them they write.
func (p fieldPath) differs(a, b any) bool {
	before, after := p.of(a), p.of(b)
	if blank(before) && blank(after) {
		return false
	}
	return !reflect.DeepEqual(trimmed(before), trimmed(after))
}

func blank(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, e := range v {
			if !blank(e) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return false
}

// trimmed returns a value without the blank members of its maps.
func trimmed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if !blank(e) {
				out[k] = trimmed(e)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = trimmed(e)
		}
		return out
	}
	return v
}

// inMerge reports whether a merge patch, a strategic merge patch or an applied configuration sets the field, something
// below it, or something above it to a value that is not an object.
func (p fieldPath) inMerge(patch any) bool {
	for _, key := range p {
		switch v := patch.(type) {
		case map[string]any:
			next, has := v[key]
			if !has {
				return false
			}
			patch = next
		default:
			return true
		}
	}
	return true
}

// inOperations reports whether a JSON patch touches the field.
func (p fieldPath) inOperations(patch []byte) bool {
	var ops []struct{ Op, Path, From string }
	if json.Unmarshal(patch, &ops) != nil {
		return false
	}
	for _, op := range ops {
		if op.Op != "test" && p.meets(op.Path) || op.Op == "move" && p.meets(op.From) {
			return true
		}
	}
	return false
}

// meets reports whether a JSON pointer leads to the field, above it or below it.
func (p fieldPath) meets(pointer string) bool {
	keys := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	if pointer == "" {
		keys = nil
	}
	for i := range min(len(keys), len(p)) {
		if strings.NewReplacer("~1", "/", "~0", "~").Replace(keys[i]) != p[i] {
			return false
		}
	}
	return true
}

// decoded decodes JSON to maps and lists; nil if it is not valid.
func decoded(raw []byte) any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}
