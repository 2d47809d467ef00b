package format

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestToilAnnotations: annotations about toil that fit each other are read, and others are refused.
func TestToilAnnotations(t *testing.T) {
	const steps = "  steps:\n  - {name: fault, try: [{sleep: {duration: 1ms}}]}\n  - {name: by hand, try: [{sleep: {duration: 1ms}}]}\n  - {name: whole, try: [{sleep: {duration: 1ms}}]}\n"
	for name, c := range map[string]struct{ annotations, want string }{
		"all":               {annotations: "writes: a; toil.whole: upgrade; by-hand.by-hand: 5s; decision.by-hand: somebody wants it"},
		"no such fault":     {"writes: a; toil.whole: upgrades", `there is no fault "upgrades" | did you mean "upgrade"?`},
		"no such step":      {"writes: a; toil.wole: upgrade", `there is no step with the name "wole"`},
		"nothing written":   {"toil.whole: upgrade", "nothing is written that could be measured"},
		"a bad name":        {"writes: A B", `"A B" is not the name of an object`},
		"no time":           {"writes: a; toil.whole: upgrade; by-hand.by-hand: soon", `"soon" is not a duration`},
		"measured nowhere":  {"writes: a; toil.fault: upgrade; by-hand.by-hand: 5s", `no step that is measured comes after the step "by hand"`},
		"both":              {"writes: a; toil.fault: upgrade; toil.whole: lose-node; by-hand.fault: 5s", `the step "fault" is measured: it cannot be done by hand too`},
		"the same twice":    {"writes: a; toil.fault: upgrade; toil.whole: upgrade", `the fault upgrade is that of the step "fault" already`},
		"decides by nobody": {"writes: a; toil.whole: upgrade; decision.fault: somebody", `the step "fault" is not done by hand`},
	} {
		t.Run(name, func(t *testing.T) {
			var lines strings.Builder
			for a := range strings.SplitSeq(c.annotations, "; ") {
				lines.WriteString("    operator-lab.dev/" + a + "\n")
			}
			file := filepath.Join(t.TempDir(), "chainsaw-test.yaml")
			text := "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata:\n  name: t\n  annotations:\n" + lines.String() + "spec:\n" + steps
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range Lint(Discovery{Paths: []string{filepath.Dir(file)}, TestFile: "chainsaw-test"}) {
				got = append(got, p.Message+" | "+p.Hint)
			}
			switch all := strings.Join(got, "\n"); {
			case c.want == "" && all != "":
				t.Error(all)
			case !strings.Contains(all, c.want):
				t.Errorf("want %s, got\n%s", c.want, all)
			}
		})
	}
}
