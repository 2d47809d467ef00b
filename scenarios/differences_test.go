package scenarios_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestDifferencesAreFound checks that each wrong number, sentence and fact is found wherever it is told, and that there is
// none in the journal of the tour.
func TestDifferencesAreFound(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "cmd", "operator-lab", "tui", "testdata", "tour.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	journal := journalOf(t, text)
	var tour compared
	if tour.journal(journal, stateOf(journal), recountOf(journal.Since(0))); len(tour.wrong) > 0 {
		t.Errorf("the tour: %s", strings.Join(tour.wrong, "\n"))
	}
	if tour.numbers == 0 || tour.sentences == 0 || tour.facts == 0 {
		t.Errorf("of the tour: %s", &tour)
	}
	// found checks where differences are found.
	found := func(name string, state *trace.State, want recount, places ...string) {
		t.Helper()
		var all compared
		all.journal(journal, state, want)
		wrong := strings.Join(all.wrong, "\n")
		for _, where := range places {
			if !strings.Contains(wrong, where) {
				t.Errorf("%s: what is wrong is not found where it says %q:\n%s", name, where, wrong)
			}
		}
	}
	for name, plant := range map[string]struct {
		wrong func(n *tally)
		where []string
	}{
		"writes":      {func(n *tally) { n.writes++ }, []string{"wrote of", "summary, en", "summary, ja", "writes by verb", "totals of", "numbers of loop", "of the strip"}},
		"reconciles":  {func(n *tally) { n.reconciles++ }, []string{"reconciles of", "totals of", "numbers of loop"}},
		"reads":       {func(n *tally) { n.cache++ }, []string{"read of", "totals of", "numbers of loop", "of the strip"}},
		"events":      {func(n *tally) { n.watched++ }, []string{"watch events of", "totals of", "on the screen"}},
		"merged":      {func(n *tally) { n.merged++ }, []string{"totals of", "numbers of loop"}},
		"made no key": {func(n *tally) { n.dropped++ }, []string{"totals of", "of the strip"}},
	} {
		want := recountOf(journal.Since(0))
		for _, n := range want.byOperator {
			plant.wrong(n)
		}
		for _, n := range want.byController {
			plant.wrong(n)
		}
		for _, n := range want.byKey {
			plant.wrong(n)
		}
		for _, n := range want.byReconcile {
			plant.wrong(n)
		}
		found(name, stateOf(journal), want, plant.where...)
	}
	want := recountOf(journal.Since(0))
	for _, versions := range want.stored {
		for version := range versions {
			versions[version] = "nobody known"
		}
	}
	for ref, e := range want.newest {
		gone := *e
		gone.Verb = trace.Deleted
		want.newest[ref] = &gone
	}
	found("authors and objects", stateOf(journal), want, "author of", "is gone")
	// With another author and another kind of object in what is known, the sentences differ.
	other := journalOf(t, bytes.ReplaceAll(bytes.ReplaceAll(text, []byte(`"you"`), []byte(`"sim"`)), []byte(`"ConfigMap"`), []byte(`"Lamp"`)))
	found("sentences", stateOf(other), recountOf(journal.Since(0)),
		"in plain text, en", "in plain text, ja", "on the page, en", "on the page, ja", "sentence of loop", "sentence on the screen at 80x24, ja")
}

// journalOf returns the journal in a text.
func journalOf(t *testing.T, text []byte) *trace.Journal {
	t.Helper()
	journal, report, err := trace.Load(bytes.NewReader(text), trace.Options{})
	if err != nil || !report.Complete() {
		t.Fatal(report, err)
	}
	return journal
}

// TestHooksAreConsistent checks the journal of a song that a hook has sung, with the calls of the hook in it.
func TestHooksAreConsistent(t *testing.T) {
	sandboxtest.Long(t)
	t.Parallel()
	binary, err := filepath.Abs(needsBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "song.jsonl")
	cmd := exec.CommandContext(t.Context(), binary, "run", "--hook", "zundoko/sync.py", "--composite", "zundoko/controller.yaml", "--env", "SEED=8",
		"--manifests", "../../zundoko/config/crds/hardened", "--apply=../../zundoko/config/samples/hikawa.yaml",
		"--nodes", "0", "--plain", "--quiet", "--for", "5m", "--record", file)
	cmd.Dir = filepath.Join("..", "operators", "metacontroller", "examples")
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sung := false
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if !sung && strings.Contains(lines.Text(), "apply Kiyoshi") { // a second signal would not let it end in order
			sung = true
			_ = cmd.Process.Signal(os.Interrupt)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	consistent(t, file)
}
