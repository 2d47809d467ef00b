package lessons_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox"
)

// shortLessons are those that a short run goes through: one of each operator.
var shortLessons = []string{"run-zundoko", "drift-who-wins", "first-etcd-cluster"}

// TestVerifyAll goes through all bundled lessons on live clusters, or in a short run through some: every check fails before
// its solution and passes after it, every wrong turn gives its message, every undo brings back the start.
func TestVerifyAll(t *testing.T) {
	binary, err := sandbox.FindBinary()
	if err != nil {
		t.Skipf("%v; 'make test' builds it", err)
	}
	var out, said bytes.Buffer
	chosen := []string{"--all"}
	if testing.Short() {
		chosen = shortLessons
	}
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"lesson", "verify", "--parallel", "3", "--output", "json"}, chosen...)...)
	cmd.Stdout, cmd.Stderr = &out, &said
	failed := cmd.Run() // which lessons is in its output
	var all []struct {
		Lesson                           string
		Tasks, Checks, WrongTurns, Undos int
		Seconds                          float64
		Problems                         []string
	}
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		t.Fatalf("%v: %s", failed, said.String())
	}
	tasks, checks, wrong, undos := 0, 0, 0, 0
	for _, l := range all {
		tasks, checks, wrong, undos = tasks+l.Tasks, checks+l.Checks, wrong+l.WrongTurns, undos+l.Undos
		t.Run(l.Lesson, func(t *testing.T) {
			if len(l.Problems) > 0 {
				t.Error(strings.Join(l.Problems, "\n"))
			}
			if l.Tasks == 0 || l.Checks == 0 || l.WrongTurns == 0 || l.Undos == 0 {
				t.Errorf("%+v: something was never shown", l)
			}
			t.Logf("%d tasks, %d checks, %d wrong turns, %d undos, %.0f s", l.Tasks, l.Checks, l.WrongTurns, l.Undos, l.Seconds)
		})
	}
	t.Logf("%d lessons, %d tasks: %d checks failed before the solution and passed after it, %d wrong turns gave their message, %d undos brought back the start",
		len(all), tasks, checks, wrong, undos)
	if failed != nil && !t.Failed() {
		t.Errorf("%v: %s", failed, said.String())
	}
}
