package book

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStarter checks that a starter lesson has no problems.
func TestStarter(t *testing.T) {
	for _, operator := range []string{"", "zundoko", "maintpage"} {
		folder := t.TempDir()
		name, files := Starter(StarterOptions{Number: NextNumber(folder), ID: "first-steps", Operator: operator})
		if name != "01-first-steps" {
			t.Errorf("the folder is %s", name)
		}
		if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(folder, name, file), text, 0o600); err != nil {
				t.Fatal(err)
			}
			for i, l := range strings.Split(string(text), "\n") {
				if strings.TrimRight(l, " \t") != l {
					t.Errorf("%s:%d ends with blanks", file, i+1)
				}
			}
		}
		for _, p := range LintFolders([]string{folder}, Rules{}) {
			t.Errorf("%q: %v", operator, p)
		}
		if n := NextNumber(folder); n != 2 {
			t.Errorf("the next one is %d", n)
		}
	}
}

func TestCheckID(t *testing.T) {
	for id, ok := range map[string]bool{
		"first-steps": true, "a": true, "etcd3": true,
		"": false, "7": false, "7-run": false, "Run": false, "run_it": false, "-run": false, "run-": false, "run--it": false,
		"a/b": false, "..": false, "next": false, "hint": false, strings.Repeat("a", 41): false,
	} {
		if err := CheckID(id); (err == nil) != ok {
			t.Errorf("%q: %v", id, err)
		}
	}
}
