package report_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operator-lab/operator-lab/scenarios/report"
)

func TestLast(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "failed")
	none, err := report.LoadLast(folder, "/a")
	if err != nil || len(none.Failed) != 0 {
		t.Fatalf("got %+v, %v", none, err)
	}
	last := report.LastOf(sample(), "/a", []string{"zundoko"}, nil)
	if err := last.Save(folder); err != nil {
		t.Fatal(err)
	}
	got, err := report.LoadLast(folder, "/a")
	want := &report.Last{Directory: "/a", Paths: []string{"zundoko"}, Failed: []string{"zundoko/crash[at write=2]", "zundoko/hot"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if other, err := report.LoadLast(folder, "/b"); err != nil || len(other.Failed) != 0 {
		t.Errorf("another directory has %+v, %v", other, err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v", info.Mode(), err)
	}
	// Without failures the record is removed, also the second time.
	for range 2 {
		if err := (&report.Last{Directory: "/a"}).Save(folder); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(files[0]); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", files[0], err)
	}
}

func TestLastOf(t *testing.T) {
	r := sample() // last was not run, hot failed, sings passed
	got := report.LastOf(r, "/a", nil, []string{"last", "zundoko/sings", "zundoko/hot", "elsewhere"})
	want := []string{"zundoko/crash[at write=2]", "zundoko/hot", "last", "elsewhere"}
	if diff := cmp.Diff(want, got.Failed); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatTheRunEndedBeforeIsStillToBeRun(t *testing.T) {
	interrupted := &report.Operation{Type: "script", Phase: report.Try, Interrupted: true}
	began := &report.Test{ID: "began", Started: at(1), Ended: at(2), Unfinished: true, Steps: []*report.Step{{Operations: []*report.Operation{interrupted}}}}
	r := &report.Run{Tests: []*report.Test{
		began,
		{ID: "skipped-by-fail-fast", Started: at(1), Ended: at(1), Skipped: true, Unfinished: true},
		{ID: "skipped-by-its-file", Started: at(1), Ended: at(1), Skipped: true},
		{ID: "new", Started: at(1), Ended: at(1), Unfinished: true},
	}}
	if began.Failed() || began.Status() != report.NotRun || began.Steps[0].Status() != report.NotRun || interrupted.Status() != report.NotRun {
		t.Errorf("one that was interrupted is %s, its step %s", began.Status(), began.Steps[0].Status())
	}
	if diff := cmp.Diff(report.Counts{Skipped: 2, NotRun: 2}, r.Counts()); diff != "" {
		t.Error(diff)
	}
	got := report.LastOf(r, "/a", nil, []string{"began", "skipped-by-fail-fast", "skipped-by-its-file"})
	if diff := cmp.Diff([]string{"began", "skipped-by-fail-fast"}, got.Failed); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLastThatIsDamaged(t *testing.T) {
	folder := t.TempDir()
	if err := (&report.Last{Directory: "/a", Failed: []string{"x"}}).Save(folder); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*.json"))
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := report.LoadLast(folder, "/a"); err == nil {
		t.Error("it could be read")
	}
}

func TestLastDoesNotGrowForEver(t *testing.T) {
	folder := t.TempDir()
	for i := range 230 {
		if err := (&report.Last{Directory: fmt.Sprint(i), Failed: []string{"x"}}).Save(folder); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) != 200 {
		t.Errorf("%d files are kept, %v", len(files), err)
	}
	if newest, err := report.LoadLast(folder, "229"); err != nil || len(newest.Failed) != 1 {
		t.Errorf("the newest is gone: %+v, %v", newest, err)
	}
}
