package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/nearest"
)

// fewNames is the largest number of known names that are listed if none is near.
const fewNames = 8

// suggest returns a hint for an unknown name: the nearest known one, or all if they are few.
func suggest(name string, known []string) string {
	if n := nearest.Name(name, known); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	if len(known) == 0 || len(known) > fewNames {
		return ""
	}
	known = slices.Sorted(slices.Values(known))
	return "known are " + strings.Join(known, ", ")
}
