package sandbox_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest/output"
)

// lab is the operator-lab binary at work in a process of its own.
type lab struct {
	cmd    *exec.Cmd
	said   *output.Output
	exited chan struct{}
}

// up runs 'operator-lab up' in the foreground.
func up(t *testing.T, name string) *lab {
	t.Helper()
	return launch(t, "up", "--name", name)
}

// launch runs operator-lab.
func launch(t *testing.T, args ...string) *lab {
	t.Helper()
	binary, err := sandbox.FindBinary()
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{said: &output.Output{}, exited: make(chan struct{})}
	l.cmd = exec.Command(binary, args...)
	l.cmd.Env = append(os.Environ(), "OPERATOR_LAB_STATE_DIR="+stateDir)
	l.cmd.Stdout, l.cmd.Stderr = l.said, l.said
	l.cmd.WaitDelay = time.Second // its programs hold the same output for a moment longer
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(l.exited)
		_ = l.cmd.Wait()
	}()
	t.Cleanup(l.kill)
	return l
}

func (l *lab) kill() {
	_ = l.cmd.Process.Kill()
	<-l.exited
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// listeners are the sandbox's ports that something listens on.
func listeners(t *testing.T, dir string) []int {
	t.Helper()
	var record struct{ Ports map[string]int }
	b, err := os.ReadFile(filepath.Join(dir, "sandbox.json"))
	if err != nil {
		return nil // killed before it wrote one
	}
	if err := json.Unmarshal(b, &record); err != nil {
		t.Fatal(err)
	}
	var open []int
	for _, port := range record.Ports {
		if conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second); err == nil {
			_ = conn.Close()
			open = append(open, port)
		}
	}
	return open
}

func TestInterruptedLabStops(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		l := up(t, "interrupted")
		dir := filepath.Join(stateDir, "sandboxes", "interrupted")
		sandboxtest.Eventually(t, "the sandbox to be ready", readyIn("interrupted"))
		_ = l.cmd.Process.Signal(signal)
		<-l.exited
		if code := l.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("%v: exit code %d; output:\n%s", signal, code, l.said)
		}
		if left := programs(dir); len(left) > 0 {
			t.Errorf("%v: processes %v are left", signal, left)
		}
	}
}

// TestAnswersForEnvtest checks that what a sandbox answers envtest in the name of its programs, whether they have a
// certain flag, is what they say themselves.
func TestAnswersForEnvtest(t *testing.T) {
	t.Parallel()
	binary, err := sandbox.FindBinary()
	if err != nil {
		t.Fatal(err)
	}
	assets, err := sandbox.Assets(stateDir, binary)
	if err != nil {
		t.Fatal(err)
	}
	help := func(dir, program, flag string) bool {
		out, err := exec.Command(filepath.Join(dir, program), "--help").CombinedOutput()
		if err != nil {
			t.Errorf("%s --help: %v: %s", program, err, out)
		}
		return regexp.MustCompile(`(?m)^\s*--` + flag + `\b`).Match(out)
	}
	lab := shared.Get(t)
	for program, flag := range map[string]string{"etcd": "unsafe-no-fsync", "kube-apiserver": "insecure-port"} {
		if is, want := help(filepath.Join(lab.Dir(), "bin"), program, flag), help(assets, program, flag); is != want {
			t.Errorf("%s has --%s: the sandbox says %t, the program %t", program, flag, is, want)
		}
	}
}
