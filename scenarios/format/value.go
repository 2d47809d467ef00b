package format

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// Limits that keep a small file from expanding without end.
const (
	// maxDepth is the maximum nesting of objects and lists. The deepest schemas of real definitions have about 60
	// levels.
	maxDepth = 250
	// maxAliased is the maximum number of values that come from anchors used again and again.
	maxAliased = 100_000
	// maxProblems is the maximum number of problems reported for one document.
	maxProblems = 1000
)

// reader walks over the nodes of one file, resolves aliases and merges, and collects problems.
type reader struct {
	file   string
	before int
	// remarshal lets a key override a merged one, as Chainsaw does only if asked to.
	remarshal bool
	// lastWins lets a key that is written twice pass, as Chainsaw does in files of resources.
	lastWins bool

	problems Problems
	depth    int
	visits   int
	allowed  int
	open     map[*yaml.Node]bool
	stopped  bool
}

// newReader returns a reader of one document.
func newReader(file string, doc document) *reader {
	return &reader{
		file: file, before: doc.before,
		allowed: 4*count(doc.root) + maxAliased,
		open:    map[*yaml.Node]bool{},
	}
}

// count counts nodes, those that aliases stand for only once.
func count(n *yaml.Node) int {
	total := 1
	for _, c := range n.Content {
		total += count(c)
	}
	return total
}

// position of a node.
func (r *reader) position(n *yaml.Node) Position {
	return Position{File: r.file, Line: r.before + n.Line, Column: n.Column}
}

// problem records a problem at a node.
func (r *reader) problem(n *yaml.Node, hint, message string, args ...any) {
	at := r.position(n)
	switch {
	case len(r.problems) > maxProblems:
		return
	case len(r.problems) == maxProblems:
		r.stopped = true
		message, args, hint = "there are more problems than %d: the rest is left out", []any{maxProblems}, ""
	}
	r.problems = append(r.problems, at.problem(fmt.Sprintf(message, args...), hint))
}

// enter is called before a node is read. It returns the node that an alias stands for. If it reports false the node
// must not be read; otherwise leave must be called with the same node.
func (r *reader) enter(n *yaml.Node) (*yaml.Node, bool) {
	if r.stopped {
		return nil, false
	}
	r.visits++
	if r.visits > r.allowed {
		r.stopped = true
		r.problem(n, "write out what is used so often", "aliases make more than %d values of this document", maxAliased)
		return nil, false
	}
	if r.depth == maxDepth {
		r.stopped = true
		r.problem(n, "", "nested more than %d deep", maxDepth)
		return nil, false
	}
	if n.Kind == yaml.AliasNode {
		if r.open[n.Alias] {
			r.stopped = true
			r.problem(n, "", "the anchor %q contains itself", n.Value)
			return nil, false
		}
		r.open[n.Alias] = true
	}
	r.depth++
	return target(n), true
}

// leave is called after a node was read.
func (r *reader) leave(n *yaml.Node) {
	r.depth--
	if n.Kind == yaml.AliasNode {
		delete(r.open, n.Alias)
	}
}

