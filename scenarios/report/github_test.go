package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/scenarios/report"
)

func TestGitHub(t *testing.T) {
	workspace, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	r := sample()
	r.Tests[2].File = "../elsewhere/chainsaw-test.yaml"
	var commands, summary strings.Builder
	g := report.NewGitHub(report.GitHubOptions{
		Commands: &commands, Summary: &summary, Workspace: filepath.Dir(workspace),
	})
	play(r, g)
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	golden(t, "github.txt", commands.String())
	golden(t, "github.md", summary.String())
	if n := strings.Count(commands.String(), "\n"); n != 2 {
		t.Errorf("2 failures make %d lines", n)
	}
}

func TestGitHubTellsNobody(t *testing.T) {
	g := report.NewGitHub(report.GitHubOptions{})
	play(sample(), g)
	if err := g.Err(); err != nil {
		t.Error(err)
	}
}

// TestGitHubSummaryIsSmall checks the size of the summary: GitHub accepts 1 MiB.
func TestGitHubSummaryIsSmall(t *testing.T) {
	r := sample()
	for range 11 {
		r.Tests = append(r.Tests, r.Tests...)
	}
	for i, test := range r.Tests {
		if test.Status() == report.Failed {
			long := failing()
			long.Steps[0].Operations[1].Failure.Message = strings.Repeat("long ", 1000)
			r.Tests[i] = long
		}
	}
	var summary strings.Builder
	play(r, report.NewGitHub(report.GitHubOptions{Summary: &summary}))
	if summary.Len() > 1<<20/4 {
		t.Errorf("it has %d bytes", summary.Len())
	}
	if want := "…and 9740 tests more."; !strings.Contains(summary.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, summary.String()[summary.Len()-200:])
	}
}
