package guard_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// parent starts a child by a link and waits to be killed.
func parent() error {
	if err := guard.OpenPipe(); err != nil {
		return err
	}
	cmd := exec.Command("./child")
	cmd.Env = append(os.Environ(), roleVariable+"=child")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Wait()
}

// child waits for the end of its parent.
func child() error {
	if !guard.WatchParent() {
		return errors.New("nothing to watch")
	}
	if os.Getenv(restartVariable) != "" {
		return errors.Join(os.Unsetenv(restartVariable), guard.Restart())
	}
	guard.Ready()
	select {} // the goroutine that watches keeps this from being a deadlock
}

// restartVariable is set for a child that begins anew once before it is ready.
const restartVariable = "OPERATOR_LAB_TEST_RESTART"

// family starts a parent with a child, and returns when the child is ready, with what it has said before.
func family(t *testing.T, dir string) (parent *exec.Cmd, said []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "child")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), roleVariable+"=parent")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == guard.ReadyLine {
			return cmd, said
		}
		said = append(said, lines.Text())
	}
	t.Fatal("the child did not become ready: ", said)
	return nil, nil
}

// endsWith kills a parent and requires that its child ends, too.
func endsWith(t *testing.T, parent *exec.Cmd, dir string) {
	t.Helper()
	if err := parent.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := guard.AwaitGone(patient, dir); err != nil {
		t.Error(err)
	}
}

func TestChildEndsWithKilledParent(t *testing.T) {
	dir := t.TempDir()
	if !guard.Gone(dir) {
		t.Error("nobody was started yet")
	}
	if err := guard.AwaitGone(t.Context(), dir); err != nil { // creates the file that children lock
		t.Fatal(err)
	}
	parent, said := family(t, dir)
	if len(said) != 1 || !strings.HasPrefix(said[0], guard.PIDPrefix) {
		t.Errorf("the child said %q before it was ready, want its pid", said)
	}
	if guard.Gone(dir) {
		t.Error("the child is alive, and not seen")
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := guard.AwaitGone(short, dir); err == nil {
		t.Error("did not wait for a child that lives")
	}
	endsWith(t, parent, dir)
}

// TestRestart: a child that begins anew keeps its pid, its output and its parent.
func TestRestart(t *testing.T) {
	t.Setenv(restartVariable, "yes")
	dir := t.TempDir()
	if err := guard.AwaitGone(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	parent, said := family(t, dir)
	if len(said) != 2 || said[0] != said[1] {
		t.Errorf("the child said %q, want its pid twice", said)
	}
	endsWith(t, parent, dir)
}

func TestWatchWithoutALab(t *testing.T) {
	t.Setenv(guard.PipeVariable, "")
	if guard.WatchParent() {
		t.Error("watches a pipe that nobody gave it")
	}
}
