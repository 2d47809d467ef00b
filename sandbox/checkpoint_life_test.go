package sandbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

// after does something a moment after it is called.
func after(moment time.Duration, do func()) (wait func()) {
	done := make(chan struct{})
	time.AfterFunc(moment, func() { defer close(done); do() })
	return func() { <-done }
}

// TestCancelledRestore cuts restores off at moments spread over a whole one: each time the sandbox becomes usable again by
// itself, in one of the two states, and at last the checkpoint is restored all the same.
func TestCancelledRestore(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	lab := start(t, sandbox.Options{})
	c := clientset(t, lab)
	then := createMap(t, c, "then", "then")
	point := checkpoint(t, lab, "task")
	for i := range 8 {
		moment := time.Duration(i*i) * 25 * time.Millisecond
		setMap(t, c, "then", "now")
		ctx, cancel := context.WithTimeout(t.Context(), moment)
		err := lab.Checkpoints().Restore(ctx, point)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled after %v: %v", moment, err)
		}
		usable(t, lab, c, "a restore")
		was, err := c.CoreV1().ConfigMaps("default").Get(t.Context(), "then", metav1.GetOptions{})
		if err != nil || was.UID != then.UID || was.Data["value"] != "then" && was.Data["value"] != "now" {
			t.Errorf("cancelled after %v: there is %v (%v)", moment, was, err)
		}
	}
	restore(t, lab, point)
	if err := asThen(t.Context(), c, then); err != nil {
		t.Error(err)
	}
	onlyOf(t, lab, "task")
}

// TestStopDuringRestore stops sandboxes at moments spread over a restore. What they hold is one of the two states.
func TestStopDuringRestore(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	const name = "stopped"
	t.Cleanup(func() { _ = sandbox.Remove(stateDir, name) })
	for i := range 5 {
		lab := start(t, sandbox.Options{Name: name, Nodes: 1, Fresh: true})
		c := clientset(t, lab)
		createMap(t, c, "then", "")
		point := checkpoint(t, lab, "task")
		moment := time.Duration(i) * 300 * time.Millisecond
		stopped := after(moment, func() {
			if err := lab.Stop(); err != nil {
				t.Error(err)
			}
		})
		err := lab.Checkpoints().Restore(t.Context(), point)
		stopped()
		t.Logf("stopped after %v: %v", moment, err)
		if left := programs(lab.Dir()); len(left) > 0 {
			t.Errorf("stopped after %v: processes %v are left", moment, left)
		}
		if err := lab.Checkpoints().Restore(t.Context(), point); err == nil {
			t.Error("a sandbox that is stopped can be restored")
		}
		if _, err := lab.Checkpoints().Save(t.Context(), "task"); err == nil {
			t.Error("there is a checkpoint of a sandbox that is stopped")
		}
		again := start(t, sandbox.Options{Name: name})
		if _, err := clientset(t, again).CoreV1().ConfigMaps("default").Get(t.Context(), "then", metav1.GetOptions{}); err != nil {
			t.Errorf("stopped after %v: %v", moment, err)
		}
		if err := again.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRestoreDuringRestarts restores while programs are killed, before, after and at the same time.
func TestRestoreDuringRestarts(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	lab := start(t, sandbox.Options{Nodes: 1})
	c := clientset(t, lab)
	then := createMap(t, c, "then", "")
	point := checkpoint(t, lab, "task")
	for i, moments := range [][]time.Duration{{0}, {-1}, {50 * time.Millisecond, 400 * time.Millisecond}} {
		var kills sync.WaitGroup
		for _, program := range append(sandbox.Programs(), "node-1") {
			kills.Go(func() {
				for _, moment := range moments {
					after(max(moment, 0), func() {
						if err := errors.Join(lab.Kill(program)); err != nil {
							t.Error(err)
						}
					})()
				}
			})
		}
		if moments[0] < 0 { // they are being started again
			kills.Wait()
		}
		restore(t, lab, point)
		kills.Wait()
		usable(t, lab, c, "everything")
		if err := asThen(t.Context(), c, then); err != nil {
			t.Errorf("round %d: %v", i, err)
		}
	}
}

// undoes is a lab that makes a checkpoint and restores it, again and again, until it is killed. Its sandbox always has the
// ConfigMap then.
func undoes(ctx context.Context) int {
	nodes := 0
	_, _ = fmt.Sscan(os.Getenv("TEST_NODES"), &nodes)
	lab, err := sandbox.Start(ctx, sandbox.Options{Name: os.Getenv("TEST_NAME"), Nodes: nodes})
	if err != nil {
		return say(err.Error(), 1)
	}
	defer func() { _ = lab.Stop() }()
	client, err := kubernetes.NewForConfig(lab.Config())
	if err != nil {
		return say(err.Error(), 1)
	}
	maps := client.CoreV1().ConfigMaps("default")
	_, _ = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "then"}}, metav1.CreateOptions{})
	for ctx.Err() == nil {
		if _, err := maps.Get(ctx, "then", metav1.GetOptions{}); err != nil {
			return say(err.Error(), 1)
		}
		fmt.Fprintln(os.Stdout, "saves")
		point, err := lab.Checkpoints().Save(ctx, "task")
		if err != nil {
			return say(err.Error(), 1)
		}
		fmt.Fprintln(os.Stdout, "restores")
		if err := lab.Checkpoints().Restore(ctx, point); err != nil {
			return say(err.Error(), 1)
		}
	}
	return 0
}

