package trace

import (
	"encoding/json"
	"strings"
)

// htmlLine is a line of a diff: Op is " ", "+", "-", or "…" for omitted lines.
type htmlLine struct{ Op, Text string }

// Class returns the line's CSS class.
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

// Bounds of an object's text and its diff. Kubernetes' own objects stay far below; the last bounds the product of
// lines, about 4 MB of memory.
const (
	htmlYAMLDepth = 40
	htmlYAMLLines = 4000
	htmlDiffBound = 1_000_000
)

// htmlDiff returns the changes from one object to another, as lines of YAML with two around each change; nil if nothing
// changed.
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

// htmlYAML returns an object as lines of YAML, without metadata that changes with every write.
func htmlYAML(raw json.RawMessage) []string {
	return YAMLLines(raw, YAMLStyle{
		Omit:     []string{"resourceVersion", "uid", "creationTimestamp"},
		MaxDepth: htmlYAMLDepth,
		MaxLines: htmlYAMLLines,
	})
}

// htmlStack prepares a stack for the page: it keeps the lines and bounds the size.
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

// htmlVerbatim prepares a line for the page and keeps its blanks.
func htmlVerbatim(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return clip(s, htmlTextWidth)
}
