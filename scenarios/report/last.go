package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Last is what is kept of the last run in a directory, so that what failed can be run again.
type Last struct {
	// Directory the run was started in.
	Directory string `json:"directory"`
	// Paths it was asked to run.
	Paths []string `json:"paths,omitempty"`
	// Failed are the ids of the tests that failed.
	Failed []string `json:"failed"`
}

// mostKept is for how many directories it is kept.
const mostKept = 200

// LoadLast reads what is kept for a directory in a folder of such files. A directory in which nothing failed has nothing.
func LoadLast(folder, directory string) (*Last, error) {
	text, err := os.ReadFile(lastFile(folder, directory))
	if errors.Is(err, os.ErrNotExist) {
		return &Last{Directory: directory}, nil
	}
	if err != nil {
		return nil, err
	}
	var l Last
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, fmt.Errorf("read %s: %w", lastFile(folder, directory), err)
	}
	return &l, nil
}

// Save keeps it, with mode 0600; when nothing failed, nothing is kept.
func (l *Last) Save(folder string) error {
	file := lastFile(folder, l.Directory)
	if len(l.Failed) == 0 {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	err = writeFile(file, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
	return errors.Join(err, keepNewest(folder))
}

// LastOf is what is to be kept of a run that was asked to run paths. The tests in before, which failed earlier, stay
// among those that failed unless this run had them and ended them.
func LastOf(r *Run, directory string, paths, before []string) *Last {
	l := &Last{Directory: directory, Paths: paths}
	ended := map[string]bool{}
	for _, t := range r.Tests {
		status := t.Status()
		if status == Failed && !slices.Contains(l.Failed, t.ID) {
			l.Failed = append(l.Failed, t.ID)
		}
		ended[t.ID] = ended[t.ID] || status == Failed || status != NotRun && !t.Unfinished
	}
	for _, id := range before {
		if !ended[id] {
			l.Failed = append(l.Failed, id)
		}
	}
	return l
}

func lastFile(folder, directory string) string {
	sum := sha256.Sum256([]byte(directory))
	return filepath.Join(folder, hex.EncodeToString(sum[:8])+".json")
}

// keepNewest clears away what was kept longest ago: directories come and go.
func keepNewest(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) <= mostKept {
		return err
	}
	age := func(file string) int64 {
		info, err := os.Stat(file)
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortFunc(files, func(a, b string) int { return int(min(max(age(a)-age(b), -1), 1)) })
	for _, file := range files[:len(files)-mostKept] {
		_ = os.Remove(file)
	}
	return nil
}
