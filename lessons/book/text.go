package book

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"

	"github.com/operator-lab/operator-lab/lessons/markdown"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

// text is the text of a lesson in one language.
type text struct {
	file                  string
	title, intro, finally passage
	tasks                 []*taskText
	// source is the whole file, and document its tree; nil if it could not be read.
	source   []byte
	document ast.Node
}

// line returns the number of the line of a place in the source.
func (t *text) line(offset int) int { return 1 + bytes.Count(t.source[:offset], []byte("\n")) }

// rest returns the source from a place to the end of its line, and where the next line begins.
func (t *text) rest(offset int) (line []byte, next int) {
	line, _, more := bytes.Cut(t.source[offset:], []byte("\n"))
	if next = offset + len(line); more {
		next++
	}
	return line, next
}

// taskText is the text of one task.
type taskText struct {
	id             string
	title          passage
	body, question passage
	hints          []passage
	wrong          []wrongText
	solution, done passage
}

// wrongText is the text of a wrong turn.
type wrongText struct {
	id string
	passage
}

// passage is a piece of Markdown.
type passage struct {
	text string
	// line is the number of its first line, or of its heading while it is empty; 0 if it does not exist.
	line int
}

// task returns the text of a task; nil if there is none.
func (t *text) task(id string) *taskText {
	for _, task := range t.tasks {
		if task.id == id {
			return task
		}
	}
	return nil
}

// headings are the headings of the parts of a task, and of the closing text.
type headings struct{ question, hint, wrong, solution, done, finally string }

var headingsIn = map[Language]headings{
	English:  {"Question", "Hint", "Wrong turn", "Solution", "When done", "Finally"},
	Japanese: {"質問", "ヒント", "間違い", "解答", "できたら", "おわりに"},
}

// parts returns the headings of the parts of a task.
func (h headings) parts() []string {
	return []string{h.question, h.hint, h.wrong + ": <id>", h.solution, h.done}
}

// textReader parses a text, heading by heading.
type textReader struct {
	*text
	language Language
	words    headings
	// into receives the text until the next heading; nil if a problem was reported for this place.
	into *passage
	// at is the number of the line that problems are reported for, from 1.
	at    int
	wrong format.Problems
}

// readText parses the text of a lesson in a language. With problems, it returns what could be parsed.
func readText(file string, data []byte, in Language) (*text, format.Problems) {
	r := &textReader{text: &text{file: file}, language: in, words: headingsIn[in]}
	if len(data) > format.MaxFileSize {
		r.problem("", "is larger than %d MiB", format.MaxFileSize>>20)
		return r.text, r.wrong
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		r.problem("save it as UTF-8", "is not UTF-8")
		return r.text, r.wrong
	}
	r.source = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	document := markdown.Parse(r.source)
	if r.unclosed(document); len(r.wrong) > 0 {
		return r.text, r.wrong // nobody knows what of it is text
	}
	r.document = document
	r.into = &r.intro
	from := 0
	for n := document.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && !underlined(h) {
			r.add(from, h.Pos())
			r.at = r.line(h.Pos())
			r.heading(h.Level, strings.TrimSpace(string(h.Lines().Value(r.source))))
			_, from = r.rest(h.Pos())
		}
	}
	r.add(from, len(r.source))
	r.whole()
	return r.text, r.wrong
}

// underlined reports whether a heading is a text with a line below it, instead of one that begins with #.
func underlined(h *ast.Heading) bool { return h.Lines().Len() > 0 && h.Lines().At(0).Start == h.Pos() }

func (r *textReader) problem(hint, message string, args ...any) {
	r.wrong = append(r.wrong, format.Problem{File: r.file, Line: r.at, Message: fmt.Sprintf(message, args...), Hint: hint})
}

var fenceLine = regexp.MustCompile("^[ \t>]*(```+|~~~+)[ \t]*([^`]*)$")

// unclosed reports code that has no end. Code also ends where other code begins with its language.
func (r *textReader) unclosed(document ast.Node) {
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if n.Kind() != ast.KindFencedCodeBlock || !entering {
			return ast.WalkContinue, nil
		}
		first, next := r.rest(n.Pos())
		fence := first[:len(first)-len(bytes.TrimLeft(first, string(first[0])))]
		r.at = r.line(n.Pos())
		none := func() { r.problem("write ``` on a line of its own after it", "the code that begins here has no end") }
		for _, l := range n.Lines().Sliced(0, n.Lines().Len()) {
			line, after := r.rest(l.Start)
			if m := fenceLine.FindSubmatch(line); m != nil && bytes.HasPrefix(m[1], fence) && len(m[2]) > 0 {
				none()
				fence, r.at = m[1], r.line(l.Start)
			}
			next = after
		}
		last, _ := r.rest(next)
		if m := fenceLine.FindSubmatch(last); m == nil || !bytes.HasPrefix(m[1], fence) || len(m[2]) > 0 {
			none()
		}
		return ast.WalkContinue, nil
	})
}

