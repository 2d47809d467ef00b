package guard_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// roleVariable selects what the test binary does instead of running the tests: "guard" guards a program that ignores
// signals, in the directory that it is started in; "parent" starts itself as a "child" by a link.
const roleVariable = "OPERATOR_LAB_GUARD_TEST_ROLE"

// stubborn writes the pids of processes that ignore signals: itself, a child, one with its own session, and a child of
// that.
const stubborn = `trap '' HUP INT TERM QUIT
forever='trap "" HUP INT TERM QUIT; while :; do sleep 1; done'
sh -c "$forever" & echo $! >child
if command -v setsid >/dev/null; then
	setsid sh -c 'sh -c "$1" & echo $! >grandchild; echo $$ >session; eval "$1"' x "$forever" >/dev/null 2>&1 &
	while [ ! -s session ]; do sleep 0.01; done
fi
echo $$ >self
eval "$forever"`

func TestMain(m *testing.M) {
	roles := map[string]func() error{"guard": guardStubborn, "parent": parent, "child": child}
	role, ok := roles[os.Getenv(roleVariable)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := role(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// guardStubborn starts a program and waits until it is killed.
func guardStubborn() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	g := guard.New(guard.Options{
		Mark: "OPERATOR_LAB_GUARD_TEST",
		Temp: func() (string, error) { return filepath.Join(dir, "temp"), os.Mkdir(filepath.Join(dir, "temp"), 0o700) },
	})
	if _, err := g.Start(script(dir)); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin) // forever
	return err
}

func script(dir string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", stubborn)
	cmd.Dir = dir
	return cmd
}

// pids waits until the program is running, and returns its processes.
func pids(t *testing.T, dir string) (out []int) {
	t.Helper()
	eventually(t, "the program", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "self"))
		return err == nil && strings.HasSuffix(string(text), "\n")
	})
	for _, name := range []string{"self", "child", "session", "grandchild"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if runtime.GOOS != "linux" && (name == "session" || name == "grandchild") {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // the guard does not find it there
			}
			continue
		}
		pid, wrong := strconv.Atoi(strings.TrimSpace(string(text)))
		if errors.Join(err, wrong) != nil {
			t.Fatal(name, err, wrong)
		}
		out = append(out, pid)
	}
	return out
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ") // a zombie
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not after 20 s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("the end of process %d of %v", pid, pids), func() bool { return !alive(pid) })
	}
}

func TestNothingOutlivesUsHoweverWeEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), roleVariable+"=guard")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	all := pids(t, dir)
	for _, pid := range all {
		if !alive(pid) {
			t.Errorf("process %d of %v is not there", pid, all)
		}
	}
	if err := cmd.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	_ = cmd.Wait()
	gone(t, all)
	eventually(t, "the end of our directory", func() bool {
		_, err := os.Stat(filepath.Join(dir, "temp"))
		return errors.Is(err, os.ErrNotExist)
	})
}

func TestKillingAGroupKillsAllThatItHasStarted(t *testing.T) {
	t.Parallel()
	g := guard.New(guard.Options{Mark: "OPERATOR_LAB_GUARD_TEST"})
	t.Cleanup(g.Close)
	dirs := []string{t.TempDir(), t.TempDir()}
	var groups []*guard.Group
	var all [][]int
	for _, dir := range dirs {
		cmd := script(dir)
		group, err := g.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = cmd.Wait() }()
		groups, all = append(groups, group), append(all, pids(t, dir))
	}
	groups[0].Signal(syscall.SIGTERM) // ignored
	if !groups[0].Alive() {
		t.Error("it is not alive")
	}
	groups[0].End(20 * time.Second)
	for _, pid := range all[0] {
		if alive(pid) {
			t.Errorf("process %d of %v is alive", pid, all[0])
		}
	}
	if groups[0].Alive() {
		t.Error("what was killed is alive")
	}
	for _, pid := range all[1] {
		if !alive(pid) {
			t.Errorf("process %d of another group was killed too", pid)
		}
	}
	g.Close()
	gone(t, all[1])
	if _, err := g.Start(exec.Command("true")); !errors.Is(err, guard.ErrClosed) {
		t.Errorf("a guard that is closed starts: %v", err)
	}
	g.Close() // once more
}

func TestWithoutAMarkASessionStays(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid")
	}
	g := guard.New(guard.Options{})
	t.Cleanup(g.Close)
	cmd := exec.Command("sh", "-c", "setsid sleep 3600 >/dev/null 2>&1 & echo $!; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	group, err := g.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	eventually(t, "the session", func() bool {
		id, err := getsid(pid)
		return err == nil && id == pid
	})
	group.Kill()
	_ = cmd.Wait()
	g.Close()
	if !alive(pid) {
		t.Error("it is gone")
	}
}

// getsid returns the session of a process, which is also its process group if it created the session.
func getsid(pid int) (int, error) { return syscall.Getpgid(pid) }

func TestManyStartAtOnce(t *testing.T) {
	t.Parallel()
	g := guard.New(guard.Options{Mark: "OPERATOR_LAB_GUARD_TEST"})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				cmd := exec.Command("sleep", "3600")
				group, err := g.Start(cmd)
				if errors.Is(err, guard.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				all.Go(func() { _ = cmd.Wait() }) // it ends with the guard
				_ = group.Alive()
				group.Signal(syscall.SIGCONT)
			}
		})
	}
	g0, err := g.Start(exec.Command("true"))
	if err != nil || g0.ID() == 0 {
		t.Error(err)
	}
	g.Close()
	all.Wait()
}

func TestAProgramThatIsNone(t *testing.T) {
	t.Parallel()
	g := guard.New(guard.Options{})
	g.Close() // before any start
	g = guard.New(guard.Options{})
	defer g.Close()
	if _, err := g.Start(exec.Command("/no/such/program")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it starts: %v", err)
	}
}
