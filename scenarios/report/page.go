package report

import (
	"fmt"
	"regexp"
	"strings"
)

// page collects lines to write them at once.
type page struct {
	strings.Builder
	// indent precedes each line that is not empty.
	indent string
}

func (p *page) line(format string, args ...any) {
	if line := strings.TrimRight(p.indent+fmt.Sprintf(format, args...), " "); line != "" {
		p.WriteString(line)
	}
	p.WriteByte('\n')
}

// below calls a function while lines are indented further.
func (p *page) below(indent string, lines func()) {
	before := p.indent
	p.indent += indent
	lines()
	p.indent = before
}

// output adds the output of a program, each line marked as such. If it has more than most lines, the middle is left
// out; 0 is no limit.
func (p *page) output(text string, most int) {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	left := 0
	if most > 0 && len(lines) > most {
		left = len(lines) - most
		head := most / 3 // the end usually shows what went wrong
		lines = append(lines[:head:head], lines[head+left:]...)
		for _, line := range lines[:head] {
			p.line("| %s", clean(line))
		}
		p.line("| … %s left out; -v shows all", counted(left, "line"))
		lines = lines[head:]
	}
	for _, line := range lines {
		p.line("| %s", clean(line))
	}
}

// escapes matches terminal control sequences: colours, titles and cursor movements.
var escapes = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[ -/]*[0-~])`)

// clean makes one line of an untrusted text, safe for a terminal.
func clean(s string) string {
	s = escapes.ReplaceAllString(strings.ToValidUTF8(s, "?"), "")
	s = strings.TrimRight(s, "\r\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r':
			return ' '
		case r < 0x20, r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return '?' // including characters that reverse the writing direction
		}
		return r
	}, s)
}

// paint colours words if it is true.
type paint bool

func (p paint) red(s string) string    { return p.with("31", s) }
func (p paint) green(s string) string  { return p.with("32", s) }
func (p paint) yellow(s string) string { return p.with("33", s) }
func (p paint) bold(s string) string   { return p.with("1", s) }
func (p paint) dim(s string) string    { return p.with("2", s) }

func (p paint) with(code, s string) string {
	if !p || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
