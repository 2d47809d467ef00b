package scorecard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/scorecard"
)

// TestProgress lets two scenarios run side by side: each keeps the number that it began with.
func TestProgress(t *testing.T) {
	loaded := &format.Loaded{Test: &format.Test{}}
	var out strings.Builder
	p := scorecard.NewProgress(&out, []*format.Loaded{loaded, loaded, loaded})
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	test := func(name string, took time.Duration) *report.Test {
		return &report.Test{Name: name, Started: began, Ended: began.Add(took)}
	}
	slow, quick, skipped := test("slow", 2*time.Second), test("quick", time.Second), test("skipped", 0)
	skipped.Skipped = true
	p.BeginTest(slow)
	p.BeginTest(quick)
	p.EndTest(quick)
	p.BeginTest(skipped)
	p.EndTest(skipped)
	p.EndTest(slow)
	want := "1/3  run     slow\n2/3  run     quick\n2/3  passed  quick  1.0s\n1/3  passed  slow  2.0s\n"
	if out.String() != want {
		t.Errorf("it says\n%swant\n%s", out.String(), want)
	}
}
