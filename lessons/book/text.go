package book

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// text is the text of a lesson in one language.
type text struct {
	file                  string
	title, intro, finally passage
	tasks                 []*taskText
	// lines are the lines of the whole file.
	lines []line
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

// line is one line of Markdown, with its context.
type line struct {
	text string
	kind lineKind
}

type lineKind int

const (
	prose lineKind = iota
	heading
	// fence marks the first or last line of a code block.
	fence
	code
)

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
	// into receives the lines until the next heading; nil if a problem was reported for this place.
	into *passage
	// at is the number of the current line, from 1.
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
	open := r.split(string(data))
	for _, r.at = range open {
		r.problem("write ``` on a line of its own after it", "the code that begins here has no end")
	}
	r.into = &r.intro
	for i, l := range r.lines {
		r.at = i + 1
		if l.kind == heading {
			r.heading(l.text)
			continue
		}
		r.into.add(l.text, r.at)
	}
	r.trim()
	r.whole()
	return r.text, r.wrong
}

func (r *textReader) problem(hint, message string, args ...any) {
	r.wrong = append(r.wrong, format.Problem{File: r.file, Line: r.at, Message: fmt.Sprintf(message, args...), Hint: hint})
}

var (
	fenceLine   = regexp.MustCompile("^[ \t]*(```+|~~~+)[ \t]*([^`]*)$")
	headingLine = regexp.MustCompile(`^(#+)[ \t]+(.*)$`)
)

// split splits a text into lines with their context. It returns the lines at which code begins that has no end. Code
// also ends where other code begins with its language, so that not everything after it is reported.
func (t *text) split(s string) (open []int) {
	var (
		ends  string // what ends the code; empty outside of code
		begun int
	)
	for i, l := range strings.Split(strings.TrimSuffix(strings.ReplaceAll(s, "\r\n", "\n"), "\n"), "\n") {
		m := fenceLine.FindStringSubmatch(l)
		kind := prose
		switch {
		case ends == "" && m != nil:
			kind, ends, begun = fence, m[1], i+1
		case ends != "" && m != nil && strings.HasPrefix(m[1], ends):
			kind = fence
			if ends = ""; m[2] != "" {
				open = append(open, begun)
				ends, begun = m[1], i+1
			}
		case ends != "":
			kind = code
		case headingLine.MatchString(l):
			kind = heading
		}
		t.lines = append(t.lines, line{l, kind})
	}
	if ends != "" {
		open = append(open, begun)
	}
	return open
}

// add adds a line.
func (p *passage) add(text string, at int) {
	switch {
	case p == nil:
	case p.text != "":
		p.text += "\n" + text
	case strings.TrimSpace(text) != "":
		p.text, p.line = text, at
	}
}

// begin begins a passage after a heading; nil drops the lines that follow.
func (r *textReader) begin(p *passage) {
	if r.into = p; p != nil && p.line == 0 {
		p.line = r.at
	}
}

// heading parses a heading.
func (r *textReader) heading(text string) {
	m := headingLine.FindStringSubmatch(text)
	title := strings.TrimSpace(strings.TrimRight(m[2], "# \t"))
	switch len(m[1]) {
	case 1:
		r.lessonTitle(title)
	case 2:
		r.section(title)
	case 3:
		r.part(title)
	default:
		r.problem("use ** for what stands out", "a heading of level %d: there are three", len(m[1]))
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

// trim removes empty lines at both ends of all passages.
func (r *textReader) trim() {
	all := []*passage{&r.intro, &r.finally}
	for _, t := range r.tasks {
		all = append(all, &t.body, &t.question, &t.solution, &t.done)
		for i := range t.hints {
			all = append(all, &t.hints[i])
		}
		for i := range t.wrong {
			all = append(all, &t.wrong[i].passage)
		}
	}
	for _, p := range all {
		p.text = strings.TrimRight(p.text, " \t\n")
	}
}

// whole checks that there is a title.
func (r *textReader) whole() {
	if r.title.line == 0 {
		r.at = 1
		r.problem("begin the file with \"# \" and the title", "there is no title")
	}
}
