package cli

import (
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/scenarios/verify"
)

// TestExplorePage checks what the page shows of what an exploration tells, and that it does not ask for a report each time.
func TestExplorePage(t *testing.T) {
	var p explorePage
	asked := 0
	report := func() *verify.Report {
		asked++
		return &verify.Report{
			Faults: []verify.FaultCount{{Name: "error", Says: "it got an error"}, {Name: "restart"}},
			Plans: []verify.PlanResult{
				{Fault: "error", At: "create Pod a", Result: verify.Wrong}, {Fault: "error", At: "create Pod b"}, {Fault: "restart", At: "rest", Result: verify.Right},
			},
			Findings: []verify.Finding{{Plan: "error at create Pod a", Text: "It broke", Wrong: []string{"Pod a is missing"}}},
		}
	}
	if now := p.now(); now.Plans != 0 || now.Done {
		t.Errorf("before anything is told: %+v", now)
	}
	p.progress(verify.Progress{Plans: 3, Report: report})
	p.progress(verify.Progress{Plans: 3, Played: 1, Elapsed: time.Millisecond, Report: report})
	now := p.now()
	if asked != 1 || now.Played != 1 || len(now.Places) != 3 || len(now.Faults) != 2 || now.Faults[0].Says != "it got an error" {
		t.Errorf("%d reports were made: %+v", asked, now)
	}
	for i, want := range [][]string{{"X", ""}, {"", ""}, {"", "."}} {
		if got := now.Places[i].Marks; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%s: %q, want %q", now.Places[i].Name, got, want)
		}
	}
	if len(now.Findings) != 1 || now.Findings[0].Steady || now.Findings[0].Wrong[0] != "Pod a is missing" {
		t.Errorf("findings: %+v", now.Findings)
	}
	p.progress(verify.Progress{Plans: 3, Played: 2, Elapsed: time.Second, Report: report})
	p.progress(verify.Progress{Plans: 3, Played: 3, Elapsed: time.Second, Confirming: true, Report: report})
	if now := p.now(); asked != 3 || !now.Confirming {
		t.Errorf("%d reports were made: %+v", asked, now)
	}
	confirmed := report()
	confirmed.Findings[0].Steady = true
	p.ended(confirmed)
	if now := p.now(); !now.Done || !now.Findings[0].Steady {
		t.Errorf("in the end: %+v", now)
	}
}
