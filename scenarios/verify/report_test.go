package verify_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/verify"
)

// told is a report of four plans, one with each result.
func told() *verify.Report {
	return &verify.Report{
		Scenario: "song", File: "song/chainsaw-test.yaml", Writes: 2, Kinds: []string{"Word"},
		Plans: []verify.PlanResult{
			{Fault: "crash-after", At: "create Word one", Result: verify.Wrong},
			{Fault: "crash-after", At: "update Song a", Result: verify.Right},
			{Fault: "conflict", At: "create Word one", Result: verify.Needless, Why: "it cannot conflict"},
			{Fault: "conflict", At: "update Song a", Result: verify.Skipped, Why: "it was not played to its end"},
		},
		Faults: []verify.FaultCount{
			{Name: "crash-after", Says: "it died", Plans: 2, Played: 2, Wrong: 1},
			{Name: "conflict", Says: "it got a conflict", Plans: 2, Needless: 1, Skipped: 1},
		},
		Findings: []verify.Finding{{
			Plan: "crash-after at create Word one", Text: "it died. In the end: Word two is missing", Signature: "ab", Wrong: []string{"Word two is missing"},
			Steady: true, Times: 3,
		}},
	}
}

func TestReportText(t *testing.T) {
	r := told()
	want := `scenario song: 2 writes without a fault, 4 plans
compared: Word

  fault          plans played  wrong  needless  skipped
a crash-after        2      2      1         0        0   it died
b conflict           2      0      0         1        1   it got a conflict

. right, X wrong, - needless, ? skipped  a b
create Word one                          X -
update Song a                            . ?

1. it died. In the end: Word two is missing
   - Word two is missing

1 finding; 1 of 4 plans skipped
`
	if diff := cmp.Diff(want, textOf(t, r)); diff != "" {
		t.Error(diff)
	}
	r.Accept(told())
	if text := textOf(t, r); !strings.Contains(text, "\n1. (known) it died") || !strings.Contains(text, "\n1 finding, 1 known; 1 of 4 plans skipped\n") {
		t.Error(text)
	}
}

// TestReportNotSteady checks that of what goes wrong only sometimes the report tells what came of the play in which it did not.
func TestReportNotSteady(t *testing.T) {
	r := told()
	r.Findings[0].Steady, r.Findings[0].Times, r.Findings[0].Then = false, 1, []string{"Word three is there", "Word four is there"}
	want := `
not steady or not confirmed, and so no finding:
   crash-after at create Word one: 1 of 3 times. it died. In the end: Word two is missing
      the next time: Word three is there
      the next time: Word four is there

0 findings; 1 of 4 plans skipped
`
	if text := textOf(t, r); !strings.HasSuffix(text, want) {
		t.Error(text)
	}
}

func TestReportHTML(t *testing.T) {
	r := told()
	r.Findings[0].Text += " <b>"
	r.Findings = append(r.Findings, verify.Finding{Plan: "error at update Song a", Text: "it failed", Times: 2, Then: []string{"all was as without the fault"}})
	page := htmlOf(t, r)
	for want, times := range map[string]int{
		"<h1>verify: singer, scenario song</h1>": 1, "<p>1 finding; 1 of 4 plans skipped. ": 1, "<h2>1. crash-after at create Word one</h2>": 1,
		"it died. In the end: Word two is missing &lt;b&gt;": 1, "<li>error at update Song a: 2 times. it failed<br>the next time: all was as without the fault</li>": 1,
		`<td class="cell wrong" title="crash-after: wrong">X</td>`: 1, `title="conflict: needless, it cannot conflict"`: 1,
		"<iframe": 0, "(known)": 0, "src=": 0, "href=": 0, "ZgotmplZ": 0,
	} {
		if n := strings.Count(page, want); n != times {
			t.Errorf("%q is there %d times, not %d:\n%s", want, n, times, page)
		}
	}
	r.Accept(told())
	if page := htmlOf(t, r); !strings.Contains(page, "<p>1 finding, 1 known; 1 of 4 plans skipped. ") || !strings.Contains(page, "1. (known) crash-after") {
		t.Error(page)
	}
}

func htmlOf(t *testing.T, r *verify.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteHTML(&b, "singer"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestReportRun checks what the writers of scenarios make of a report, and that what is known fails no more.
func TestReportRun(t *testing.T) {
	r := told()
	junit := func() string {
		var b strings.Builder
		if err := report.JUnitTest.Write(&b, r.Run()); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, want := range []string{`tests="4"`, `failures="1"`, `skipped="2"`, "it cannot conflict", "Word two is missing", "crash-after at create Word one"} {
		if text := junit(); !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	var b strings.Builder
	github := report.NewGitHub(report.GitHubOptions{Commands: &b})
	github.EndRun(r.Run())
	if !strings.HasPrefix(b.String(), "::error file=song/chainsaw-test.yaml,line=1,title=crash-after at create Word one") || strings.Count(b.String(), "::error") != 1 {
		t.Error(b.String())
	}
	known := told()
	known.Findings[0].Signature = "cd"
	if r.Accept(known); len(r.New()) != 1 {
		t.Error("another finding is taken for it")
	}
	if r.Accept(told()); len(r.New()) != 0 || strings.Contains(junit(), `failures="1"`) {
		t.Error("what is known fails")
	}
	self := &verify.Report{Findings: []verify.Finding{{Plan: "no fault", Text: "it differs", Steady: true}}}
	if run := self.Run(); len(run.Tests) != 1 || !run.Tests[0].Failed() || run.Tests[0].Name != "no fault" {
		t.Errorf("%+v", run.Tests)
	}
}