// add adds a piece of the source to the current passage, without empty lines around it.
func (r *textReader) add(from, to int) {
	piece := bytes.TrimRightFunc(r.source[from:to], unicode.IsSpace)
	blank := len(piece) - len(bytes.TrimLeftFunc(piece, unicode.IsSpace))
	begin := 1 + bytes.LastIndexByte(piece[:blank], '\n') // its first line keeps its indentation
	piece, from = piece[begin:], from+begin
	switch p := r.into; {
	case p == nil || len(piece) == 0:
	case p.text != "":
		p.text += "\n\n" + string(piece)
	default:
		p.text, p.line = string(piece), r.line(from)
	}
}

// begin begins a passage after a heading; nil drops the lines that follow.
func (r *textReader) begin(p *passage) {
	if r.into = p; p != nil && p.line == 0 {
		p.line = r.at
	}
}

// heading parses a heading.
func (r *textReader) heading(level int, title string) {
	switch level {
	case 1:
		r.lessonTitle(title)
	case 2:
		r.section(title)
	case 3:
		r.part(title)
	default:
		r.problem("use ** for what stands out", "a heading of level %d: there are three", level)
	}
}

// lessonTitle parses the title of the lesson.
func (r *textReader) lessonTitle(title string) {
	if r.title.line > 0 {
		r.problem("tasks begin with ## and their id", "a second title: the first is in line %d", r.title.line)
		return
	}
	if r.intro.text != "" || len(r.tasks) > 0 {
		r.problem("begin the file with it", "the title comes late")
	}
	if title == "" {
		r.problem("", "the title is empty")
	}
	r.title = passage{title, r.at}
	r.begin(&r.intro)
}

// taskTitle matches the ID of a task with its title.
var taskTitle = regexp.MustCompile(`^([a-z0-9][-a-z0-9]*)(?:: *|：)(.+)$`)

// section parses the heading of a task, or of the closing text.
func (r *textReader) section(title string) {
	if r.finally.line > 0 {
		r.problem("", "nothing comes after %q", r.words.finally)
	}
	if title == r.words.finally {
		r.begin(&r.finally)
		return
	}
	m := taskTitle.FindStringSubmatch(title)
	if m == nil {
		r.problem(fmt.Sprintf("write \"## <id>: <title>\" with the id of lesson.yaml, or %q at the end", "## "+r.words.finally),
			"%q names no task", title)
		r.begin(nil)
		return
	}
	if r.task(m[1]) != nil {
		r.problem("", "a second task %q", m[1])
	}
	task := &taskText{id: m[1], title: passage{strings.TrimSpace(m[2]), r.at}}
	r.tasks = append(r.tasks, task)
	r.begin(&task.body)
}

// part parses the heading of a part of a task.
func (r *textReader) part(title string) {
	if len(r.tasks) == 0 || r.finally.line > 0 {
		r.problem("headings with ### are for parts of a task", "%q belongs to no task", title)
		r.begin(nil)
		return
	}
	task := r.tasks[len(r.tasks)-1]
	name, id, hasID := strings.Cut(strings.Replace(title, "：", ":", 1), ":")
	switch name = strings.TrimSpace(name); {
	case name == r.words.wrong:
		r.wrongTurn(task, strings.TrimSpace(id))
	case hasID:
		r.unknown(title)
	case name == r.words.question:
		r.once(&task.question, title)
	case name == r.words.hint:
		task.hints = append(task.hints, passage{})
		r.begin(&task.hints[len(task.hints)-1])
	case name == r.words.solution:
		r.once(&task.solution, title)
	case name == r.words.done:
		r.once(&task.done, title)
	default:
		r.unknown(title)
	}
}

// once begins a part that may occur only once in a task.
func (r *textReader) once(p *passage, title string) {
	if p.line > 0 {
		r.problem("", "a second %q: the first is in line %d", title, p.line)
	}
	r.begin(p)
}

// wrongTurn begins the message of a wrong turn.
func (r *textReader) wrongTurn(task *taskText, id string) {
	if id == "" {
		r.problem(fmt.Sprintf("write \"### %s: <id>\"", r.words.wrong), "a wrong turn without its id")
	}
	task.wrong = append(task.wrong, wrongText{id: id})
	r.begin(&task.wrong[len(task.wrong)-1].passage)
}

// unknown reports an unknown heading; often it is that of another language.
func (r *textReader) unknown(title string) {
	hint := format.Suggest(title, r.words.parts())
	for _, other := range slices.Sorted(maps.Keys(headingsIn)) {
		for i, known := range headingsIn[other].parts() {
			name, _, _ := strings.Cut(known, ":")
			if other != r.language && strings.HasPrefix(title, name) {
				hint = fmt.Sprintf("here it is %q", r.words.parts()[i])
			}
		}
	}
	r.problem(hint, "there is no part %q of a task", title)
	r.begin(nil)
}

// whole checks that there is a title.
func (r *textReader) whole() {
	if r.title.line == 0 {
		r.at = 1
		r.problem("begin the file with \"# \" and the title", "there is no title")
	}
}
