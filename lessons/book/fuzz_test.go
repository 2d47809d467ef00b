package book

import (
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark/ast"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// FuzzText checks that any text is either read completely or has a problem in one of its lines.
func FuzzText(f *testing.F) {
	for file, data := range shelf(f, "01-first") {
		f.Add(data.Data, strings.HasSuffix(file, "ja.md"))
	}
	for _, s := range []string{
		"", "#", "# \n", "# a\r\n\r\n## b: c\r\n### Hint\r\nd", "\ufeff# a\n\nb", "## Finally\n### Hint", "### 間違い：x", "# a\n```\n# b\n",
		"# a\n\n## b：c\n\n~~~\n```\n~~~\n", "\x00", "# a\n``` x\n```` y\n```\n", "# a\n## b: c\n## b: c\n### Wrong turn: a\n### Wrong turn: a\n",
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, japanese bool) {
		in := English
		if japanese {
			in = Japanese
		}
		text, wrong := readText("x.md", data, in)
		lines := 1 + strings.Count(string(data), "\n")
		c := &linter{lesson: &Lesson{texts: map[Language]*textOf{in: text}}}
		c.text(in)
		for _, p := range append(c.wrong, wrong...) {
			if p.File != "x.md" || p.Message == "" || p.Line < 0 || p.Line > lines {
				t.Fatalf("%+v, of %d lines", p, lines)
			}
		}
		if len(wrong) > 0 {
			return
		}
		if text.title.text == "" {
			t.Fatal("there is no title, and nothing is wrong")
		}
		kept := everything(text)
		headings := map[int]bool{}
		for n := text.document.FirstChild(); n != nil; n = n.NextSibling() {
			if n.Kind() == ast.KindHeading {
				headings[text.line(n.Pos())] = true
			}
		}
		for i, l := range strings.Split(string(text.source), "\n") {
			if word := strings.TrimSpace(l); !headings[i+1] && !strings.Contains(kept, word) {
				t.Fatalf("line %d, %q, is lost", i+1, l)
			}
		}
	})
}

// textOf is the type text, for use where a variable has that name.
type textOf = text

// everything joins all passages of a text.
func everything(t *text) string {
	all := []string{t.intro.text, t.finally.text}
	for _, task := range t.tasks {
		all = append(all, task.body.text, task.question.text, task.solution.text, task.done.text)
		for _, h := range task.hints {
			all = append(all, h.text)
		}
		for _, w := range task.wrong {
			all = append(all, w.text)
		}
	}
	return strings.Join(all, "\n")
}

// FuzzLessonYAML checks that any lesson.yaml has a problem in one of its lines or can be used.
func FuzzLessonYAML(f *testing.F) {
	f.Add(shelf(f, "01-first")["01-first/lesson.yaml"].Data)
	for _, s := range []string{
		"", "module: loop\nphase: 1\ntasks: [{id: a}]\n", "tasks: &a [*a]\n", "module: loop\nphase: 1\nask: http://x/\nstore: a/b\ntasks: [{id: a, answer: '5'}]\n",
		"{module: etcd, phase: 5, habits: [1, 7], sources: ['002:1-2', T12, Z-08], nodes: 9, operators: [{name: a, parameters: {b: c}}], tasks: [{id: lesson}]}",
		"- a\n", "---\n---\na: b\n", "phase: 99999999999999999999\n", "sources: ['002:99999999999999999999-1']\n", "a: \x00",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, wrong := readMetadata("lesson.yaml", data)
		most := 2
		for _, r := range string(data) {
			if strings.ContainsRune("\n\r\u0085\u2028\u2029", r) {
				most++
			}
		}
		for _, p := range wrong {
			if p.File != "lesson.yaml" || p.Message == "" || p.Line < 0 || p.Line > most {
				t.Fatalf("%+v, of %d lines", p, most)
			}
		}
		if len(wrong) > 0 {
			return
		}
		if !slices.Contains(Modules, m.Module) || m.Phase == nil || *m.Phase < 0 || *m.Phase > mostPhase || len(m.Tasks) == 0 {
			t.Fatalf("nothing is wrong with %+v", m)
		}
		for _, task := range m.Tasks {
			if !taskID.MatchString(task.ID) {
				t.Fatalf("nothing is wrong with the task %q", task.ID)
			}
		}
	})
}

// FuzzTask checks that any file of a task has a problem or its parts can be used.
func FuzzTask(f *testing.F) {
	f.Add(shelf(f, "01-first")["01-first/sing.yaml"].Data)
	f.Add([]byte("kind: Test\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		files := shelf(t, "01-first")
		files["01-first/sing.yaml"].Data = data
		Lint(files, Rules{})
		b, err := Open(files)
		if err != nil {
			return
		}
		task := b.Lessons[0].Tasks[0]
		if len(task.Checks()) == 0 || len(task.Solve().Test.Spec.Steps) == 0 {
			t.Fatal("nothing is wrong with a task without a check or a solution")
		}
		for _, w := range task.Wrong {
			if len(w.Do().Test.Spec.Steps) == 0 || len(w.See().Test.Spec.Steps) == 0 {
				t.Fatalf("nothing is wrong with the wrong turn %q", w.ID)
			}
		}
		for _, part := range append([]*format.Loaded{task.Setup(), task.Solve()}, task.Checks()[0].Test) {
			if part.Test.Name != "sing" {
				t.Fatalf("the part of another test %q", part.Test.Name)
			}
		}
	})
}
