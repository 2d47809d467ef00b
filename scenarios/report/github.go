package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// GitHub reports a finished run to GitHub Actions: an annotation for each failure at its position in the file, and a
// table for the page of the job.
type GitHub struct {
	Nothing
	o GitHubOptions
	// err is the first error of a writer; only EndRun sets it.
	err error
}

// GitHubOptions are the options of a [GitHub] sink. With the zero value it reports nothing.
type GitHubOptions struct {
	// Commands receives the annotations. It must be the process's standard output. Default: no annotations.
	Commands io.Writer
	// Workspace is the folder of the checkout; names of files are made relative to it. Default: they are not changed.
	Workspace string
	// Summary receives the table for the page of the job, in Markdown. Default: no table.
	Summary io.Writer
}

// NewGitHub returns a sink for GitHub Actions.
func NewGitHub(o GitHubOptions) *GitHub { return &GitHub{o: o} }

// Err returns the first error of a writer. Call it after the run.
func (g *GitHub) Err() error { return g.err }

// EndRun writes the annotations and the table.
func (g *GitHub) EndRun(r *Run) {
	if g.o.Commands != nil {
		_, g.err = io.WriteString(g.o.Commands, g.annotations(r))
	}
	if g.o.Summary != nil && g.err == nil {
		_, g.err = io.WriteString(g.o.Summary, summary(r))
	}
}

func (g *GitHub) annotations(r *Run) string {
	var text strings.Builder
	for _, t := range r.Tests {
		for s, o := range t.FailedOperations() {
			file, line := o.File, o.Line
			if file == "" {
				file, line = t.File, t.Line
			}
			g.annotate(&text, file, line, t.Name+": "+s.Name, annotationOf(o))
		}
		for _, f := range t.Findings {
			lines := append([]string{f.Message}, f.Details...)
			g.annotate(&text, t.File, t.Line, t.Name+": oracle "+f.Oracle, strings.Join(lines, "\n"))
		}
	}
	return text.String()
}

// annotationOf describes why an operation failed, without its output.
func annotationOf(o *Operation) string {
	p, x := page{}, NewText(nil, TextOptions{})
	x.failure(&p, o.Failure)
	return o.Type + " " + clean(o.Name) + "\n" + strings.TrimRight(p.String(), "\n")
}

func (g *GitHub) annotate(text *strings.Builder, file string, line int, title, message string) {
	a := Annotation{Level: "error", File: file, Line: max(line, 1), Title: clean(title), Message: message}
	text.WriteString(a.Command(g.o.Workspace) + "\n")
}

// Annotation is a message that GitHub shows at a line of a file.
type Annotation struct {
	// Level is error, warning or notice.
	Level string
	// File is the file; empty if the message is about none.
	File string
	// Line and Column count from 1; 0 if they are not known.
	Line, Column int
	// Title is one line.
	Title string
	// Message is the text.
	Message string
}

// Command returns the line that makes GitHub show it. Files in the workspace are named relative to it; an empty one
// means that they are already.
func (a Annotation) Command(workspace string) string {
	var properties []string
	if a.File != "" {
		properties = append(properties, "file="+escapeProperty(relative(a.File, workspace)))
		if a.Line > 0 {
			properties = append(properties, fmt.Sprintf("line=%d", a.Line))
		}
		if a.Column > 0 {
			properties = append(properties, fmt.Sprintf("col=%d", a.Column))
		}
	}
	properties = append(properties, "title="+escapeProperty(a.Title))
	return fmt.Sprintf("::%s %s::%s", a.Level, strings.Join(properties, ","), escapeMessage(a.Message))
}

// relative returns a file relative to the workspace.
func relative(file, workspace string) string {
	if workspace == "" {
		return file
	}
	absolute, err := filepath.Abs(file)
	if err != nil {
		return file
	}
	inside, err := filepath.Rel(workspace, absolute)
	if err != nil || !filepath.IsLocal(inside) {
		return file
	}
	return filepath.ToSlash(inside)
}

// GitHub's commands are lines, whose properties end at a comma or two colons.
var (
	messageEscapes  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func escapeMessage(s string) string { return messageEscapes.Replace(s) }

func escapeProperty(s string) string { return propertyEscapes.Replace(s) }

// mostRows bounds the number of tests in the table; GitHub accepts summaries of at most 1 MiB.
const mostRows = 500

// summary returns the table for the page of the job, failed tests first.
func summary(r *Run) string {
	var text strings.Builder
	c := r.Counts()
	verdict := "passed"
	if c.Failed > 0 {
		verdict = "failed"
	}
	fmt.Fprintf(&text, "### operator-lab test: %s\n\n", verdict)
	fmt.Fprintf(&text, "%d passed, %d failed, %d skipped", c.Passed, c.Failed, c.Skipped)
	if c.NotRun > 0 {
		fmt.Fprintf(&text, ", %d not run", c.NotRun)
	}
	fmt.Fprintf(&text, " in %s%s\n\n", seconds(took(r.Started, r.Ended)), r.seed())
	rows := append(withStatus(r, Failed), withStatus(r, Passed, Skipped, NotRun)...)
	if len(rows) == 0 {
		return text.String()
	}
	text.WriteString("| | Test | Time | |\n|---|---|---:|---|\n")
	for _, t := range rows[:min(mostRows, len(rows))] {
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", t.Status(), cell(t.Name), seconds(took(t.Started, t.Ended)), cell(why(t)))
	}
	if left := len(rows) - mostRows; left > 0 {
		fmt.Fprintf(&text, "\n…and %s more.\n", counted(left, "test"))
	}
	text.WriteString("\n")
	return text.String()
}

func withStatus(r *Run, statuses ...Status) []*Test {
	var tests []*Test
	for _, t := range r.Tests {
		for _, s := range statuses {
			if t.Status() == s {
				tests = append(tests, t)
			}
		}
	}
	return tests
}

// why returns the first failure of a test, or the reason why it was skipped.
func why(t *Test) string {
	for s, o := range t.FailedOperations() {
		first, _, _ := strings.Cut(o.Failure.Message, "\n")
		return s.Name + ": " + first
	}
	for _, f := range t.Findings {
		return "oracle " + f.Oracle + ": " + f.Message
	}
	return t.SkipReason
}

// markdownEscapes makes a text literal in a table.
var markdownEscapes = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "&#64;", "#", "&#35;",
	`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "~", `\~`,
)

// mostCell bounds the number of characters of a reason in the table.
const mostCell = 200

func cell(s string) string {
	s = clean(s)
	if r := []rune(s); len(r) > mostCell {
		s = string(r[:mostCell]) + "…"
	}
	return markdownEscapes.Replace(s)
}
