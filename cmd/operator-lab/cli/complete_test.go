package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
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
		"scorecard --habit 1,":                "1,2 1,7",
		"run etcd --controllers ":             "etcdcluster etcdbackup",
		"verify ":                             "zundoko",
		"verify --only crash-before,":         "crash-before,crash-after",
		"verify --scenario ":                  "zundoko/sings",
		"verify --output ":                    "json sarif",
		"verify zundoko --parameter ":         "song= seed=",
		"load etcd --parameter ":              "controllers=",
		"test --operator etcd --parameter ":   "controllers=",
		"oc new-":                             "new-project",
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
		got := runLine(append([]string{"__complete"}, strings.Split(line, " ")...), Programs{Kubectl: noCompletions})
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

// noCompletions is a program that offers nothing.
func noCompletions() int {
	fmt.Println(":4")
	return 0
}

// TestCompletionsAreTaken offers nothing that the command line refuses, and no files where none are taken.
func TestCompletionsAreTaken(t *testing.T) {
	for line, refused := range map[string]string{
		"run etcd --variant ":        "published", // a set of CRDs, not a variant
		"verify etcd --parameter ":   "song= variant=",
		"verify --only crash-after,": "crash-after crash-after,crash-after",
	} {
		got := runLine(append([]string{"__complete"}, strings.Split(line, " ")...), Programs{Kubectl: noCompletions})
		for answer := range strings.Lines(got.stdout) {
			if word, _, _ := strings.Cut(strings.TrimSpace(answer), "\t"); slices.Contains(strings.Fields(refused), word) {
				t.Errorf("%q offers %q", line, word)
			}
		}
	}
	for _, line := range []string{"down ", "new lesson ", "traffic ", "lesson check ", "version "} {
		got := runLine(append([]string{"__complete"}, strings.Split(line, " ")...), Programs{})
		if want := fmt.Sprintf(":%d\n", cobra.ShellCompDirectiveNoFileComp); got.stdout != want {
			t.Errorf("%q: got %q, want %q", line, got.stdout, want)
		}
	}
}

// TestCompletionIsThePrograms asks a linked program for completions: without a sandbox it gets no cluster.
func TestCompletionIsThePrograms(t *testing.T) {
	t.Setenv("OPERATOR_LAB_STATE_DIR", t.TempDir())
	t.Setenv("KUBECONFIG", "/somebody's")
	t.Setenv("KUBECACHEDIR", "")
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	got := runLine([]string{"__complete", "kubectl", "get", "po"}, Programs{Kubectl: func() int {
		fmt.Printf("%s\n%s\n:%d\n", strings.Join(os.Args, " "), os.Getenv("KUBECONFIG"), cobra.ShellCompDirectiveNoSpace)
		return 0
	}})
	if want := "kubectl __complete get po\n" + os.DevNull + "\n:2\n"; got.stdout != want {
		t.Errorf("got %q, want %q", got.stdout, want)
	}
}
