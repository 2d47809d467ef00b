package project_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/project"
)

// TestOpenWork checks that a private directory has one user, with others for those that run at the same time, and that
// directories that are not needed any more go.
func TestOpenWork(t *testing.T) {
	t.Setenv("OPERATOR_LAB_STATE_DIR", t.TempDir())
	open := func(of string) *project.Work {
		t.Helper()
		w, err := project.OpenWork(of)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	gone, old, used, kept := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	dirs := map[string]string{}
	for name, of := range map[string]string{"gone": gone, "old": old, "kept": kept} {
		w := open(of)
		dirs[name] = w.Dir
		w.Close()
	}
	w := open(used)
	defer w.Close()
	dirs["used"] = w.Dir
	second := open(used)
	if second.Dir != w.Dir+"-2" {
		t.Errorf("a second run has %s beside %s", second.Dir, w.Dir)
	}
	second.Close()
	if again := open(used); again.Dir != second.Dir {
		t.Errorf("after it %s is taken, not %s", again.Dir, second.Dir)
	} else {
		again.Close()
	}

	long := time.Now().AddDate(0, 0, -31)
	for _, name := range []string{"old", "used"} {
		if err := os.Chtimes(filepath.Join(dirs[name], "lock"), long, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(gone); err != nil {
		t.Fatal(err)
	}
	open(t.TempDir()).Close()
	for name, dir := range dirs {
		_, err := os.Stat(dir)
		if there := err == nil; there != (name == "used" || name == "kept") {
			t.Errorf("%s is there: %v", name, there)
		}
	}
	open(old).Close() // it is made anew
}
