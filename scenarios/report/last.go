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

// Last is a record of the last run in a directory, so that failed tests can be run again.
type Last struct {
	// Directory is the directory in which the run was started.
	Directory string `json:"directory"`
	// Paths are the arguments of the run.
	Paths []string `json:"paths,omitempty"`
	// Failed are the IDs of the tests that failed.
	Failed []string `json:"failed"`
}

// mostKept is the maximum number of directories with a record.
const mostKept = 200

// LoadLast reads the record of a directory; folder contains all records. If there is none, the record has no failed
// tests.
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

// Save writes the record with mode 0600, or removes it if nothing failed.
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

// LastOf returns the record of a run of the given paths. The tests in before, which failed earlier, stay among the
// failed ones unless this run finished them.
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

// keepNewest removes the oldest records beyond mostKept.
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
