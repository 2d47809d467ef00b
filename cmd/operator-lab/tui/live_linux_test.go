package tui

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLive drives the real binary, with a real control plane and operator behind the screen, as a person does: it is
// the first lesson anybody takes.
func TestLive(t *testing.T) {
	binary := os.Getenv("OPERATOR_LAB_BINARY")
	if binary == "" {
		t.Skip("OPERATOR_LAB_BINARY is not set: it names the binary this test drives; 'make test' builds it and sets it")
	}
	for i, size := range []struct{ w, h int }{{80, 24}, {120, 40}, {200, 50}} {
		if i > 0 && testing.Short() {
			break
		}
		t.Run(fmt.Sprintf("%dx%d", size.w, size.h), func(t *testing.T) {
			t.Parallel()
			live(t, binary, size.w, size.h)
		})
	}
}

func live(t *testing.T, binary string, w, h int) {
	name := fmt.Sprint("live-", w)
	record := filepath.Join(t.TempDir(), "journal.jsonl")
	cmd := exec.Command(binary, "run", "zundoko", "--auto", "--name", name, "--record", record,
		"--interval", "250ms", "--song", "Zun,Doko,Zun,Zun,Zun,Zun,Doko")
	cmd.Env = os.Environ()
	term := startIn(t, cmd, w, h)
	term.await("starting on this machine", "etcd", "kube-apiserver")
	term.await("LIVE", "#2 ")

	// Three edits while no worker takes a key: one key.
	term.send(" ")
	term.await("PAUSED")
	for i := range 3 {
		kubectl(t, binary, name, "patch", "hikawa", "hikawa-sample", "--type=merge", "-p",
			fmt.Sprintf(`{"spec":{"intervalMillis":%d}}`, 251+i))
	}
	term.send("2") // the queue; at 80 columns it is behind the objects
	term.await("events, 1", "MODIFIED")
	term.send("3")

	// One key is taken; then a write is held, with its diff, before it is sent.
	term.send("s")
	term.await("PAUSED", "+ ", "merged")
	term.send("S")
	term.await("PAUSED", "NOT SENT YET")

	// Back in time, where nothing can be done, and again to the present.
	term.send("[")
	term.await("REWIND")
	term.send(" ")
	term.await("press L first")
	term.send("L")
	term.await("PAUSED", "NOT SENT YET")

	term.send(" ")
	term.await("LIVE", "hikawa-sample-kiyoshi ADDED") // which woke the last reconcile

	// The break menu makes a Fault, as kubectl would: the operator dies, and its next life finds the song.
	term.await("Four Zun") // the scenario's last note: a later one would take the place of what the fault did
	term.send("x")
	term.await("delete it")
	term.send("j")
	term.await("▸ crash the operator now")
	term.send("\r")
	term.await("ended zundoko", "found")
	if faults := kubectl(t, binary, name, "get", "faults", "--output", "jsonpath={.items[*].metadata.name} {.items[*].status.times}"); !strings.HasPrefix(faults, "break-") || !strings.HasSuffix(faults, " 1") {
		t.Errorf("the faults are %q", faults)
	}
	term.send("q")
	term.awaitEnd(0)
	term.await("キ・ヨ・シ！", "operator-lab replay")

	replay(t, binary, record, w, h)
}

// replay opens what was recorded.
func replay(t *testing.T, binary, record string, w, h int) {
	t.Helper()
	cmd := exec.Command(binary, "replay", record)
	cmd.Env = os.Environ()
	term := startIn(t, cmd, w, h)
	term.await("REPLAY")
	term.send("[[")
	term.await("REWIND")
	term.send("q")
	term.awaitEnd(0)
}

func kubectl(t *testing.T, binary, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(binary, append([]string{"kubectl", "--name", name}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return string(out)
}
