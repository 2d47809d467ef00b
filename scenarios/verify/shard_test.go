package verify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/verify"
)

// TestShards explores an operator in two parts, and joins what they found: each plan is played by one of them, and the bug is there.
func TestShards(t *testing.T) {
	sandboxtest.Long(t)
	scenario := written(t, keep)
	var parts []*verify.Report
	for i := range 2 {
		r, err := explore(t, keeperWith(madeInTheMiddle), scenario, verify.Options{Only: []string{"crash-after", "error"}, Shard: report.Shard{Index: i + 1, Count: 2}})
		if err != nil {
			t.Fatal(err)
		}
		if text := textOf(t, r); !strings.Contains(text, "/ another shard") || !slices.ContainsFunc(r.Plans, isElsewhere) {
			t.Errorf("shard %d plays all:\n%s", i+1, text)
		}
		parts = append(parts, r)
	}
	for _, p := range parts[0].Plans {
		i := slices.IndexFunc(parts[1].Plans, func(o verify.PlanResult) bool { return o.Fault == p.Fault && o.At == p.At })
		if i >= 0 && p.Result != verify.Needless && isElsewhere(p) == isElsewhere(parts[1].Plans[i]) {
			t.Errorf("%s at %s: %s and %s", p.Fault, p.At, p.Result, parts[1].Plans[i].Result)
		}
	}
	merged, missing, err := verify.Merge(parts)
	if err != nil || len(missing) > 0 {
		t.Fatal(err, missing)
	}
	if text := textOf(t, merged); len(merged.Steady()) != 1 || slices.ContainsFunc(merged.Plans, isElsewhere) || strings.Contains(text, "shard") {
		t.Errorf("%d findings:\n%s", len(merged.Steady()), text)
	}
}

func isElsewhere(p verify.PlanResult) bool { return p.Result == verify.Elsewhere }
