package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// childVariable names the folder of the tests that this program runs instead of its own.
const childVariable = "OPERATOR_LAB_RUNNER_TEST_CHILD"

// child runs the tests of a folder, without a cluster.
func child(folder string) int {
	all, err := format.Discover(format.Discovery{Paths: []string{folder}})
	if err == nil {
		_, err = runner.Run(context.Background(), runner.Options{Tests: all}) //nolint:forbidigo // this is a main function
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func TestScriptsEndWithUsHoweverWeEnd(t *testing.T) {
	t.Parallel()
	dir := folder(t, "chainsaw-test.yaml", test("endless", `
timeouts: {exec: 1h}
steps:
- try:
  - script: {content: "sleep 3600 >/dev/null 2>&1 & echo $! >left"}
  - script:
      content: |
        trap '' HUP INT TERM
        (trap '' HUP INT TERM; while :; do sleep 1; done) &
        echo $! >child
        echo $$ >shell
        while :; do sleep 1; done
`))
	temp := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+dir, "TMPDIR="+temp)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, "the script", func(context.Context) error {
		text, err := os.ReadFile(filepath.Join(dir, "shell"))
		if err == nil && !strings.HasSuffix(string(text), "\n") {
			err = errors.New("it has not begun")
		}
		return err
	})
	if err := cmd.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, pid := range []string{"left", "shell", "child"} {
		ended(t, filepath.Join(dir, pid))
	}
	sandboxtest.Eventually(t, "the end of our files", func(context.Context) error {
		left, err := os.ReadDir(temp)
		if len(left) > 0 {
			err = fmt.Errorf("%s is left", left[0].Name())
		}
		return err
	})
}

// skipping records what a sink knows of a test when it begins.
type skipping struct {
	recorder
}

func (s *skipping) BeginTest(x *report.Test) { s.note("test %s %v", x.Name, x.Skipped) }

func TestATestThatIsSkippedIsSoFromTheBeginning(t *testing.T) {
	t.Parallel()
	sink := &skipping{}
	dir := folder(t, "chainsaw-test.yaml", test("a", "skip: true\nsteps: [{try: [{sleep: {duration: 1ms}}]}]"))
	run(t, runner.Options{Configuration: quick(), Tests: discover(t, dir), Sink: sink})
	if diff := cmp.Diff([]string{"run of 1", "test a true", "end test a", "end run"}, sink.lines); diff != "" {
		t.Error(diff)
	}
}

// queue lets tests begin one after the other.
type queue struct {
	hooks
	turn    chan struct{}
	waiting chan struct{}
}

func (q *queue) Begin(ctx context.Context, t *format.Test, _ *report.Test) error {
	select {
	case q.turn <- struct{}{}:
		q.note("turn")
		return nil
	default:
	}
	q.waiting <- struct{}{}
	select {
	case q.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if ctx.Err() != nil {
		<-q.turn
		return ctx.Err()
	}
	q.note("turn")
	return nil
}

func (q *queue) Cleaned(context.Context, *format.Test, *report.Test, bool) []report.Finding {
	<-q.turn
	return nil
}

func TestATestThatWaitsForTheLabHasNotBegun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		failFast bool
		script   string
		want     report.Counts
		begun    int
	}{
		{"and begins later", false, "false", report.Counts{Failed: 3}, 3},
		{"and is skipped when another fails", true, "false", report.Counts{Failed: 1, Skipped: 2}, 1},
		{"and passes", true, "true", report.Counts{Passed: 3}, 3},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var files []string
			for i := range 3 {
				files = append(files, fmt.Sprintf("t%d/chainsaw-test.yaml", i), test("a", `
steps: [{try: [{script: {content: "while [ ! -e `+dir+`/go ]; do sleep 0.05; done; `+c.script+`"}}]}]
`))
			}
			both := &queue{turn: make(chan struct{}, 1), waiting: make(chan struct{})}
			o := runner.Options{
				Configuration: quick(), Tests: discover(t, folder(t, files...)), Sink: both, Hooks: both,
			}
			o.Configuration.Spec.Execution.FailFast = c.failFast
			go func() {
				<-both.waiting
				<-both.waiting
				_ = os.WriteFile(filepath.Join(dir, "go"), nil, 0o600)
			}()
			r := run(t, o)
			if diff := cmp.Diff(c.want, r.Counts()); diff != "" {
				t.Error(diff)
			}
			turns, begun := 0, 0
			for _, line := range both.lines {
				switch line {
				case "turn":
					turns++
				case "step @setup":
					begun++
				}
				if begun > turns {
					t.Fatalf("a test begins before its turn:\n%s", strings.Join(both.lines, "\n"))
				}
			}
			if begun != c.begun {
				t.Errorf("%d have begun, want %d", begun, c.begun)
			}
		})
	}
}

func TestATestThatFailedBeforeTheInterruptHasFailed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	all := discover(t, folder(t, "chainsaw-test.yaml", test("a", `
timeouts: {exec: 1h}
steps:
- try: [{script: {content: "false"}}]
  catch: [{script: {content: "touch `+dir+`/begun; sleep 3600"}}]
`)))
	go func() {
		defer cancel()
		sandboxtest.Eventually(t, "the script", func(context.Context) error {
			_, err := os.Stat(filepath.Join(dir, "begun"))
			return err
		})
	}()
	r, err := runner.Run(ctx, runner.Options{Configuration: quick(), Tests: all})
	if !errors.Is(err, context.Canceled) || r.Tests[0].Status() != report.Failed || strings.Count(told(r.Tests[0]), "FAILED") != 1 {
		t.Errorf("%v\n%s", err, told(r.Tests[0]))
	}
}
