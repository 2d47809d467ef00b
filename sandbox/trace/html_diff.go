package trace

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// htmlLine is a line of a diff: Op is " ", "+", "-", or "…" for what is left out.
type htmlLine struct{ Op, Text string }

// Class names the line's colour.
func (l htmlLine) Class() string {
	switch l.Op {
	case "+":
		return "add"
	case "-":
		return "del"
	case " ":
		return "ctx"
	}
	return "gap"
}

// htmlDiff returns what changed from one object to another, as lines of YAML
// with a few around each change; nil if nothing did.
func htmlDiff(before, after json.RawMessage) []htmlLine {
	a, b := htmlYAML(before), htmlYAML(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	if head == len(a) && head == len(b) {
		return nil
	}
	lines := make([]htmlLine, 0, len(a)+len(b))
	for _, s := range a[:head] {
		lines = append(lines, htmlLine{" ", s})
	}
	lines = append(lines, alignLines(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, s := range a[len(a)-tail:] {
		lines = append(lines, htmlLine{" ", s})
	}
	return nearChanges(lines)
}

// alignBound is the product of lines beyond which two texts are not aligned: it
// bounds the memory of one diff to 4 MB.
const alignBound = 1_000_000

// alignLines diffs two texts by their longest common subsequence.
func alignLines(a, b []string) []htmlLine {
	var out []htmlLine
	i, k := 0, 0
	if len(a)*len(b) <= alignBound {
		common := commonLines(a, b)
		for i < len(a) && k < len(b) {
			switch {
			case a[i] == b[k]:
				out = append(out, htmlLine{" ", a[i]})
				i++
				k++
			case common[i+1][k] >= common[i][k+1]:
				out = append(out, htmlLine{"-", a[i]})
				i++
			default:
				out = append(out, htmlLine{"+", b[k]})
				k++
			}
		}
	}
	for ; i < len(a); i++ {
		out = append(out, htmlLine{"-", a[i]})
	}
	for ; k < len(b); k++ {
		out = append(out, htmlLine{"+", b[k]})
	}
	return out
}

// commonLines returns the lengths of the longest common subsequences of all ends of a and b.
func commonLines(a, b []string) [][]int32 {
	t := make([][]int32, len(a)+1)
	for i := range t {
		t[i] = make([]int32, len(b)+1)
	}
	for i, v := range slices.Backward(a) {
		for k := len(b) - 1; k >= 0; k-- {
			if v == b[k] {
				t[i][k] = t[i+1][k+1] + 1
			} else {
				t[i][k] = max(t[i+1][k], t[i][k+1])
			}
		}
	}
	return t
}

// nearChanges leaves out what is far from any change, but keeps the way to it:
// the lines above that are indented less.
func nearChanges(lines []htmlLine) []htmlLine {
	const around = 2
	keep := make([]bool, len(lines))
	for i, l := range lines {
		if l.Op == " " {
			continue
		}
		for k := max(0, i-around); k <= min(len(lines)-1, i+around); k++ {
			keep[k] = true
		}
		if i > 0 && lines[i-1].Op != " " && indentOf(lines[i-1].Text) <= indentOf(l.Text) {
			continue // the way to the line above is the way to this one
		}
		indent := indentOf(l.Text)
		for k := i - 1; k >= 0 && indent > 0; k-- {
			if d := indentOf(lines[k].Text); d < indent {
				keep[k], indent = true, d
			}
		}
	}
	var out []htmlLine
	for i, l := range lines {
		switch {
		case keep[i]:
			out = append(out, htmlLine{l.Op, htmlVerbatim(l.Text)})
		case len(out) == 0 || out[len(out)-1].Op != "…":
			out = append(out, htmlLine{"…", ""})
		}
	}
	return out
}

func indentOf(s string) int { return len(s) - len(strings.TrimLeft(s, " -")) }

// The bounds of an object's text. Kubernetes' own objects stay far below them.
const (
	yamlDepth = 40
	yamlLines = 4000
)

// htmlYAML writes an object as the lines of YAML, without the metadata that
// changes with every write and says nothing. What is no JSON stays as it is.
func htmlYAML(raw json.RawMessage) []string {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	var y yaml
	if dec.Decode(&v) != nil {
		for line := range strings.SplitSeq(string(raw), "\n") {
			y.line(line)
		}
		return y.lines
	}
	if o, is := v.(map[string]any); is {
		if meta, is := o["metadata"].(map[string]any); is {
			for _, k := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp"} {
				delete(meta, k)
			}
		}
	}
	y.value(v, "", "")
	return y.lines
}

// yaml writes a value as lines.
type yaml struct{ lines []string }

func (y *yaml) line(s string) {
	if len(y.lines) < yamlLines {
		y.lines = append(y.lines, s)
	}
}

// value writes a value whose first line begins with head, the others with indent.
func (y *yaml) value(v any, head, indent string) {
	if len(indent) > 2*yamlDepth || len(y.lines) >= yamlLines {
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
				y.value(item, head+"- ", indent+"  ")
				head = indent
			}
			return
		}
	case string:
		if strings.Contains(strings.TrimSuffix(v, "\n"), "\n") {
			y.line(head + "|")
			for line := range strings.SplitSeq(strings.TrimSuffix(v, "\n"), "\n") {
				y.line(indent + "  " + line)
			}
			return
		}
	}
	y.line(head + yamlScalar(v))
}

func (y *yaml) fields(v map[string]any, head, indent string) {
	for _, k := range sortedKeys(v) {
		key := head + yamlString(k) + ":"
		head = indent
		switch value := v[k].(type) {
		case map[string]any:
			if len(value) > 0 {
				y.line(key)
				y.value(value, indent+"  ", indent+"  ")
				continue
			}
		case []any:
			if len(value) > 0 {
				y.line(key)
				y.value(value, indent+"  ", indent+"  ")
				continue
			}
		}
		y.value(v[k], key+" ", indent)
	}
}

func yamlScalar(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case string:
		return yamlString(v)
	case map[string]any:
		return "{}"
	}
	return "[]"
}

// yamlString quotes a text that could be taken for something else.
func yamlString(s string) string {
	switch s {
	case "", "null", "true", "false", "yes", "no", "on", "off", "~":
		return strconv.Quote(s)
	}
	_, err := strconv.ParseFloat(s, 64)
	if err == nil || strings.TrimSpace(s) != s || strings.ContainsAny(s[:1], "-?:,[]{}#&*!|>'\"%@`") ||
		strings.Contains(s, ": ") || strings.HasSuffix(s, ":") || strings.Contains(s, " #") || strings.ContainsAny(s, "\n\t\r") {
		return strconv.Quote(s)
	}
	return s
}

// htmlStack makes a stack fit to be shown: its lines stay, its size is bounded.
func htmlStack(s string) string {
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		if len(out) == 60 {
			out = append(out, "…")
			break
		}
		out = append(out, htmlVerbatim(strings.ReplaceAll(line, "\t", "    ")))
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

// htmlVerbatim makes a line fit to be shown and leaves its blanks.
func htmlVerbatim(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return clip(s, htmlTextWidth)
}
