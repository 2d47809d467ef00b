package tui

import (
	"encoding/json"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

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
func (s detailPane) diff(before, after json.RawMessage) []trace.DiffLine {
	key := diffKey{firstByte(before), firstByte(after)}
	if d, known := s.memo.diffs[key]; known {
		return d
	}
	if s.memo.diffs == nil || len(s.memo.diffs) > 256 {
		s.memo.diffs = map[diffKey][]trace.DiffLine{}
	}
	lines := trace.NearChanges(trace.Diff(yamlLines(before, noise...), yamlLines(after, noise...), bigDiff), contextLines)
	if len(lines) > 0 && lines[0].Op == '.' { // lines left out before the first change are not shown
		lines = lines[1:]
	}
	s.memo.diffs[key] = lines
	return lines
}
