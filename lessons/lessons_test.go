package lessons_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/lessons"
	"github.com/operator-lab/operator-lab/lessons/markdown"
	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
)

// shortLessons are those that a short run goes through.
var shortLessons = []string{"run-zundoko"}

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
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"lesson", "verify", "--parallel", flag.Lookup("test.parallel").Value.String(), "--output", "json"}, chosen...)...)
	cmd.Stdout, cmd.Stderr = &out, &said
	failed := cmd.Run() // which lessons is in its output
	var all []struct {
		Lesson                           string
		Tasks, Checks, WrongTurns, Undos int
		Seconds                          float64
		Problems                         []string
		Missing                          string
	}
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		t.Fatalf("%v: %s", failed, said.String())
	}
	tasks, checks, wrong, undos := 0, 0, 0, 0
	for _, l := range all {
		tasks, checks, wrong, undos = tasks+l.Tasks, checks+l.Checks, wrong+l.WrongTurns, undos+l.Undos
		t.Run(l.Lesson, func(t *testing.T) {
			if l.Missing != "" {
				t.Skipf("it needs %s", l.Missing)
			}
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

// TestSourceIsAtHand checks that the screen can open the source that the texts point at.
func TestSourceIsAtHand(t *testing.T) {
	opened := 0
	err := fs.WalkDir(lessons.Bundled(), ".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(file) != ".md" {
			return err
		}
		text, err := fs.ReadFile(lessons.Bundled(), file)
		for _, link := range markdown.Links(string(text)) {
			at := path.Join("lessons", path.Dir(file), link)
			if !strings.HasPrefix(at, "operators/") || path.Ext(at) == "" {
				continue
			}
			if source, err := operators.Source(at); err != nil || source == "" {
				t.Errorf("%s: %v", file, err)
			}
			opened++
		}
		return err
	})
	if err != nil || opened < 50 {
		t.Errorf("%d files were opened: %v", opened, err)
	}
}
