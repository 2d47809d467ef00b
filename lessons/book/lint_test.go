package book

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// edit is one mistake: it replaces a text in a file, or the whole file if old is empty.
type edit struct{ file, old, new string }

// gone is the new text that removes a file.
const gone = "\x00"

func (e edit) do(t *testing.T, files fstest.MapFS) {
	t.Helper()
	file := "02-second/" + e.file
	switch {
	case e.new == gone:
		delete(files, file)
	case e.old == "":
		files[file] = &fstest.MapFile{Data: []byte(e.new)}
	default:
		text := string(files[file].Data)
		if !strings.Contains(text, e.old) {
			t.Fatalf("there is no %q in %s", e.old, file)
		}
		files[file] = &fstest.MapFile{Data: []byte(strings.Replace(text, e.old, e.new, 1))}
	}
}

// mistakes are lessons with one mistake each; the golden file has the linter's output for each.
var mistakes = []struct {
	name  string
	edits []edit
}{
	{"no metadata", []edit{{"lesson.yaml", "", gone}}},
	{"empty metadata", []edit{{"lesson.yaml", "", "# nothing\n"}}},
	{"not YAML", []edit{{"lesson.yaml", "", "module: [\n"}}},
	{"unknown keys", []edit{{"lesson.yaml", "phase:", "fase:"}, {"lesson.yaml", "    parameters:", "    parametters:"}}},
	{"wrong types", []edit{{"lesson.yaml", "", "module: lop\nphase: one\nhabits: 3\nsources: [12]\nnodes: -1\noperators: [zundoko]\ntasks:\n  - id: sing\n    answer: 5\n"}}},
	{"out of range", []edit{{"lesson.yaml", "phase: 0 ", "phase: 6 "}, {"lesson.yaml", "habits: []", "habits: [0, 3, 3, 8]\nnodes: 100"}}},
	{"sources", []edit{{"lesson.yaml", "habits: []", `sources: ["005:1", "002:9-3", "002:424-437", "T12", "Z-08", "AC-E05", "https://x.example/", "http://x", "the book"]`}}},
	{"addresses", []edit{{"lesson.yaml", "habits: []", "ask: app.default.svc\nstore: kv"}}},
	{"operators", []edit{{"lesson.yaml", "  - name: zundoko", "  - name: zundoko\n  - variant: classic\n  - name: zunduko\n  - name: zundoko"}}},
	{"operators of the learner's", []edit{{"lesson.yaml", "  - name: zundoko", "  - name: cafe\n    project: true\n    variant: classic\n  - name: zundoko\n    hook: sync.sh\n  - name: metacontroller\n    hook: sync.sh\n    project: true"}}},
	{"no tasks", []edit{{"lesson.yaml", "", "module: loop\nphase: 1\ntasks: []\n"}, {"sing.yaml", "", gone}}},
	{"ids of tasks", []edit{{"lesson.yaml", "- id: sing", "- id: sing\n  - id: sing\n  - id: Dance\n  - id: lesson\n  - id: dance"}}},
	{"removes", []edit{{"lesson.yaml", "- id: sing", "- id: sing\n    removes: [Pod/web, Namespace, Operator/zundoko]"}}},
	{"a language is missing", []edit{{"ja.md", "", gone}}},
	{"not a text", []edit{{"ja.md", "", "# \xff\n"}}},
	{"no title", []edit{{"en.md", "# Second\n", "Second\n"}}},
	{"two titles", []edit{{"en.md", "### Solution", "# Solution"}}},
	{"a late title", []edit{{"en.md", "# Second\n", "Hello.\n\n# Second\n"}}},
	{"a wide title", []edit{{"ja.md", "# Second\n", "# ズンドコキヨシを歌うオペレーターを動かしてみましょう\n"}, {"en.md", "What the task is called", "What the task is called, and why it is called so"}}},
	{"no introduction", []edit{{"en.md", "Say in one or two short paragraphs what this lesson is about, and why it matters.", ""}}},
	{"an unknown task in a text", []edit{{"en.md", "## sing:", "## sign:"}}},
	{"a task without a title", []edit{{"en.md", "## sing: What the task is called", "## Sing a song"}}},
	{"tasks in another order", []edit{
		{"lesson.yaml", "- id: sing", "- id: dance\n  - id: sing"},
		{"dance.yaml", "", "name: dance\n"},
		{"en.md", "## Finally", "## dance: Dance\n\nDance.\n\n### Hint\n\nDance.\n\n### Solution\n\nDance.\n\n### When done\n\nDanced.\n\n## Finally"},
		{"ja.md", "## おわりに", "## dance：踊る\n\n踊ります。\n\n### ヒント\n\n踊ります。\n\n### 解答\n\n踊ります。\n\n### できたら\n\n踊りました。\n\n## おわりに"},
	}},
	{"unknown headings", []edit{{"en.md", "### When done", "### When don"}, {"ja.md", "### 解答", "### Solution"}, {"en.md", "### Hint", "#### Hint"}}},
	{"headings in wrong places", []edit{{"en.md", "## Finally", "## Finally\n\n### Hint\n\nNo.\n\n## more: More"}, {"ja.md", "# Second\n", "# Second\n\n### ヒント\n"}}},
	{"parts are missing", []edit{{"en.md", "### Solution\n", ""}, {"ja.md", "いま何が起きたのか、なぜそうなったのかを書きます。", ""}}},
	{"parts are there twice", []edit{{"en.md", "### When done", "### Solution\n\nAgain.\n\n### When done"}}},
	{"no hint", []edit{{"en.md", "### Hint", "**Hint**"}, {"en.md", "### Hint", "**Hint**"}, {"ja.md", "### ヒント", "**ヒント**"}, {"ja.md", "### ヒント", "**ヒント**"}}},
	{"hints out of step", []edit{{"ja.md", "### ヒント", "### ヒント\n\nもう 1 つ。\n\n### ヒント"}}},
	{"no end in one language", []edit{{"ja.md", "## おわりに", "### できたら"}}},
	{"a question without an answer", []edit{{"en.md", "### Hint", "### Question\n\nHow many?\n\n### Hint"}}},
	{"an answer without a question", []edit{{"lesson.yaml", "- id: sing", "- id: sing\n    answer: \"5\""}}},
	{"an answer that nobody looks at", []edit{
		{"lesson.yaml", "- id: sing", "- id: sing\n    answer: \"5\""},
		{"en.md", "### Hint", "### Question\n\nHow many?\n\n### Hint"},
		{"ja.md", "### ヒント", "### 質問\n\nいくつですか。\n\n### ヒント"},
	}},
	{"an answer that nobody gives", []edit{{"sing.yaml", "kiyoshied: true", "numZundokosSaid: ($values.answer)"}}},
	{"wrong turns without messages", []edit{{"en.md", "### Wrong turn: other-name", "### Wrong turn: other-nam"}, {"ja.md", "### 間違い: other-name", "### 間違い"}}},
	{"no wrong turn", []edit{{"sing.yaml", "---\n", "--- # the rest is a comment: |\n#"}, {"sing.yaml", "name: wrong-other-name", "name: right"}}},
	{"wide code", []edit{{"en.md", "kubectl apply -f hikawa.yaml", "kubectl get hikawas --all-namespaces --output custom-columns=A:.a"}, {"ja.md", "kubectl apply", "\techo ズンドコキヨシズンドコキヨシズンドコキヨシズンドコキヨシ"}}},
	{"code without an end at all", []edit{{"en.md", "## Finally", "```\n\n## Finally"}}},
	{"code without an end", []edit{{"en.md", "```\n\nA task in which", "A task in which"}}},
	{"a long text", []edit{{"en.md", "A task in which", strings.Repeat("This is said again and again. ", 30) + "\n\nA task in which"}}},
	{"markup", []edit{{"en.md", "A first hint", "![x](https://x.example/)\n\n| a | b |\n\n> No\n\n<br> and `<br>` and <https://x.example>\n\nNo\n---\n\nA first hint"}}},
	{"bold that is none", []edit{{"ja.md", "### ヒント", "日本語**「強調」**です。\n**強調。**です。\n`**`、\\*\\*、**a**、「**強調**」です。\n\n### ヒント"}, {"en.md", "A first hint", "2 ** 3\n\nA first hint"}}},
	{"a heading with a line below it", []edit{{"en.md", "A first hint", "#No\nno\n===\n\nA first hint"}}},
	{"links", []edit{{"en.md", "A first hint", "[a](http://x.example/) [b](no.md) [c](hikawa.yaml#L1) [d](/etc/passwd) [e](../01-first/en.md) [f](../01-first/no.md) [g](#h) [h]() [i](mailto:x@x.example) `[j](no.md)` [k](../../README.md)\n\nA first hint"}}},
	{"names of lessons", []edit{{"en.md", "A first hint", "`lesson first`, `lesson frist`, `operator-lab lesson 2`, `operator-lab\nlesson 9`, `lesson next`, `lesson another`\n\n```sh\n$ operator-lab lesson 01-first\noperator-lab lesson sceond\n```\n\nA first hint"}}},
	{"the file of a task is missing", []edit{{"sing.yaml", "", gone}}},
	{"a task of its own", []edit{{"dance.yaml", "", "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata:\n  name: dance\n"}}},
	{"what the linter of scenarios says", []edit{{"sing.yaml", "kiyoshied: true", "(kiyoshied: true"}, {"sing.yaml", "file: hikawa.yaml", "file: hikwa.yaml"}, {"sing.yaml", "ja.check-sung", "ja.check-song"}}},
	{"the name of a test", []edit{{"sing.yaml", "  name: sing\n", "  name: dance\n"}, {"sing.yaml", "name: wrong-other-name", "name: other-name"}}},
	{"two wrong turns of a name", []edit{{"sing.yaml", "---\n", "---\napiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata:\n  name: wrong-other-name\nspec:\n  steps:\n    - name: do\n      try:\n        - script:\n            content: kubectl get pods\n---\n"}}},
	{"steps", []edit{{"sing.yaml", "- name: setup", "- name: prepare"}, {"sing.yaml", "- name: solution", "- name: check-first"}, {"sing.yaml", "- name: check-sung", "- name: solution"}, {"sing.yaml", "- name: do", "- name: see-it"}, {"sing.yaml", "- name: see\n", "- name: do\n"}}},
	{"no checks", []edit{{"sing.yaml", "- name: check-sung", "- name: setup-1"}, {"sing.yaml", "- name: check-kiyoshi", "- name: setup-2"}}},
	{"no goals", []edit{{"sing.yaml", "      description: There is a Kiyoshi\n", ""}, {"sing.yaml", "    operator-lab.dev/ja.check-kiyoshi: Kiyoshi が 1 つある\n", ""}, {"sing.yaml", "The Hikawa has sung to the end", "The Hikawa has sung to the end, which takes as long as it takes, and not a second more"}}},
	{"checks that do something", []edit{{"sing.yaml", "- assert:\n            resource:\n              apiVersion: zundokokiyoshi.kaitoy.github.com/v1beta1\n              kind: Kiyoshi", "- script:\n            content: kubectl get pods\n        - apply:\n            resource:\n              apiVersion: zundokokiyoshi.kaitoy.github.com/v1beta1\n              kind: Kiyoshi"}}},
	{"checks of nothing", []edit{{"sing.yaml", "    - name: check-kiyoshi\n      description: There is a Kiyoshi\n      try:\n", "    - name: check-kiyoshi\n      description: There is a Kiyoshi\n      try:\n        - sleep: {duration: 1s}\n    - name: check-2\n      description: x\n      try:\n"}}},
	{"a setup that does not wait", []edit{{"sing.yaml", "    - name: solution", "    - name: setup-2\n      try:\n        - apply:\n            file: hikawa.yaml\n    - name: solution"}}},
	{"a matrix", []edit{{"sing.yaml", "  timeouts:\n", "  skip: true\n  scenarios:\n    - bindings: [{name: a, value: 1}]\n  timeouts:\n"}}},
}

