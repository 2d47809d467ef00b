package workshop

import (
	"strings"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/lessons/book"
)

// TestTold checks that a build is told of only where something is built: Helm charts are not.
func TestTold(t *testing.T) {
	for language, built := range map[book.Language]string{book.English: "built", book.Japanese: "ビルド"} {
		w := &Workshop{options: Options{Language: language}}
		for _, linked := range []bool{false, true} {
			p := &project{name: "cafe", workshop: w, linked: linked}
			for _, again := range []bool{false, true} {
				if told := p.told(time.Now(), again); strings.Contains(told, built) == linked || !strings.HasPrefix(told, "cafe ") {
					t.Errorf("linked %t, again %t: %q", linked, again, told)
				}
			}
		}
	}
}
