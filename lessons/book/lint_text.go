package book

import (
	"bytes"
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
	"github.com/yuin/goldmark/ast"

	"github.com/operator-lab/operator-lab/lessons/markdown"
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
	if t.document == nil {
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
func height(text string) int {
	lines, source := 0, []byte(text)
	_ = ast.Walk(markdown.Parse(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch {
		case n.Type() == ast.TypeInline:
			return ast.WalkSkipChildren, nil
		case !entering:
			return ast.WalkContinue, nil
		}
		if n.PreviousSibling() != nil && apart(n) {
			lines++
		}
		if n.IsRaw() {
			lines += n.Lines().Len()
			return ast.WalkContinue, nil
		}
		wide := 0
		for _, l := range n.Lines().Sliced(0, n.Lines().Len()) {
			wide += displaywidth.Bytes(bytes.TrimSpace(l.Value(source))) + 1
		}
		lines += (wide + mostWidth - 1) / mostWidth
		return ast.WalkContinue, nil
	})
	return lines
}

// apart reports whether the screen has an empty line between a block and the one before it.
func apart(n ast.Node) bool {
	switch parent := n.Parent().(type) {
	case *ast.List:
		return !parent.IsTight
	case *ast.ListItem:
		return n.Kind() != ast.KindList
	}
	return true
}

// inStep checks that the languages have the same parts.
func (c *linter) inStep() {
	first := c.lesson.texts[Languages[0]]
	for _, in := range Languages[1:] {
		other := c.lesson.texts[in]
		if first.document == nil || other.document == nil {
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
	_ = ast.Walk(t.document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		const line, headingHint = "a line", "headings begin with #"
		switch n := n.(type) {
		case *ast.Heading:
			if underlined(n) {
				_, below := t.rest(n.Lines().At(n.Lines().Len() - 1).Start)
				c.notOurs(t, below, line, headingHint)
			}
			return ast.WalkSkipChildren, nil
		case *ast.ThematicBreak:
			c.notOurs(t, n.Pos(), line, headingHint)
		case *ast.Blockquote:
			c.notOurs(t, n.Pos(), "a quotation", "say it in your own words")
		case *ast.HTMLBlock, *ast.RawHTML:
			c.notOurs(t, n.Pos(), "HTML", htmlHint)
		case *ast.AutoLink:
			if t.source[n.Pos()] == '<' {
				c.notOurs(t, n.Pos(), "HTML", htmlHint)
			}
		case *ast.Image:
			c.notOurs(t, n.Pos(), "an image", "terminals show none")
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			for _, l := range n.Lines().Sliced(0, n.Lines().Len()) {
				c.code(t, l.Start)
			}
		case *ast.Paragraph, *ast.TextBlock:
			c.table(t, n)
		case *ast.CodeSpan:
			c.codeSpan(t, n)
			return ast.WalkSkipChildren, nil
		case *ast.Link:
			c.link(t, string(n.Destination), t.line(n.Pos()))
		case *ast.Text:
			c.emphasis(t, n)
		}
		return ast.WalkContinue, nil
	})
}

const htmlHint = "put ` around it if it is meant as it is, and write links as [text](https://…)"

// notOurs reports Markdown that is not supported, once in a line.
func (c *linter) notOurs(t *text, offset int, what, hint string) {
	const ours = "%s: texts have paragraphs, lists, `code`, **bold**, blocks of code and links"
	p := format.Problem{File: t.file, Line: t.line(offset), Message: fmt.Sprintf(ours, what), Hint: hint}
	if !slices.Contains(c.wrong, p) {
		c.wrong = append(c.wrong, p)
	}
}

// table reports a table, which no more than its lines tell.
func (c *linter) table(t *text, n ast.Node) {
	for _, l := range n.Lines().Sliced(0, n.Lines().Len()) {
		if s := bytes.TrimSpace(l.Value(t.source)); len(s) > 1 && s[0] == '|' && s[len(s)-1] == '|' {
			c.notOurs(t, l.Start, "a table", "write a list")
			return
		}
	}
}

// emphasis reports ** that readers see, because it begins and ends nothing: in CommonMark it does neither between a
// letter and a bracket or a full stop, which Japanese writes without a space.
func (c *linter) emphasis(t *text, n *ast.Text) {
	value := n.Value(t.source)
	for i := 0; i+1 < len(value); i++ {
		switch {
		case value[i] == '\\':
			i++ // the next character is meant as it is
		case value[i] == '*' && value[i+1] == '*':
			c.problem(t.file, t.line(n.Segment.Start+i), "write brackets and full stops outside, as in 「**…**」; put ` around it if it is meant as it is",
				"** that makes nothing bold")
			return
		}
	}
}

var typedLesson = regexp.MustCompile(`^\s*(?:\$ )?operator-lab lesson ([a-z0-9][-a-z0-9]*)`)

// code checks the line of a code block that has this place in it.
func (c *linter) code(t *text, offset int) {
	at, begin := t.line(offset), 1+bytes.LastIndexByte(t.source[:offset], '\n')
	line, _ := t.rest(begin)
	s := string(line)
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

var namedLesson = regexp.MustCompile("^(?:operator-lab )?lesson ([a-z0-9][-a-z0-9]*)")

// codeSpan checks code within a line.
func (c *linter) codeSpan(t *text, n *ast.CodeSpan) {
	var s strings.Builder
	for piece := n.FirstChild(); piece != nil; piece = piece.NextSibling() {
		if piece, ok := piece.(*ast.Text); ok {
			s.Write(piece.Value(t.source))
		}
	}
	if name := namedLesson.FindStringSubmatch(strings.ReplaceAll(s.String(), "\n", " ")); name != nil {
		c.lessonName(t, name[1], t.line(n.Pos()))
	}
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
