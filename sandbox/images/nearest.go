package images

import (
	"fmt"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/nearest"
)

// suggest returns a hint for an unknown key: the nearest known one, or else all of them.
func suggest(key string, known []string) string {
	if best := nearest.Name(key, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known are " + strings.Join(known, ", ")
}
