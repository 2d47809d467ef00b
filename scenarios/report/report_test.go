package report_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/operator-lab/operator-lab/scenarios/report"
)

// update rewrites the golden files: go test ./scenarios/report -update; then read the difference.
var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with testdata/<name>.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); with -update it is rewritten:\n%s", path, diff)
	}
}

var start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// at returns a time of the run, in seconds from its start.
func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// sample returns a run with a test of each status.
func sample() *report.Run {
	concurrent := false
	return &report.Run{
		Name: "chainsaw-report", Seed: 42, Started: start, Ended: at(74.5),
		Tests: []*report.Test{
			{
				Name: "sings", ID: "zundoko/sings", Folder: "zundoko/sings", File: "zundoko/sings/chainsaw-test.yaml", Line: 1,
				Description: "It sings to the end.", Namespace: "chainsaw-calm-newt", Concurrent: &concurrent,
				Started: at(0.1), Ended: at(1.34),
				Steps: []*report.Step{{
					Name: "sing", Started: at(0.1), Ended: at(1.2),
					Operations: []*report.Operation{
						operation("apply", "Zundoko hikawa", 5, 0.1, 0.12),
						operation("assert", "Zundoko hikawa", 7, 0.12, 1.2),
					},
				}},
			},
			failing(),
			{
				Name: "hot", ID: "zundoko/hot", Folder: "zundoko/hot", File: "zundoko/hot/chainsaw-test.yaml", Line: 1,
				Started: at(5), Ended: at(70),
				Steps: []*report.Step{{Name: "step 1", Started: at(5), Ended: at(69), Operations: []*report.Operation{
					operation("sleep", "1m0s", 4, 5, 65),
				}}},
				Findings: []report.Finding{{
					Oracle: "hot-loop", Message: "Zundoko.status.sung flips", Details: []string{"#4 true", "#5 false"},
				}},
				Notes: []string{"the counts have no reference run"},
			},
			{Name: "later", ID: "later", Folder: "later", File: "later/chainsaw-test.yaml", Line: 1, Skipped: true, SkipReason: "spec.skip is set"},
			{Name: "last|one", ID: "last", Folder: "last", File: "last/chainsaw-test.yaml", Line: 1},
		},
	}
}

func operation(kind, name string, line int, from, to float64) *report.Operation {
	return &report.Operation{
		Type: kind, Phase: report.Try, Name: name, File: "zundoko/sings/chainsaw-test.yaml", Line: line,
		Started: at(from), Ended: at(to),
	}
}

// failing returns a test with a failed assert that has all details.
func failing() *report.Test {
	apply := operation("apply", "Zundoko hikawa", 12, 1, 1.02)
	assert := operation("assert", "Zundoko hikawa", 14, 1.02, 4.02)
	assert.Failure = &report.Failure{
		Message: "Zundoko chainsaw-sad-owl/hikawa is not as asserted after 3s",
		Hint:    "give it more time with --assert-timeout",
		Object:  "Zundoko chainsaw-sad-owl/hikawa", Others: 2,
		Differences: []report.Difference{
			{Path: "status.phase", Message: `is "Singing", want "Done"`},
			{Path: "status.words[4]", Message: "there is no such item"},
		},
		Diff: []string{" status:", "-  phase: Done", "+  phase: Singing"},
		Loop: []string{"last reconcile #12 of zundoko, 2.1s ago: done", "because Event/hikawa.1 was updated"},
	}
	script := operation("script", "kubectl get …", 18, 4.02, 4.12)
	script.Phase, script.Description = report.Catch, "what there is"
	script.Output = "\x1b[31mNAME\x1b[0m   PHASE\r\nhikawa\tSinging\n"
	cleanup := operation("delete", "Zundoko hikawa", 0, 4.2, 4.4)
	cleanup.Phase, cleanup.File = report.Cleanup, ""
	cleanup.Output = "not shown\n"
	return &report.Test{
		Name: "crash, 50% [at write=2]", ID: "zundoko/crash[at write=2]", Folder: "zundoko/crash", Scenario: "at write=2",
		File: "zundoko/crash/chainsaw-test.yaml", Line: 3, Description: "It goes on where it was.", Namespace: "chainsaw-sad-owl",
		Started: at(0.9), Ended: at(4.4), Journal: "/state/journals/crash.jsonl",
		Steps: []*report.Step{
			{Name: "sing", Description: "with a crash", Started: at(1), Ended: at(4.12), Operations: []*report.Operation{apply, assert, script}},
			{Name: "cleanup", Started: at(4.2), Ended: at(4.4), Operations: []*report.Operation{cleanup}},
		},
	}
}

// play calls a sink for a complete run, with one test after the other.
func play(r *report.Run, s report.Sink) {
	s.BeginRun(r)
	for _, t := range r.Tests {
		if t.Status() == report.NotRun {
			continue
		}
		s.BeginTest(t)
		for _, step := range t.Steps {
			s.BeginStep(t, step)
			for _, o := range step.Operations {
				s.BeginOperation(t, step, o)
				s.EndOperation(t, step, o)
			}
			s.EndStep(t, step)
		}
		s.EndTest(t)
	}
	s.EndRun(r)
}

// failingWriter fails at its second write.
type failingWriter struct{ writes int }

var errFull = errors.New("full")

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.writes++; w.writes > 1 {
		return 0, errFull
	}
	return len(b), nil
}

func TestCounts(t *testing.T) {
	want := report.Counts{Passed: 1, Failed: 2, Skipped: 1, NotRun: 1}
	if got := sample().Counts(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTeeTellsAllTheSame(t *testing.T) {
	var a, b strings.Builder
	play(sample(), report.Tee{report.NewLines(&a), report.Nothing{}, report.NewLines(&b)})
	if a.String() == "" || a.String() != b.String() {
		t.Errorf("one was told\n%s\nthe other\n%s", a.String(), b.String())
	}
}
