// Package script_test drives the real binary through the scripts in ../testdata/script, as a person would at a shell.
//
// It is a package of its own so that testing does not link Kubernetes once more: the binary is the one that
// $OPERATOR_LAB_BINARY names, which 'make test' builds. 'make golden' writes what commands print now into the scripts.
// What needs neither a sandbox nor a program of Kubernetes is tested by the package cli, without the binary.
package script_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

var update = flag.Bool("update", false, "write what commands print into the scripts")

// patience is how long something may take to come true. It only matters in tests that fail.
const patience = 3 * time.Minute

func TestScript(t *testing.T) {
	binary := os.Getenv("OPERATOR_LAB_BINARY")
	if binary == "" {
		t.Skip("OPERATOR_LAB_BINARY is not set: it names the binary these tests drive; 'make test' builds it and sets it")
	}
	// The data a control plane first starts with is made once for all scripts: it takes seconds.
	prepared := filepath.Join(t.TempDir(), "prepared")
	if err := os.Mkdir(prepared, 0o700); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(bin, "operator-lab")); err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	goSettings := sandboxtest.GoSettings(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			state, home := filepath.Join(e.WorkDir, "state"), filepath.Join(e.WorkDir, "home")
			e.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("OPERATOR_LAB_STATE_DIR", state)
			e.Setenv("HOME", home)
			e.Setenv("BINARY", binary)
			e.Setenv("REPO", repository)
			e.Setenv("PREPARED", prepared)
			e.Vars = append(e.Vars, goSettings...)
			e.Defer(func() { clearUp(t, filepath.Join(bin, "operator-lab"), e.WorkDir, e.Vars) })
			return errors.Join(
				sandboxtest.MakeHome(home), os.Mkdir(state, 0o700), os.Symlink(prepared, filepath.Join(state, "prepared")),
			)
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "root":
				return os.Getuid() == 0, nil
			case "mountns":
				return exec.Command("unshare", "--mount", "true").Run() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      exits,
			"interrupt":  interrupt,
			"eventually": eventually,
			"same":       same,
			"prefix":     prefix,
			"count":      count,
			"setenv":     setenv,
			"refused":    refused,
		},
	})
}

// clearUp stops what a script left running, and reports processes that no command can reach any more.
func clearUp(t *testing.T, binary, work string, env []string) {
	if _, err := os.Stat(filepath.Join(work, "state", "sandboxes")); err == nil {
		down := exec.Command(binary, "down", "--all", "--delete")
		down.Env = env
		if out, err := down.CombinedOutput(); err != nil {
			t.Errorf("operator-lab down --all --delete: %v\n%s", err, out)
		}
	}
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left := processesOf(work)
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
			return
		}
	}
}

// processesOf are the processes that were started with a path below dir in their environment. Only Linux tells.
func processesOf(dir string) []string {
	below := []byte(dir + "/") // the directories of other scripts begin alike
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var found []string
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(env, below) {
			continue
		}
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		found = append(found, filepath.Base(filepath.Dir(file))+" "+string(bytes.ReplaceAll(args, []byte{0}, []byte{' '})))
	}
	return found
}

// exits code program args... runs a program, which has to end with that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code program args...")
	}
	want := number(ts, args[0])
	err := ts.Exec(args[1], args[2:]...)
	if got := exitCode(ts, err); got != want {
		ts.Fatalf("%s ended with exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// refused code program args... is exits for an error that a person made: one line that begins with "error:", at least
// one that begins with "hint:", nothing else, and nothing on standard output.
func refused(ts *testscript.TestScript, neg bool, args []string) {
	exits(ts, neg, args)
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("standard output is not empty: %s", out)
	}
	if said := ts.ReadFile("stderr"); !regexp.MustCompile(`\A(error: [^\n]+\n)(hint: [^\n]+\n)+\z`).MatchString(said) {
		ts.Fatalf("want an error: line and a hint: line, got:\n%s", said)
	}
}

// interrupt pattern code program args... runs a program, sends SIGINT once what it printed matches the pattern, and
// waits for its end.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt pattern code program args...")
	}
	pattern, want := regexp.MustCompile(args[0]), number(ts, args[1])
	path, err := exec.LookPath(filepath.Join(strings.Split(ts.Getenv("PATH"), string(os.PathListSeparator))[0], args[2]))
	ts.Check(err)
	seen := &watched{pattern: pattern, matched: make(chan struct{})}
	cmd := exec.Command(path, args[3:]...)
	cmd.Dir, cmd.Env = ts.Getenv("WORK"), environment(ts)
	cmd.Stdout, cmd.Stderr = seen, seen
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	deadline := time.After(patience)
	select {
	case <-seen.matched:
		ts.Check(cmd.Process.Signal(syscall.SIGINT))
	case err := <-ended:
		ts.Fatalf("it ended (%v) before it printed %q:\n%s", err, args[0], seen)
	case <-deadline:
		_ = cmd.Process.Kill()
		ts.Fatalf("it did not print %q:\n%s", args[0], seen)
	}
	select {
	case err := <-ended:
		ts.Logf("%s", seen)
		if got := exitCode(ts, err); got != want {
			ts.Fatalf("it ended with exit code %d, want %d", got, want)
		}
	case <-deadline:
		_ = cmd.Process.Kill()
		ts.Fatalf("it did not end after SIGINT:\n%s", seen)
	}
}