// noZunduko is a rule that refuses one operator.
func noZunduko(o Operator) error {
	if o.Name == "zunduko" {
		return errors.New("is not known")
	}
	return nil
}

// TestLint compares the linter's output for each mistake with the golden file, and checks that the lesson beside it has
// no problem.
func TestLint(t *testing.T) {
	var out strings.Builder
	for _, m := range mistakes {
		files := shelf(t, "01-first", "02-second")
		for _, e := range m.edits {
			e.do(t, files)
		}
		fmt.Fprintf(&out, "== %s\n", m.name)
		found := Lint(files, Rules{Operator: noZunduko, Lessons: []string{"another"}})
		for _, p := range found {
			out.WriteString(told(p))
		}
		if len(found) == 0 {
			t.Errorf("%s: nothing is wrong", m.name)
		}
	}
	golden(t, "lint.golden", out.String())
}

func told(p format.Problem) string {
	text := "error: "
	if p.Warning {
		text = "warning: "
	}
	text += p.Error() + "\n"
	if p.Hint != "" {
		text += "  hint: " + p.Hint + "\n"
	}
	return text
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// TestLintOnDisk checks that file names appear as they were typed, and that links may lead out of the lessons.
func TestLintOnDisk(t *testing.T) {
	files := shelf(t, "01-first", "02-second")
	edit{"en.md", "A first hint", "`lesson first` [a](../../README.md) [b](../../no.md) [c](../01-first)\n\nA first hint"}.do(t, files)
	top := t.TempDir()
	if err := os.CopyFS(filepath.Join(top, "lessons"), files); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "README.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(top)
	found := LintFolders([]string{"lessons/02-second"}, Rules{})
	if len(found) != 1 || found[0].Error() != "lessons/02-second/en.md:19: a link to ../../no.md, and there is no such file" {
		t.Errorf("%v", found)
	}
	t.Chdir("lessons/02-second")
	found = LintFolders([]string{"."}, Rules{})
	if len(found) != 1 || found[0].Error() != "en.md:19: a link to ../../no.md, and there is no such file" {
		t.Errorf("from its own folder: %v", found)
	}
}

// TestLintOfNames checks that numbers and IDs must be unique, also among lessons in the same parent folder.
func TestLintOfNames(t *testing.T) {
	files := shelf(t, "01-first", "02-second")
	for _, name := range []string{"01-other", "03-second", "04-next", "5-five", "06_six", "x"} {
		for _, f := range []string{"lesson.yaml", "en.md", "ja.md", "sing.yaml", "hikawa.yaml"} {
			files[name+"/"+f] = files["01-first/"+f]
		}
	}
	var out strings.Builder
	for _, p := range Lint(files, Rules{}) {
		out.WriteString(told(p))
	}
	golden(t, "names.golden", out.String())

	t.Chdir(onDisk(t, files))
	for folder, want := range map[string]string{
		"01-first":  "number 1 is also that of 01-other",
		"03-second": `the id "second" is also that of 02-second`,
	} {
		found := LintFolders([]string{folder}, Rules{})
		if len(found) != 1 || found[0].File != folder || found[0].Message != want {
			t.Errorf("%s: %v", folder, found)
		}
	}
}

func TestHeight(t *testing.T) {
	for text, want := range map[string]int{
		"":                                    0,
		"one line":                            1,
		"two\nlines are one":                  1,
		"one\n\nand one":                      3,
		"- one\n- two\n  of it":               2,
		"text\n```sh\na\nb\n```\ntext":        6,
		strings.Repeat("歌う ", 40):             3,
		"1. a\n2. b\n\n```\n\n```\n\n**end**": 6,
	} {
		if got := height(text); got != want {
			t.Errorf("%q has %d lines, not %d", text, got, want)
		}
	}
}
