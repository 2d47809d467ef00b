package cli

import (
	"io"
	"testing"

	"github.com/operator-lab/operator-lab/operators"
)

// TestScorecardSaysAll checks that of each variant of each bundled operator something is evidence of each habit and each phase, or
// that a scenario says why nothing can be.
func TestScorecardSaysAll(t *testing.T) {
	t.Setenv("OPERATOR_LAB_STATE_DIR", t.TempDir())
	for _, op := range operators.All() {
		for _, variant := range variantsOf(op) {
			t.Run(op.Name+"/"+variant, func(t *testing.T) {
				s := newScoring(streams{out: io.Discard, err: io.Discard}, scorecardFlags{variant: variant}, []string{op.Name}, "")
				if err := s.load(); err != nil {
					t.Fatal(err)
				}
				if left := s.unshown(op.Name); len(left.Habits)+len(left.Phases) > 0 {
					t.Errorf("nothing is said of the habits %v and the phases %v: write a scenario, or the annotation lacks", left.Habits, left.Phases)
				}
				for _, l := range s.lacks[op.Name] {
					if l.Japanese == "" {
						t.Errorf("there is no Japanese for: %s", l.Why)
					}
				}
			})
		}
	}
}
