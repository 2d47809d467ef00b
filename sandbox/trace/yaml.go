package trace

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
)

// YAMLStyle are the options of [YAMLLines]. The zero value writes an object completely except for its managed fields,
// with keys in alphabetical order.
type YAMLStyle struct {
	Omit     []string                      // metadata fields that are left out, besides managedFields
	Keys     func(map[string]any) []string // returns the keys of a map in order; nil: alphabetical
	Flat     bool                          // lists are not indented below their key
	Exact    bool                          // long texts keep their ending (| or |-), and are quoted without a key
	MaxDepth int                           // maximum number of levels; 0: all
	MaxLines int                           // maximum number of lines; 0: all
}

// YAMLLines converts JSON to lines of YAML, for people to read. Invalid JSON is returned as it is.
func YAMLLines(raw json.RawMessage, style YAMLStyle) []string {
	if len(raw) == 0 {
		return nil
	}
	if style.Keys == nil {
		style.Keys = sortedKeys[any]
	}
	y := yamlWriter{style: style}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		for line := range strings.SplitSeq(string(raw), "\n") {
			y.line(line)
		}
		return y.lines
	}
	if o, is := v.(map[string]any); is {
		if meta, is := o["metadata"].(map[string]any); is {
			delete(meta, "managedFields")
			for _, k := range style.Omit {
				delete(meta, k)
			}
		}
	}
	y.value(v, "", "", false)
	return y.lines
}

// yamlWriter writes a value as lines.
type yamlWriter struct {
	style YAMLStyle
	lines []string
}

func (y *yamlWriter) full() bool {
	return y.style.MaxLines > 0 && len(y.lines) >= y.style.MaxLines
}

func (y *yamlWriter) line(s string) {
	if !y.full() {
		y.lines = append(y.lines, s)
	}
}

// value writes a value whose first line begins with head and the others with indent; keyed says that head ends with the
// value's key.
func (y *yamlWriter) value(v any, head, indent string, keyed bool) {
	if y.full() || y.style.MaxDepth > 0 && len(indent) > 2*y.style.MaxDepth {
		y.line(head + "…")
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			y.fields(v, head, indent)
			return
		}
	case []any:
		if len(v) > 0 {
			for _, item := range v {
				y.value(item, head+"- ", indent+"  ", false)
				head = indent
			}
			return
		}
	case string:
		if mark := y.block(v, keyed); mark != "" {
			y.line(head + mark)
			for line := range strings.SplitSeq(strings.TrimSuffix(v, "\n"), "\n") {
				y.line(indent + "  " + line)
			}
			return
		}
	}
	y.line(head + y.scalar(v))
}

func (y *yamlWriter) fields(v map[string]any, head, indent string) {
	for _, k := range y.style.Keys(v) {
		key := head + YAMLString(k) + ":"
		head = indent
		below := indent + "  "
		switch value := v[k].(type) {
		case map[string]any:
			if len(value) > 0 {
				y.line(key)
				y.value(value, below, below, false)
				continue
			}
		case []any:
			if len(value) > 0 {
				if y.style.Flat {
					below = indent
				}
				y.line(key)
				y.value(value, below, below, false)
				continue
			}
		}
		y.value(v[k], key+" ", indent, true)
	}
}

// block returns the block indicator of a text that is written line by line; empty if it is written on one line.
func (y *yamlWriter) block(s string, keyed bool) string {
	body, ended := strings.CutSuffix(s, "\n")
	several := strings.Contains(body, "\n")
	switch {
	case !y.style.Exact && several:
		return "|"
	case !y.style.Exact || !keyed:
		return ""
	case ended:
		return "|"
	case several:
		return "|-"
	}
	return ""
}

// scalar formats a value that contains no other values.
func (y *yamlWriter) scalar(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case string:
		return YAMLString(v)
	case map[string]any:
		return "{}"
	}
	return "[]"
}

// YAMLString formats a text on one line of YAML: plain if every reader takes it for a string, else in double quotes.
// Quoted are words that YAML 1.1 takes for booleans, numbers, timestamps, and texts with YAML syntax in them.
func YAMLString(s string) string {
	if yamlPlain(s) {
		return s
	}
	return strconv.Quote(s)
}

// yamlPlain reports whether a text consists of words, separated by a single blank or mark, that YAML can only take for
// a string.
func yamlPlain(s string) bool {
	switch strings.ToLower(s) {
	case "", "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".nan", ".inf":
		return false
	}
	parted := true // only a mark, or the beginning, is right before
	for i, r := range s {
		switch {
		case unicode.IsLetter(r) || strings.ContainsRune("_./", r) || i > 0 && (unicode.IsNumber(r) || strings.ContainsRune("@()+*=~%^!-", r)):
			parted = false
		case i > 0 && !parted && strings.ContainsRune(" ,;:", r):
			parted = true
		default:
			return false
		}
	}
	return !parted && (s[0] != '.' || len(s) == 1 || s[1] < '0' || s[1] > '9')
}
