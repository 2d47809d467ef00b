// Package nearest guesses which of the known names a misspelled one was meant to be.
package nearest

import "strings"

// Name returns the known name of which name is probably a misspelling; empty if there is none. Of several it is the first
// with the fewest wrong letters.
func Name(name string, known []string) string {
	best, least := "", 0
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return k
		}
		d := distance(strings.ToLower(name), strings.ToLower(k))
		// A third of the letters may be wrong. With more, short names would be close to everything.
		if d > 1+min(len(k), len(name))/3 || d >= len(k) {
			continue
		}
		if best == "" || d < least {
			best, least = k, d
		}
	}
	return best
}

// longName is the maximum length of a name to compare: the time grows with its square.
const longName = 64

// distance counts the letters to insert, remove, replace or swap with the next to make b of a.
func distance(a, b string) int {
	if len(a) > longName || len(b) > longName {
		return max(len(a), len(b))
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
