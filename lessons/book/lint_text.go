package book

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// Limits of what fits on a screen of 80 by 24.
const (
	mostTitle = 40
	mostCode  = 56
	mostWidth = 76
	mostLines = 14
)

// text checks the text of one language.
func (c *linter) text(in Language) {
	t := c.lesson.texts[in]
	if len(t.lines) == 0 {
		return // it could not be read
	}
	c.title(t, t.title)
	c.wanted(t, t.intro, "the lesson", "introduction")
	for _, task := range t.tasks {
		c.section(t, task, headingsIn[in])
	}
	c.markup(t)
}

func (c *linter) title(t *text, title passage) {
	if n := displaywidth.String(title.text); n > mostTitle {
		c.problem(t.file, title.line, fmt.Sprintf("it may be %d", mostTitle), "the title %q is %d columns wide", title.text, n)
	}
}

// wanted checks that a passage is not empty.
func (c *linter) wanted(t *text, p passage, of, what string) {
	if p.text == "" {
		c.problem(t.file, p.line, "", "%s has no %s", of, what)
	}
}

// section checks the section of a task.
func (c *linter) section(t *text, task *taskText, h headings) {
	of := fmt.Sprintf("the task %q", task.id)
	at := func(p passage) passage { // a missing passage is reported at the title
		p.line = max(p.line, task.title.line)
		return p
	}
	c.title(t, task.title)
	c.wanted(t, at(task.body), of, "text")
	c.wanted(t, at(task.solution), of, fmt.Sprintf("%q", h.solution))
	c.wanted(t, at(task.done), of, fmt.Sprintf("%q", h.done))
	if len(task.hints) == 0 {
		c.problem(t.file, task.title.line, fmt.Sprintf("write at least one section \"### %s\"", h.hint), "%s has no hint", of)
	}
	for _, p := range task.hints {
		c.wanted(t, p, of, "text of this hint")
	}
	if task.question.line > 0 {
		c.wanted(t, task.question, of, "text of its question")
	}
	for _, w := range task.wrong {
		c.wanted(t, w.passage, of, "text of this wrong turn")
	}
	if n := height(task.body.text); n > mostLines {
		c.warning(t.file, task.body.line, fmt.Sprintf("say it in %d", mostLines), "the text of %q has %d lines of %d columns", task.id, n, mostWidth)
	}
	c.wrongTurns(t, task)
}

// wrongTurns checks that wrong turns and messages correspond.
func (c *linter) wrongTurns(t *text, task *taskText) {
	known := c.lesson.Task(task.id)
	if known == nil || known.Test.File == "" {
		return
	}
	var ids []string
	for _, w := range known.Wrong {
		ids = append(ids, w.ID)
		if !slices.ContainsFunc(task.wrong, func(x wrongText) bool { return x.id == w.ID }) {
			c.problem(t.file, task.title.line, "", "the wrong turn %q of %q has no message", w.ID, task.id)
		}
	}
	seen := map[string]bool{}
	for _, w := range task.wrong {
		switch {
		case w.id == "":
		case seen[w.id]:
			c.problem(t.file, w.line, "", "a second message for the wrong turn %q", w.id)
		case !slices.Contains(ids, w.id):
			c.problem(t.file, w.line, format.Suggest(w.id, ids), "there is no wrong turn %q in %s", w.id, known.Test.File)
		}
		seen[w.id] = true
	}
}

// height estimates the number of lines of a text on the smallest screen.
func height(markdown string) int {
	if markdown == "" {
		return 0
	}
	var t text
	t.split(markdown)
	lines, wide := 0, 0
	end := func() {
		lines += (wide + mostWidth - 1) / mostWidth
		wide = 0
	}
	for _, l := range t.lines {
		switch trimmed := strings.TrimSpace(l.text); {
		case l.kind == fence:
			end()
		case l.kind != prose || trimmed == "":
			end()
			lines++
		default:
			if listItem.MatchString(l.text) {
				end()
			}
			wide += displaywidth.String(trimmed) + 1
		}
	}
	end()
	return lines
}

var listItem = regexp.MustCompile(`^[ \t]*(?:[-*+]|\d+[.)])[ \t]`)

// inStep checks that the languages have the same parts.
func (c *linter) inStep() {
	first := c.lesson.texts[Languages[0]]
	for _, in := range Languages[1:] {
		other := c.lesson.texts[in]
		if len(first.lines) == 0 || len(other.lines) == 0 {
			continue
		}
		c.same(other, first, 1, other.finally.text != "", first.finally.text != "", fmt.Sprintf("%q at the end", headingsIn[in].finally))
		for _, task := range other.tasks {
			as := first.task(task.id)
			if as == nil {
				continue
			}
			at := task.title.line
			c.same(other, first, at, task.question.text != "", as.question.text != "", fmt.Sprintf("question in %q", task.id))
			if len(task.hints) != len(as.hints) {
				c.problem(other.file, at, "", "hints of %q: %d here, %d in %s", task.id, len(task.hints), len(as.hints), path.Base(filepath.ToSlash(first.file)))
			}
		}
	}
}

// same checks that something is in both languages, or in neither.
func (c *linter) same(t, as *text, line int, here, there bool, what string) {
	base := path.Base(filepath.ToSlash(as.file))
	switch {
	case here && !there:
		c.problem(t.file, line, "", "there is a %s, and none in %s", what, base)
	case !here && there:
		c.problem(t.file, line, "", "there is no %s, but one in %s", what, base)
	}
}

