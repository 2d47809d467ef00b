package trace

import (
	"encoding/json"
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

// What an object's text and its diff are bounded by. Kubernetes' own objects
// stay far below; the last is the product of lines, and 4 MB of memory.
const (
	htmlYAMLDepth = 40
	htmlYAMLLines = 4000
	htmlDiffBound = 1_000_000
)

// htmlDiff returns what changed from one object to another, as lines of YAML
// with a few around each change; nil if nothing did.
func htmlDiff(before, after json.RawMessage) []htmlLine {
	var out []htmlLine
	for _, l := range NearChanges(Diff(htmlYAML(before), htmlYAML(after), htmlDiffBound), 2) {
		op := string(rune(l.Op))
		if l.Op == '.' {
			op = "…"
		}
		out = append(out, htmlLine{op, htmlVerbatim(l.Text)})
	}
	return out
}

// htmlYAML writes an object as the lines of YAML, without the metadata that
// changes with every write and says nothing.
func htmlYAML(raw json.RawMessage) []string {
	return YAMLLines(raw, YAMLStyle{
		Omit:     []string{"resourceVersion", "uid", "creationTimestamp"},
		MaxDepth: htmlYAMLDepth,
		MaxLines: htmlYAMLLines,
	})
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
