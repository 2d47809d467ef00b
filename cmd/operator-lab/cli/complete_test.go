package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompletions asks for completions as shells do, and looks for words among the answers.
func TestCompletions(t *testing.T) {
	state := t.TempDir()
	t.Setenv("OPERATOR_LAB_STATE_DIR", state)
	journal := filepath.Join(state, "journals", "zundoko-1.jsonl")
	if err := os.MkdirAll(filepath.Dir(journal), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(journal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"":                                    "up lesson replay",
		"run ":                                "zundoko maintpage etcd",
		"run zundoko --variant ":              "classic hardened",
		"run zundoko --lang ":                 "en ja",
		"run zundoko --nodes ":                "0 1 2",
		"operator ":                           "zundoko maintpage etcd",
		"operator etcd --variant ":            "classic hardened",
		"scorecard ":                          "zundoko maintpage etcd",
		"scorecard --variant ":                "classic hardened",
		"scorecard --habit ":                  "1 7",
		"scorecard --phase ":                  "1 5",
		"scorecard --output ":                 "json",
		"lesson ":                             "run-zundoko next",
		"lesson --track ":                     "ten-minutes author sre",
		"lesson list --track ":                "ten-minutes author sre",
		"lesson list --output ":               "table json",
		"lesson list --lang ":                 "en ja",
		"lesson verify ":                      "run-zundoko",
		"lesson verify --output ":             "text json",
		"test ":                               "zundoko/sings",
		"test etcd/":                          "etcd/demo",
		"test --operator ":                    "zundoko maintpage etcd",
		"test --variant ":                     "classic hardened",
		"test --report-format ":               "JSON JUNIT-TEST",
		"test --output ":                      "jsonl json",
		"test --default-compiler ":            "jp cel",
		"test --deletion-propagation-policy ": "Foreground Orphan",
		"lint ":                               "zundoko/sings",
		"lint --format ":                      "text json github sarif",
		"lint --output ":                      "json",
		"replay ":                             journal,
		"replay --format ":                    "jsonl",
		"new ":                                "scenario lesson operator",
		"new scenario --operator ":            "zundoko",
		"new lesson --operator ":              "zundoko",
		"up --crds-of ":                       "maintpage/classic",
		"list --output ":                      "json",
		"status --output ":                    "json",
		"version --output ":                   "json",
		"assets --print ":                     "path env",
	} {
		got := runLine(append([]string{"__complete"}, strings.Split(line, " ")...), Programs{})
		offered := map[string]bool{}
		for answer := range strings.Lines(got.stdout) {
			word, _, _ := strings.Cut(strings.TrimSpace(answer), "\t")
			offered[word] = true
		}
		for word := range strings.FieldsSeq(want) {
			if !offered[word] {
				t.Errorf("%q does not offer %q:\n%s", line, word, got.stdout)
			}
		}
	}
}
