package tui

import (
	"encoding/json"

	"github.com/operator-lab/operator-lab/sandbox/trace"
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

func firstByte(raw json.RawMessage) *byte {
	if len(raw) == 0 {
		return nil
	}
	return &raw[0]
}

// noise lists the metadata that changes with every write; diffs leave it out.
var noise = []string{"resourceVersion", "uid", "creationTimestamp"}

// diff returns what changed from one JSON object to another, as lines of YAML;
// nil if nothing did. Computed diffs are remembered.
func (s detailPane) diff(before, after json.RawMessage) []diffLine {
	key := diffKey{firstByte(before), firstByte(after)}
	if d, known := s.memo.diffs[key]; known {
		return d
	}
	if s.memo.diffs == nil || len(s.memo.diffs) > 256 {
		s.memo.diffs = map[diffKey][]diffLine{}
	}
	lines := trace.NearChanges(trace.Diff(yamlLines(before, noise...), yamlLines(after, noise...), bigDiff), contextLines)
	var d []diffLine
	for i, l := range lines {
		if i > 0 || l.Op != '.' { // what is left out before the first line is not shown
			d = append(d, diffLine{l.Op, l.Text})
		}
	}
	s.memo.diffs[key] = d
	return d
}