// markup checks that the text uses only the Markdown that is supported.
func (c *linter) markup(t *text) {
	var paragraph []string
	for i, l := range append(t.lines, line{}) {
		if l.kind == prose && strings.TrimSpace(l.text) != "" {
			paragraph = append(paragraph, l.text)
			continue
		}
		if len(paragraph) > 0 {
			c.paragraph(t, paragraph, i-len(paragraph)+1)
			paragraph = nil
		}
		if l.kind == code {
			c.code(t, l.text, i+1)
		}
	}
}

var typedLesson = regexp.MustCompile(`^\s*(?:\$ )?operator-lab lesson ([a-z0-9][-a-z0-9]*)`)

// code checks a line of a code block.
func (c *linter) code(t *text, s string, at int) {
	if strings.Contains(s, "\t") {
		c.problem(t.file, at, "indent with spaces", "a tab in the code: how wide it is differs from screen to screen")
	}
	if n := displaywidth.String(strings.ReplaceAll(s, "\t", " ")); n > mostCode {
		c.problem(t.file, at, fmt.Sprintf("it may be %d; a shell goes on after \\ at the end of a line", mostCode), "a line of code is %d columns wide", n)
	}
	if m := typedLesson.FindStringSubmatch(s); m != nil {
		c.lessonName(t, m[1], at)
	}
}

var (
	codeSpan    = regexp.MustCompile("(`+)[^`]+`+")
	namedLesson = regexp.MustCompile("^`(?:operator-lab )?lesson ([a-z0-9][-a-z0-9]*)")
	link        = regexp.MustCompile(`\[[^\]]*\]\(([^()\s]*)\)`)
	notOurs     = []struct {
		form       *regexp.Regexp
		what, hint string
	}{
		{regexp.MustCompile(`!\[`), "an image", "terminals show none"},
		{regexp.MustCompile(`(?m)^[ \t]*>`), "a quotation", "say it in your own words"},
		{regexp.MustCompile(`(?m)^[ \t]*\|.*\|[ \t]*$`), "a table", "write a list"},
		{regexp.MustCompile(`</?[A-Za-z!][^>\n]*>`), "HTML", "put ` around it if it is meant as it is, and write links as [text](https://…)"},
		{regexp.MustCompile(`(?m)^[ \t]*(?:-{3,}|={3,}|\*{3,}|_{3,})[ \t]*$`), "a line", "headings begin with #"},
	}
)

// paragraph checks prose.
func (c *linter) paragraph(t *text, lines []string, at int) {
	s := strings.Join(lines, "\n")
	line := func(offset int) int { return at + strings.Count(s[:offset], "\n") }
	for _, m := range codeSpan.FindAllStringIndex(s, -1) {
		if name := namedLesson.FindStringSubmatch(strings.ReplaceAll(s[m[0]:m[1]], "\n", " ")); name != nil {
			c.lessonName(t, name[1], line(m[0]))
		}
	}
	s = codeSpan.ReplaceAllStringFunc(s, blank)
	for _, m := range link.FindAllStringSubmatchIndex(s, -1) {
		c.link(t, s[m[2]:m[3]], line(m[0]))
	}
	for _, not := range notOurs {
		if m := not.form.FindStringIndex(s); m != nil {
			c.problem(t.file, line(m[0]), not.hint, "%s: texts have paragraphs, lists, `code`, **bold**, blocks of code and links", not.what)
		}
	}
}

// blank replaces all characters except line ends, so that the text matches no rule.
func blank(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return 'x'
	}, s)
}

// lessonName checks that a mentioned lesson exists.
func (c *linter) lessonName(t *text, name string, at int) {
	if !slices.Contains(c.known, name) && !slices.Contains(Reserved, name) {
		ids := slices.DeleteFunc(slices.Clone(c.known), func(s string) bool { return s[0] >= '0' && s[0] <= '9' })
		c.problem(t.file, at, format.Suggest(name, ids), "there is no lesson %q", name)
	}
}

// link checks the target of a link. It makes no network requests.
func (c *linter) link(t *text, target string, at int) {
	u, err := url.Parse(target)
	switch {
	case err != nil || target == "":
		c.problem(t.file, at, "", "a link to %q, which is no address", target)
	case u.Scheme == "https" && u.Host != "":
	case u.Scheme != "" || path.IsAbs(u.Path) || u.Path == "":
		c.problem(t.file, at, "link to https pages, or to files, relative to the lesson's folder", "a link to %s", target)
	case !c.exists(u.Path):
		c.problem(t.file, at, "", "a link to %s, and there is no such file", target)
	}
}

// exists reports whether the target of a link is a file. Targets outside of the lessons are not in their file system.
func (c *linter) exists(target string) bool {
	if c.base == nil {
		_, err := os.Stat(filepath.Join(c.folder, filepath.FromSlash(target)))
		return err == nil
	}
	name := path.Join(c.folder, target)
	folder, _, _ := strings.Cut(name, "/")
	if _, _, lesson := split(folder); !lesson {
		return true
	}
	_, err := fs.Stat(c.base, name)
	return err == nil
}
