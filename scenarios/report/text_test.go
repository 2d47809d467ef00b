package report_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/operator-lab/operator-lab/scenarios/report"
)

func TestText(t *testing.T) {
	rerun := "operator-lab test --failed zundoko"
	for name, o := range map[string]report.TextOptions{
		"text.txt":         {Rerun: rerun},
		"text-quiet.txt":   {Quiet: true, Rerun: rerun},
		"text-verbose.txt": {Verbose: true},
		"text-color.txt":   {Color: true, Path: func(file string) string { return "…/" + file }},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			x := report.NewText(&out, o)
			play(sample(), x)
			if err := x.Err(); err != nil {
				t.Fatal(err)
			}
			golden(t, name, out.String())
		})
	}
}

func TestTextOfARunInWhichAllPassed(t *testing.T) {
	r := sample()
	r.Tests = r.Tests[:1]
	var loud, quiet strings.Builder
	play(r, report.Tee{report.NewText(&loud, report.TextOptions{Rerun: "again"}), report.NewText(&quiet, report.TextOptions{Quiet: true})})
	for _, no := range []string{"again", "FAIL", "slowest"} {
		if strings.Contains(loud.String(), no) {
			t.Errorf("%q has no place in\n%s", no, loud.String())
		}
	}
	if want := "1 passed, 0 failed, 0 skipped in 1m15s, seed 42\n"; quiet.String() != want {
		t.Errorf("quiet says\n%s", quiet.String())
	}
}

// TestTextIsSafe checks that output of programs and texts of objects can neither control the terminal nor imitate the
// lab's own output.
func TestTextIsSafe(t *testing.T) {
	evil := "a\x1b]0;title\x07b\x1b[2Jc\x9bd\u202ee\xff\rf"
	r := &report.Run{Started: start, Ended: at(1)}
	o := &report.Operation{
		Type: "script", Phase: report.Try, Name: evil, Description: evil, File: evil, Line: 1, Started: start, Ended: at(1),
		Output: "::error::me\n" + evil + "\n",
		Failure: &report.Failure{
			Message: evil, Hint: evil, Object: evil, Diff: []string{"+" + evil}, Loop: []string{evil},
			Differences: []report.Difference{{Path: evil, Message: evil}},
		},
	}
	r.Tests = []*report.Test{{
		Name: evil, ID: evil, File: evil, Namespace: evil, Description: evil, Started: start, Ended: at(1), Journal: evil,
		Notes: []string{evil}, Steps: []*report.Step{{Name: evil, Description: evil, Operations: []*report.Operation{o}}},
		Findings: []report.Finding{{Oracle: evil, Message: evil, Details: []string{evil}}},
	}}
	var out strings.Builder
	play(r, report.NewText(&out, report.TextOptions{Verbose: true, Replay: func(string) string { return "" }}))
	for _, no := range []string{"\x1b", "\x07", "\x9b", "\r", "\u202e", "\xff", "\n::"} {
		if strings.Contains(out.String(), no) {
			t.Errorf("%q is in\n%s", no, out.String())
		}
	}
	if !strings.Contains(out.String(), "| ::error::me\n") {
		t.Errorf("output is not marked as such:\n%s", out.String())
	}
}

func TestTextCutsLongOutput(t *testing.T) {
	r := sample()
	script := r.Tests[1].Steps[0].Operations[2]
	script.Output = ""
	for i := range 1000 {
		script.Output += fmt.Sprintf("line %d\n", i)
	}
	for i := range 200 {
		f := r.Tests[1].Steps[0].Operations[1].Failure
		f.Diff = append(f.Diff, fmt.Sprintf("+ item %d", i))
	}
	var out strings.Builder
	play(r, report.NewText(&out, report.TextOptions{}))
	for _, want := range []string{"| line 0\n", "| … 940 lines left out; -v shows all\n", "| line 999\n", "… 123 lines left out\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

// TestTextOfParallelTests checks that the lines of a failure stay together.
func TestTextOfParallelTests(t *testing.T) {
	var alone, all strings.Builder
	test := failing()
	play(&report.Run{Tests: []*report.Test{test}}, report.NewText(&alone, report.TextOptions{}))
	_, block, _ := strings.Cut(alone.String(), "FAIL")
	block, _, _ = strings.Cut(block, "\n\n")
	x := report.NewText(&all, report.TextOptions{})
	var tests sync.WaitGroup
	for range 8 {
		tests.Go(func() {
			x.BeginTest(test)
			x.EndTest(test)
		})
	}
	tests.Wait()
	if got := strings.Count(all.String(), block); got != 8 {
		t.Errorf("%d of 8 failures are in one piece:\n%s", got, all.String())
	}
}

func TestTextKeepsTheErrorOfItsWriter(t *testing.T) {
	x, w := report.NewText(&failingWriter{}, report.TextOptions{}), &failingWriter{}
	l := report.NewLines(w)
	play(sample(), report.Tee{x, l})
	if !errors.Is(x.Err(), errFull) || !errors.Is(l.Err(), errFull) {
		t.Errorf("got %v and %v", x.Err(), l.Err())
	}
	if w.writes != 2 {
		t.Errorf("it wrote %d times, also after the error", w.writes)
	}
}
