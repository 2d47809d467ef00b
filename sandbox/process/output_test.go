package process_test

import (
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/process"
)

// TestExit checks which line of a program's output is shown as the reason of its end.
func TestExit(t *testing.T) {
	for want, lines := range map[string][]string{
		"no luck":                                 {"I try", "no luck", "", " "},
		"panic: a bug":                            {"panic: a bug", "", "goroutine 1 [running]:", "exit status 2"},
		"flag provided but not defined: -bogus":   {"flag provided but not defined: -bogus", "Usage of manager:", "  -v value", "    \tverbosity"},
		"Error: unknown flag: --bogus":            {"Error: unknown flag: --bogus", "Usage:", "  manager [flags]", "", "  -h, --help   help"},
		"unknown shorthand flag: 'b' in -b":       {"unknown shorthand flag: 'b' in -b", "Usage of manager:"},
		"the unknown flag: is in another's words": {"the unknown flag: is in another's words"},
	} {
		exit := &process.Exit{How: "exit status 2", Last: lines}
		if got := exit.Error(); got != "exit status 2; it printed: "+want {
			t.Errorf("%q: %s", lines, got)
		}
	}
	if got := (&process.Exit{How: "exit status 0", Last: []string{""}}).Error(); got != "exit status 0, without a word" {
		t.Error(got)
	}
}
