package lifeline_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/lifeline"
)

// This variable selects what the test binary does: run the tests, or be a parent, or a child of that parent.
const role = "LIFELINE_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "parent":
		parent()
	case "child":
		child()
	default:
		os.Exit(m.Run())
	}
}

// parent starts a child by a link and waits to be killed.
func parent() {
	if err := lifeline.Open(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	cmd := exec.Command(os.Getenv("LIFELINE_TEST_LINK"))
	cmd.Env = append(os.Environ(), role+"=child")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	forever()
}

// forever waits to be killed. The runtime would report a bare select as a deadlock.
func forever() { <-signalled() }

func signalled() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	return c
}

func child() {
	if !lifeline.Watch() {
		fmt.Println("nothing to watch")
	}
	lifeline.Ready()
	forever()
}

// family starts a parent with a child, and returns when the child is ready.
func family(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "child")
	if err := os.Symlink(self, link); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), role+"=parent", "LIFELINE_TEST_LINK="+link)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == lifeline.ReadyLine {
			if len(said) != 1 || !strings.HasPrefix(said[0], lifeline.PIDPrefix) {
				t.Errorf("the child said %q before it was ready, want its pid", said)
			}
			return cmd
		}
		said = append(said, lines.Text())
	}
	t.Fatal("the child did not become ready: ", said)
	return nil
}

func TestChildEndsWithKilledParent(t *testing.T) {
	dir := t.TempDir()
	if !lifeline.Gone(dir) {
		t.Error("nobody was started yet")
	}
	if err := lifeline.AwaitGone(t.Context(), dir); err != nil { // creates the file that children lock
		t.Fatal(err)
	}
	parent := family(t, dir)
	if lifeline.Gone(dir) {
		t.Error("the child is alive, and not seen")
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := lifeline.AwaitGone(short, dir); err == nil {
		t.Error("did not wait for a child that lives")
	}
	if err := parent.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := lifeline.AwaitGone(patient, dir); err != nil {
		t.Error(err)
	}
}

func TestWatchWithoutALab(t *testing.T) {
	t.Setenv(lifeline.EnvVar, "")
	if lifeline.Watch() {
		t.Error("watches a lifeline nobody gave it")
	}
}
