package tui

import (
	"encoding/json"
	"slices"
	"strings"
)

// diffLine is a line of a diff: op is ' ', '+', '-' or '.' for what is left out.
type diffLine struct {
	op byte
	s  string
}

// diffKey names a diff that was computed.
type diffKey struct{ before, after *byte }

// contextLines are shown around each change.
const contextLines = 3

// bigDiff is the product of lines beyond which a diff is not aligned: it would
// take longer than a frame.
const bigDiff = 4_000_000

// diff returns what changed from one JSON object to another, as lines of YAML;
// nil if nothing did. Computed diffs are remembered.
func (s *scene) diff(before, after json.RawMessage) []diffLine {
	key := diffKey{firstByte(before), firstByte(after)}
	if d, known := s.memo.diffs[key]; known {
		return d
	}
	if s.memo.diffs == nil || len(s.memo.diffs) > 256 {
		s.memo.diffs = map[diffKey][]diffLine{}
	}
	d := shortDiff(diffLines(yamlLines(before, noise...), yamlLines(after, noise...)))
	s.memo.diffs[key] = d
	return d
}

func firstByte(raw json.RawMessage) *byte {
	if len(raw) == 0 {
		return nil
	}
	return &raw[0]
}

// noise is what changes with every write and says nothing.
var noise = []string{"resourceVersion", "uid", "creationTimestamp"}

// diffLines aligns two texts by their longest common subsequence.
func diffLines(a, b []string) []diffLine {
	var head, tail []diffLine
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head = append(head, diffLine{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append(tail, diffLine{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	out := append(head, middle(a, b)...)
	for _, t := range slices.Backward(tail) {
		out = append(out, t)
	}
	return out
}

func middle(a, b []string) []diffLine {
	var out []diffLine
	i, k := 0, 0
	if len(a)*len(b) <= bigDiff {
		common := commonLengths(a, b)
		for i < len(a) && k < len(b) {
			switch {
			case a[i] == b[k]:
				out = append(out, diffLine{' ', a[i]})
				i++
				k++
			case common[i+1][k] >= common[i][k+1]:
				out = append(out, diffLine{'-', a[i]})
				i++
			default:
				out = append(out, diffLine{'+', b[k]})
				k++
			}
		}
	}
	for ; i < len(a); i++ {
		out = append(out, diffLine{'-', a[i]})
	}
	for ; k < len(b); k++ {
		out = append(out, diffLine{'+', b[k]})
	}
	return out
}

// commonLengths returns the lengths of the longest common subsequences of all ends of a and b.
func commonLengths(a, b []string) [][]int32 {
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

// shortDiff leaves out what is far from any change, but keeps the path to it:
// the lines that are indented less.
func shortDiff(lines []diffLine) []diffLine {
	keep := make([]bool, len(lines))
	changed := false
	for i, l := range lines {
		if l.op == ' ' {
			continue
		}
		changed = true
		for k := max(0, i-contextLines); k <= min(len(lines)-1, i+contextLines); k++ {
			keep[k] = true
		}
		indent := depth(l.s)
		for k := i; k >= 0 && indent > 0; k-- {
			if d := depth(lines[k].s); d < indent {
				keep[k], indent = true, d
			}
		}
	}
	if !changed {
		return nil
	}
	var out []diffLine
	for i, l := range lines {
		switch {
		case keep[i]:
			out = append(out, l)
		case len(out) > 0 && out[len(out)-1].op != '.':
			out = append(out, diffLine{'.', ""})
		}
	}
	return out
}

func depth(s string) int { return len(s) - len(strings.TrimLeft(s, " -")) }