// eventually pattern program args... runs a program again and again until its standard output matches the pattern.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually pattern program args...")
	}
	pattern := regexp.MustCompile("(?m)" + args[0])
	pause := 50 * time.Millisecond // and then longer: each run of the binary costs as much
	for deadline := time.Now().Add(patience); ; pause = min(2*pause, 400*time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		if err == nil && pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("standard output never matched %q", args[0])
		}
		<-time.After(pause)
	}
}

// same pattern file... requires that the pattern finds the same text in all files.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: same pattern file file...")
	}
	first := find(ts, args[0], args[1])
	for _, file := range args[2:] {
		if got := find(ts, args[0], file); got != first {
			ts.Fatalf("%s: %q\n%s: %q", args[1], first, file, got)
		}
	}
}

// prefix pattern file... requires that the first group of the pattern finds, in each two files, texts of which one is
// the beginning of the other.
func prefix(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: prefix pattern file file...")
	}
	for i, a := range args[1:] {
		for _, b := range args[i+2:] {
			x, y := find(ts, args[0], a), find(ts, args[0], b)
			if !strings.HasPrefix(x, y) && !strings.HasPrefix(y, x) {
				ts.Fatalf("%s: %q\n%s: %q", a, x, b, y)
			}
		}
	}
}

// count file pattern factor summand other-pattern requires that the number the last pattern finds is the number the
// first one finds, times the factor, plus the summand.
func count(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 5 {
		ts.Fatalf("usage: count file pattern factor summand other-pattern")
	}
	n := number(ts, find(ts, args[1], args[0]))
	want := n*number(ts, args[2]) + number(ts, args[3])
	if got := number(ts, find(ts, args[4], args[0])); got != want {
		ts.Fatalf("%s: %q finds %d and %q finds %d, want %d", args[0], args[1], n, args[4], got, want)
	}
}

// setenv name sets a variable to what the last command printed.
func setenv(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: setenv name")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// find is what the pattern's first group finds in a file, or all of the pattern when it has none.
func find(ts *testscript.TestScript, pattern, file string) string {
	found := regexp.MustCompile("(?m)" + pattern).FindStringSubmatch(ts.ReadFile(file))
	if found == nil {
		ts.Fatalf("%q finds nothing in %s:\n%s", pattern, file, ts.ReadFile(file))
	}
	return found[len(found)-1]
}

func number(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

func exitCode(ts *testscript.TestScript, err error) int {
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		ts.Fatalf("it could not be run: %v", err)
	}
	return exit.ExitCode()
}

// environment is the script's; testscript has no way to ask for all of it.
func environment(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "WORK", "OPERATOR_LAB_STATE_DIR", "KUBECONFIG"} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// watched is a program's output, which says when it matches.
type watched struct {
	pattern *regexp.Regexp
	matched chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
}

var _ io.Writer = (*watched)(nil)

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(b)
	if w.pattern.Match(w.text.Bytes()) {
		w.once.Do(func() { close(w.matched) })
	}
	return len(b), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// TestProcessesAreFound checks the check: a search that finds nothing would always be content.
func TestProcessesAreFound(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what processes are left")
	}
	if len(processesOf("PATH=")) == 0 {
		t.Error("processesOf finds not even this process")
	}
}