// TestKilledUndo kills a lab with SIGKILL while it makes a checkpoint or restores it: nothing is left alive, not even what
// stood still, and the next start has all that is in both states. OPERATOR_LAB_CHAOS sets the number of rounds.
func TestKilledUndo(t *testing.T) {
	t.Parallel()
	sandboxtest.Long(t)
	rounds := 6
	if s := os.Getenv("OPERATOR_LAB_CHAOS"); s != "" {
		if _, err := fmt.Sscan(s, &rounds); err != nil {
			t.Fatal(err)
		}
	}
	const name = "undoes"
	t.Cleanup(func() { _ = sandbox.Remove(stateDir, name) })
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(stateDir, "sandboxes", name)
	for round := range rounds {
		word, delay := "saves", time.Duration(random.IntN(40))*time.Millisecond
		if round%2 == 1 {
			word, delay = "restores", time.Duration(random.IntN(1200))*time.Millisecond
		}
		killUndo(t, name, word, delay)
		sandboxtest.Eventually(t, fmt.Sprintf("round %d: killed %v after it %s: no process", round, delay, word), func(context.Context) error {
			if left := programs(dir); len(left) > 0 {
				return fmt.Errorf("processes %v are left", left)
			}
			return nil
		})
		lab := start(t, sandbox.Options{Name: name})
		if _, err := clientset(t, lab).CoreV1().ConfigMaps("default").Get(t.Context(), "then", metav1.GetOptions{}); err != nil {
			t.Errorf("round %d: killed %v after it %s: %v", round, delay, word, err)
		}
		for _, left := range []string{"checkpoints", "restoring", "restored", "undone"} {
			if _, err := os.Stat(filepath.Join(dir, left)); err == nil {
				t.Errorf("round %d: %s is left", round, left)
			}
		}
		if err := lab.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// killUndo starts a lab that undoes, and kills it a while after it says what it does.
func killUndo(t *testing.T, name, word string, delay time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asProgram+"=undoes", "TEST_NAME="+name, "TEST_NODES=1", "OPERATOR_LAB_STATE_DIR="+stateDir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = append(said, lines.Text())
		if lines.Text() == word {
			after(delay, func() { _ = cmd.Process.Kill() })()
			_ = cmd.Wait()
			return
		}
	}
	_ = cmd.Wait()
	t.Fatalf("it does not come so far: %s", strings.Join(said, "; "))
}
