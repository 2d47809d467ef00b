package program

import (
	"fmt"
	"strings"
)

// suggest returns a hint for an unknown key: the nearest known one, or else all of them.
func suggest(key string, known []string) string {
	best, least := "", 0
	for _, k := range known {
		d := distance(strings.ToLower(key), strings.ToLower(k))
		// A third of the letters may be wrong. With more, short names would be close to everything.
		if d <= 1+min(len(k), len(key))/3 && d < len(k) && (best == "" || d < least) {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known are " + strings.Join(known, ", ")
}

// longKey is the maximum length of a key to compare: the time grows with its square.
const longKey = 64

// distance counts the letters to insert, remove or replace to make b of a.
func distance(a, b string) int {
	if len(a) > longKey || len(b) > longKey {
		return max(len(a), len(b))
	}
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
		}
		last = row
	}
	return last[len(b)]
}
