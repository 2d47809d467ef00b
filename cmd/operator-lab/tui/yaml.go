package tui

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// yamlLines writes JSON as the lines of YAML, the way people are used to see
// Kubernetes objects: the well-known keys first, and without managed fields and
// the other fields of the metadata that are named. What is no JSON comes back as it is.
func yamlLines(raw json.RawMessage, without ...string) []string {
	return trace.YAMLLines(raw, trace.YAMLStyle{Omit: without, Keys: sortedKeys, Flat: true, Exact: true})
}

// scalar writes a value on its own, as YAML; maps and lists as JSON.
func scalar(v any) string {
	if s, is := v.(string); is {
		return trace.YAMLString(s)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(b)
}

// keyRank puts the keys that everybody looks for first.
var keyRank = map[string]int{"apiVersion": -9, "kind": -8, "metadata": -7, "name": -6, "namespace": -5, "spec": -4, "data": -3, "type": -2, "status": 9}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if d := keyRank[a] - keyRank[b]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return keys
}

// flowLines writes an object in as many lines as it has top-level fields, for
// where there is little room. What the title says anyway is left out.
func flowLines(raw json.RawMessage) []string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var o map[string]any
	if len(raw) == 0 || dec.Decode(&o) != nil {
		return nil
	}
	if meta, is := o["metadata"].(map[string]any); is {
		for _, k := range append([]string{"managedFields", "namespace", "generation"}, noise...) {
			delete(meta, k)
		}
		if owners, is := meta["ownerReferences"].([]any); is {
			for i, owner := range owners {
				if owner, is := owner.(map[string]any); is {
					owners[i] = strings.TrimSpace(scalar(owner["kind"]) + " " + scalar(owner["name"]))
				}
			}
		}
	}
	var out []string
	for _, k := range sortedKeys(o) {
		if empty, is := o[k].(map[string]any); is && len(empty) == 0 {
			continue
		}
		if k != "apiVersion" && k != "kind" {
			out = append(out, k+": "+flow(o[k]))
		}
	}
	return out
}

// flow writes a value on one line.
func flow(v any) string {
	switch v := v.(type) {
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, k := range sortedKeys(v) {
			parts = append(parts, k+": "+flow(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, 0, len(v))
		for _, item := range v {
			parts = append(parts, flow(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return scalar(v)
}
