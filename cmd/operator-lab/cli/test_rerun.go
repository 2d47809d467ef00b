package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// rerun selects the tests that failed in the last run.
type rerun struct {
	// paths to look for it.
	paths []string
	// all says that they are those of the last run: what is not found there is gone.
	all    bool
	failed []string

	mu   sync.Mutex
	seen map[string]bool
}

// loadRerun reads what failed in the last run here; it is nil when nothing did. Without paths it is looked for where it
// was then.
func loadRerun(paths []string) (*rerun, error) {
	folder, here, err := lastRuns()
	if err != nil {
		return nil, err
	}
	last, err := report.LoadLast(folder, here)
	if err != nil {
		return nil, &sandbox.Problem{Err: fmt.Errorf("what failed in the last run is not known: %w", err), Hint: "run without --failed"}
	}
	if len(last.Failed) == 0 {
		return nil, nil
	}
	r := &rerun{paths: paths, failed: last.Failed, seen: map[string]bool{}}
	if len(paths) == 0 {
		r.paths, r.all = last.Paths, true
	}
	return r, nil
}

// lastRuns is the folder in which is kept what failed, and the directory we are in, which it is kept for.
func lastRuns() (folder, here string, err error) {
	state, err := sandbox.StateDir()
	if err != nil {
		return "", "", err
	}
	here, err = os.Getwd()
	return filepath.Join(state, "failed"), here, err
}

// selected reports whether a test failed before.
func (r *rerun) selected(t *report.Test) bool { return r.has(t.ID) }

func (r *rerun) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[id] = true
	return slices.Contains(r.failed, id)
}

// before are the tests that failed before and are still to be run: all, or without those that are gone.
func (r *rerun) before() []string {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.failed), func(id string) bool { return r.all && !r.seen[id] })
}

// remember keeps what failed, for --failed.
func (t *suite) remember(r *report.Run) error {
	folder, here, err := lastRuns()
	if err != nil {
		return err
	}
	if err := report.LastOf(r, here, t.paths, t.last.before()).Save(folder); err != nil {
		return fmt.Errorf("keep what failed, for --failed: %w", err)
	}
	return nil
}
