package report

import (
	"cmp"
	"fmt"
	"strings"
)

// The maximum number of lines shown for a failure, which should fit on a few screens. The JSON has all.
const (
	mostOutput = 60
	mostDiff   = 80
)

// failed writes all details of a failed test.
func (x *Text) failed(p *page, t *Test) {
	p.below("      ", func() {
		where := x.place(cmp.Or(t.File, t.Folder), t.Line)
		if t.Namespace != "" {
			where += "  in namespace " + clean(t.Namespace)
		}
		p.line("%s", where)
		if t.Description != "" {
			p.line("%s", clean(t.Description))
		}
		for _, s := range t.Steps {
			x.step(p, s)
		}
		for _, f := range t.Findings {
			p.line("%s  oracle %s: %s", x.paint.red("FAIL"), clean(f.Oracle), clean(f.Message))
			p.below("      ", func() {
				for _, line := range f.Details {
					p.line("%s", clean(line))
				}
			})
		}
		if t.Journal != "" {
			p.line("%-10s %s", "journal", clean(t.Journal))
			p.line("%-10s %s", "replay it", x.o.Replay(t.Journal))
		}
	})
}

func (x *Text) step(p *page, s *Step) {
	if len(s.Operations) == 0 {
		return // such as a preparation that had nothing to do
	}
	p.line("%s", x.paint.bold(stepLine(s)))
	width := 0
	for _, o := range s.Operations {
		width = min(max(width, len([]rune(subject(o)))), widest)
	}
	p.below("  ", func() {
		for _, o := range s.Operations {
			x.operation(p, o, width)
			// The output of a failed operation explains the failure; that of a passed one is not needed, except for
			// what catch collected after the failure.
			if o.Failure != nil || o.Phase == Catch {
				p.below("      ", func() { p.output(o.Output, mostOutput) })
			}
		}
	})
}

func stepLine(s *Step) string {
	if s.Description != "" {
		return clean(s.Name) + ": " + clean(s.Description)
	}
	return clean(s.Name)
}

// subject returns what an operation concerns.
func subject(o *Operation) string {
	if o.Description != "" {
		return clean(o.Name + " (" + o.Description + ")")
	}
	return clean(o.Name)
}

// operation writes a line, with what the operation concerns in a column of the given width, and details if it failed.
func (x *Text) operation(p *page, o *Operation, width int) {
	what := o.Type
	if o.Phase != "" && o.Phase != Try {
		what = string(o.Phase) + " " + o.Type
	}
	verdict, where := x.paint.green("pass"), ""
	switch o.Status() {
	case Failed:
		verdict, where = x.paint.red("FAIL"), "  "+x.place(o.File, o.Line)
	case NotRun:
		verdict = x.paint.yellow("left")
	}
	p.line("%s  %-14s %-*s %7s%s", verdict, what, width, subject(o), seconds(took(o.Started, o.Ended)), where)
	if o.Failure != nil {
		p.below("      ", func() { x.failure(p, o.Failure) })
	}
}

func (x *Text) failure(p *page, f *Failure) {
	for line := range strings.SplitSeq(strings.TrimSpace(f.Message), "\n") {
		p.line("%s", x.paint.red(clean(line)))
	}
	if f.Hint != "" {
		p.line("hint: %s", clean(f.Hint))
	}
	if f.Object != "" {
		p.line("closest: %s%s", clean(f.Object), others(f.Others))
	}
	p.below("  ", func() {
		for _, d := range f.Differences {
			p.line("%s: %s", clean(d.Path), clean(d.Message))
		}
		x.diff(p, f.Diff)
	})
	for _, line := range f.Loop {
		p.line("%s", clean(line))
	}
}

func others(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 other differs more"
	}
	return fmt.Sprintf("; %d others differ more", n)
}

// diff writes a unified diff.
func (x *Text) diff(p *page, lines []string) {
	left := max(len(lines)-mostDiff, 0)
	for _, line := range lines[:len(lines)-left] {
		text := cleanIndented(line)
		switch {
		case strings.HasPrefix(line, "-"):
			text = x.paint.red(text)
		case strings.HasPrefix(line, "+"):
			text = x.paint.green(text)
		case strings.HasPrefix(line, "@@"):
			text = x.paint.dim(text)
		}
		p.line("%s", text)
	}
	if left > 0 {
		p.line("… %s left out", counted(left, "line"))
	}
}

// cleanIndented is like clean, but keeps the indentation of the line.
func cleanIndented(line string) string { return clean(strings.ReplaceAll(line, "\t", "    ")) }