// target resolves an alias.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// isNull reports whether a node is null. A null field is the same as a missing one.
func isNull(n *yaml.Node) bool {
	n = target(n)
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// entry is a key of an object and its value.
type entry struct {
	name       string
	key, value *yaml.Node
	merged     bool
}

// entries returns the keys of an object in order, merged ones last.
func (r *reader) entries(n *yaml.Node) []entry {
	out := make([]entry, 0, len(n.Content)/2)
	at := make(map[string]int, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if target(key).ShortTag() == "!!merge" {
			merges = append(merges, value)
			continue
		}
		name, ok := r.key(key)
		if !ok {
			continue
		}
		if first, twice := at[name]; twice {
			if r.lastWins {
				out[first].value = value
				continue
			}
			r.problem(key, fmt.Sprintf("the first is in line %d", r.before+out[first].key.Line), "%q is written twice", name)
			if !r.stopped {
				r.problems[len(r.problems)-1].RepeatedKey = true
			}
			continue
		}
		at[name] = len(out)
		out = append(out, entry{name: name, key: key, value: value})
	}
	for _, m := range merges {
		out = r.merge(out, at, m)
	}
	return out
}

// merge adds what "<<" merges in.
func (r *reader) merge(out []entry, at map[string]int, from *yaml.Node) []entry {
	n, ok := r.enter(from)
	if !ok {
		return out
	}
	defer r.leave(from)
	if n.Kind == yaml.SequenceNode {
		for _, c := range n.Content {
			out = r.merge(out, at, c)
		}
		return out
	}
	if n.Kind != yaml.MappingNode {
		r.problem(from, "", "<< wants an object, or a list of objects")
		return out
	}
	for _, e := range r.entries(n) {
		r.visits++
		first, twice := at[e.name]
		if !twice {
			at[e.name] = len(out)
			e.merged = true
			out = append(out, e)
			continue
		}
		if !r.remarshal && !r.lastWins {
			r.problem(out[first].key, "with --remarshal the key that is written wins; Chainsaw wants that flag too",
				"%q is also merged in by <<", e.name)
		}
	}
	return out
}

// key returns the name of a key. Keys of other types become strings, as in JSON.
func (r *reader) key(n *yaml.Node) (string, bool) {
	k := target(n)
	if k.Kind != yaml.ScalarNode {
		r.problem(n, "", "a key must be a text")
		return "", false
	}
	switch v := r.scalar(k).(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		// In 32 bits, as the YAML reader of Kubernetes does it.
		return strconv.FormatFloat(v, 'g', -1, 32), true
	}
	r.problem(n, "", "a key must be a text, not null")
	return "", false
}

// scalar returns the value of a scalar: nil, a string, a bool, an int64 or a float64.
//
// Chainsaw reads files by the rules of YAML 1.1, in which an unquoted yes, no, on, off, y or n is a boolean. When it
// remarshals them they are strings.
func (r *reader) scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!str":
		if n.Style == 0 && !r.remarshal {
			if b, ok := oldBool(n.Value); ok {
				return b
			}
		}
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err == nil {
			return b
		}
	case "!!int", "!!float":
		return r.number(n)
	case "!!binary":
		if b, err := base64.StdEncoding.DecodeString(n.Value); err == nil {
			return string(b)
		}
		r.problem(n, "", "!!binary is not base64")
	case "!!timestamp":
		var t time.Time
		if r.remarshal && n.Decode(&t) == nil {
			return t.Format(time.RFC3339Nano)
		}
	}
	return n.Value
}

// number returns the value of a number.
func (r *reader) number(n *yaml.Node) any {
	var v any
	if err := n.Decode(&v); err != nil {
		r.problem(n, "", "%s is not a number", n.Value)
		return int64(0)
	}
	switch v := v.(type) {
	case int:
		return int64(v)
	case int64:
		return v
	case uint64:
		return float64(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			r.problem(n, "put it in quotes if it is a text", "%s is not a number that JSON has", n.Value)
			return float64(0)
		}
		return v
	}
	return n.Value
}

// oldBool returns the boolean value of an unquoted word in YAML 1.1 that is a string in YAML 1.2.
func oldBool(s string) (value, ok bool) {
	switch s {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

// any returns the value of a node as JSON types, with numbers as int64 or float64. It calls see, which may be nil, with
// every string and key.
func (r *reader) any(n *yaml.Node, see func(n *yaml.Node, text string, key bool)) any {
	v, ok := r.enter(n)
	if !ok {
		return nil
	}
	defer r.leave(n)
	switch v.Kind {
	case yaml.MappingNode:
		out := make(map[string]any, len(v.Content)/2)
		for _, e := range r.entries(v) {
			if see != nil {
				see(e.key, e.name, true)
			}
			out[e.name] = r.any(e.value, see)
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(v.Content))
		for _, c := range v.Content {
			out = append(out, r.any(c, see))
		}
		return out
	}
	out := r.scalar(v)
	if s, ok := out.(string); ok && see != nil {
		see(n, s, false)
	}
	return out
}

// floats makes every number a float64, as encoding/json does.
func floats(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = floats(e)
		}
	case []any:
		for i, e := range v {
			v[i] = floats(e)
		}
	case int64:
		return float64(v)
	}
	return v
}
