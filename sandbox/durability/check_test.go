package durability_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// op is one operation of a history that is told by hand: times are in milliseconds; 0 as the end: never answered.
func op(what string, key, value string, from, to int64) porcupine.Operation {
	o := porcupine.Operation{Input: request{key: key}, Call: from, Return: to, Output: answer{value}}
	if what == "write" {
		o.Input, o.Output = request{true, key, value}, answer{}
	}
	if to == 0 {
		o.Return = never
	}
	return o
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name string
		ops  []porcupine.Operation
		ok   bool
	}{
		{"one after the other", []porcupine.Operation{op("write", "k", "1", 1, 2), op("read", "k", "1", 3, 4)}, true},
		{"nothing there", []porcupine.Operation{op("read", "k", "", 1, 2)}, true},
		{"at the same time", []porcupine.Operation{op("write", "k", "1", 1, 5), op("write", "k", "2", 1, 5), op("read", "k", "1", 6, 7)}, true},
		{"not known and not done", []porcupine.Operation{op("write", "k", "1", 1, 2), op("write", "k", "2", 3, 0), op("read", "k", "1", 9, 10)}, true},
		{"not known and done late", []porcupine.Operation{op("write", "k", "2", 1, 0), op("read", "k", "", 5, 6), op("read", "k", "2", 9, 10)}, true},
		{"keys for themselves", []porcupine.Operation{op("write", "a", "1", 1, 2), op("read", "b", "", 3, 4)}, true},

		{"an acknowledged write is lost", []porcupine.Operation{op("write", "k", "1", 1, 2), op("read", "k", "", 3, 4)}, false},
		{"the older one is back", []porcupine.Operation{op("write", "k", "1", 1, 2), op("write", "k", "2", 3, 4), op("read", "k", "1", 5, 6)}, false},
		{"a stale read", []porcupine.Operation{op("write", "k", "1", 1, 2), op("read", "k", "1", 3, 4), op("read", "k", "", 5, 6)}, false},
		{"two readers do not agree", []porcupine.Operation{
			op("write", "k", "1", 1, 9), op("read", "k", "1", 2, 3), op("read", "k", "", 4, 5),
		}, false},
		{"a value that nobody wrote", []porcupine.Operation{op("read", "k", "7", 1, 2)}, false},
		{"one of two keys", []porcupine.Operation{op("read", "a", "", 1, 2), op("read", "b", "7", 1, 2)}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHistory()
			h.all = test.ops
			dir := t.TempDir()
			err := h.Check(time.Minute, dir)
			if (err == nil) != test.ok {
				t.Errorf("Check: %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), "read") {
				t.Errorf("the history is not told: %v", err)
			}
			pictures, _ := filepath.Glob(filepath.Join(dir, "*.html")) // the pattern is valid
			switch {
			case test.ok && len(pictures) != 0:
				t.Errorf("a history that is in order is shown in %v", pictures)
			case !test.ok && (len(pictures) != 1 || !strings.Contains(err.Error(), pictures[0])):
				t.Errorf("it is shown in %v, which is not said: %v", pictures, err)
			case !test.ok:
				if page, err := os.ReadFile(pictures[0]); err != nil || !strings.Contains(string(page), `read \"`) {
					t.Errorf("the page does not show the reads: %v", err)
				}
			}
		})
	}
}

func TestSummary(t *testing.T) {
	h := newHistory()
	h.wrote(1, "k", "1", h.now(), true)
	h.wrote(1, "k", "2", h.now(), false)
	h.wrote(1, "k", "3", h.now(), true)
	h.read(2, "k", "3", h.now())
	got := h.summary()
	if got.Acknowledged != 2 || got.Unknown != 1 || got.Reads != 1 || got.LongestGap <= 0 {
		t.Errorf("%+v", got)
	}
	if err := h.Check(time.Minute, t.TempDir()); err != nil {
		t.Error(err)
	}
}

func TestMembershipComplains(t *testing.T) {
	at := time.Now()
	view := func(after time.Duration, members map[uint64]bool) view { return view{at.Add(after), members} }
	const voter, learner = false, true
	three := map[uint64]bool{1: voter, 2: voter, 3: voter}
	for _, test := range []struct {
		name  string
		after time.Duration
		now   map[uint64]bool
		ok    bool
	}{
		{"nothing", 0, three, true},
		{"one more", 0, map[uint64]bool{1: voter, 2: voter, 3: voter, 4: learner}, true},
		{"one less", 0, map[uint64]bool{1: voter, 2: voter}, true},
		{"one replaced", 0, map[uint64]bool{1: voter, 2: voter, 4: learner}, true},
		{"two more", 0, map[uint64]bool{1: voter, 2: voter, 3: voter, 4: voter, 5: voter}, false},
		{"two learners", 0, map[uint64]bool{1: voter, 2: voter, 3: voter, 4: learner, 5: learner}, false},
		{"two less", 0, map[uint64]bool{1: voter}, false},
		{"two less, but nobody looked", blind, map[uint64]bool{1: voter}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &membership{}
			m.compare(view(0, nil), view(0, three))
			m.compare(view(0, three), view(test.after, test.now))
			if err := m.Err(); (err == nil) != test.ok {
				t.Errorf("it says %v", err)
			}
		})
	}
}
