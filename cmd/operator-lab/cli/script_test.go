package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
)

var update = flag.Bool("update", false, "write what commands print into the scripts")

// TestScript runs the command lines in testdata/script in this process. What needs a sandbox or a program of Kubernetes is
// tested with the binary, in ../testdata/script.
func TestScript(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join("testdata", "script")) // absolute: commands change the working directory
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			state, home := filepath.Join(e.WorkDir, "state"), filepath.Join(e.WorkDir, "home")
			e.Setenv("OPERATOR_LAB_STATE_DIR", state)
			e.Setenv("HOME", home)
			return errors.Join(sandboxtest.MakeHome(home), os.Mkdir(state, 0o700))
		},
		Condition: func(name string) (bool, error) {
			if name == "root" {
				return os.Getuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"operator-lab": func(ts *testscript.TestScript, neg bool, args []string) {
				if got := runHere(ts, args); (got.code == exitOK) == neg {
					ts.Fatalf("it ended with exit code %d", got.code)
				}
			},
			"exits":   exits,
			"refused": refused,
		},
	})
}

// scripted is held while a command line of a script has the environment and the working directory of this process.
var scripted sync.Mutex

// variables are those that the lab reads. What a script does not set is not set.
var variables = []string{
	"HOME", "OPERATOR_LAB_STATE_DIR", "XDG_STATE_HOME", "KUBECONFIG", "ETCDCTL_ENDPOINTS", "WATCH_NAMESPACE", "http_proxy", "HTTP_PROXY",
	"LC_ALL", "LC_MESSAGES", "LANG", "TERM", "NO_COLOR", "GITHUB_ACTIONS", "GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY",
}

// runHere runs a command line in this process, with the environment and the working directory of a script.
func runHere(ts *testscript.TestScript, args []string) result {
	scripted.Lock()
	defer scripted.Unlock()
	dir, err := os.Getwd()
	ts.Check(err)
	defer func() { ts.Check(os.Chdir(dir)) }()
	ts.Check(os.Chdir(ts.MkAbs(".")))
	for _, name := range variables {
		value, set := os.LookupEnv(name)
		defer func() { ts.Check(setVariable(name, value, set)) }()
		wanted := ts.Getenv(name)
		ts.Check(setVariable(name, wanted, wanted != ""))
	}
	got := runLine(args, Programs{})
	fmt.Fprint(ts.Stdout(), got.stdout)
	fmt.Fprint(ts.Stderr(), got.stderr)
	return got
}

// setVariable sets or unsets a variable of this process.
func setVariable(name, value string, set bool) error {
	if set {
		return os.Setenv(name, value)
	}
	return os.Unsetenv(name)
}

// result of a command line.
type result struct {
	code           int
	stdout, stderr string
}

// runLine runs a command line with nothing on standard input.
func runLine(args []string, programs Programs) result {
	var stdout, stderr bytes.Buffer
	code := run(args, streams{&bytes.Buffer{}, &stdout, &stderr}, programs)
	return result{code, stdout.String(), stderr.String()}
}

// exits code operator-lab args... runs a command line, which has to end with that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "operator-lab" {
		ts.Fatalf("usage: exits code operator-lab args...")
	}
	mustExit(ts, args)
}

// refused code operator-lab args... is exits for an error that a person made; see [result.refusal].
func refused(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "operator-lab" {
		ts.Fatalf("usage: refused code operator-lab args...")
	}
	ts.Check(mustExit(ts, args).refusal())
}

func mustExit(ts *testscript.TestScript, args []string) result {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := runHere(ts, args[2:])
	if got.code != want {
		ts.Fatalf("%s ended with exit code %d, want %d", strings.Join(args[1:], " "), got.code, want)
	}
	return got
}

var refusal = regexp.MustCompile(`\A(error: [^\n]+\n)(hint: [^\n]+\n)+\z`)

// refusal reports output that is not that of a mistake on the command line: one line that begins with "error:", at least
// one that begins with "hint:", and nothing on standard output.
func (r result) refusal() error {
	if r.stdout != "" {
		return fmt.Errorf("standard output is not empty: %s", r.stdout)
	}
	if !refusal.MatchString(r.stderr) {
		return fmt.Errorf("want an error: line and a hint: line, got:\n%s", r.stderr)
	}
	return nil
}
