package trace

import (
	"slices"
	"strings"
)

// DiffLine is a line of a diff.
type DiffLine struct {
	// Op is ' ' for a line of both texts, '-' for one of the first text only, '+' for one of the second only, and '.'
	// for omitted lines.
	Op byte
	// Text is the line without Op.
	Text string
}

// Diff aligns the lines of two texts by their longest common subsequence. Time and memory grow with the product of the
// numbers of lines between the common beginning and the common end. If the product exceeds bound, these lines are not
// aligned but all removed and added.
func Diff(a, b []string, bound int) []DiffLine {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	lines := make([]DiffLine, 0, len(a)+len(b)-head-tail)
	for _, s := range a[:head] {
		lines = append(lines, DiffLine{' ', s})
	}
	lines = alignLines(lines, a[head:len(a)-tail], b[head:len(b)-tail], bound)
	for _, s := range a[len(a)-tail:] {
		lines = append(lines, DiffLine{' ', s})
	}
	return lines
}

// alignLines appends the diff of two texts.
func alignLines(out []DiffLine, a, b []string, bound int) []DiffLine {
	i, k := 0, 0
	if len(a)*len(b) <= bound {
		common := commonLines(a, b)
		for i < len(a) && k < len(b) {
			switch {
			case a[i] == b[k]:
				out = append(out, DiffLine{' ', a[i]})
				i++
				k++
			case common[i+1][k] >= common[i][k+1]:
				out = append(out, DiffLine{'-', a[i]})
				i++
			default:
				out = append(out, DiffLine{'+', b[k]})
				k++
			}
		}
	}
	for ; i < len(a); i++ {
		out = append(out, DiffLine{'-', a[i]})
	}
	for ; k < len(b); k++ {
		out = append(out, DiffLine{'+', b[k]})
	}
	return out
}

// commonLines returns the lengths of the longest common subsequences of all suffixes of a and b.
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

// NearChanges omits the lines of a diff that are farther than around from any change, but keeps the parents of a
// changed line: the lines above it that are indented less. It returns nil if nothing changed.
func NearChanges(lines []DiffLine, around int) []DiffLine {
	keep := make([]bool, len(lines))
	changed := false
	for i, l := range lines {
		if l.Op == ' ' {
			continue
		}
		changed = true
		for k := max(0, i-around); k <= min(len(lines)-1, i+around); k++ {
			keep[k] = true
		}
		indent := indentOf(l.Text)
		if i > 0 && lines[i-1].Op != ' ' && indentOf(lines[i-1].Text) <= indent {
			continue // its parents are those of the line above
		}
		for k := i - 1; k >= 0 && indent > 0; k-- {
			if d := indentOf(lines[k].Text); d < indent {
				keep[k], indent = true, d
			}
		}
	}
	if !changed {
		return nil
	}
	var out []DiffLine
	for i, l := range lines {
		switch {
		case keep[i]:
			out = append(out, l)
		case len(out) == 0 || out[len(out)-1].Op != '.':
			out = append(out, DiffLine{Op: '.'})
		}
	}
	return out
}

func indentOf(s string) int { return len(s) - len(strings.TrimLeft(s, " -")) }
