package shell

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// editor is a sed at work: it changes a text line by line, as a script says.
type editor struct {
	out    io.Writer
	quiet  bool
	script []*instruction
	// line is the number of the current line.
	line int
	quit bool
}

// instruction is one command of a script, with the lines for which it is meant.
type instruction struct {
	from, to *lineAddress
	inRange  bool // for from and to
	not      bool
	name     byte

	expression   *regexp.Regexp
	replacement  []piece
	which        int // the number of the match that is replaced
	all, printed bool
	text         string // of a, i, c
	from1, to1   []rune // of y
}

// lineAddress is a line by its number, by an expression, or the last one.
type lineAddress struct {
	number     int
	last       bool
	expression *regexp.Regexp
}

// piece is a part of a replacement: a text, or a group of the expression.
type piece struct {
	text  string
	group int // -1: text
}

// sed edits lines. It knows the addresses N, $, /RE/ and pairs of them, ! and the commands s d p q = y a i c.
func sed(p *process, argv []string, s streams) int {
	o, err := parse(argv, "n,quiet,silent e,expression: E,regexp-extended r i,in-place")
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	scripts := o.values["e"]
	if len(scripts) == 0 {
		if len(o.names) == 0 {
			return problem(s, argv, "usage: sed [-nEi] [-e] SCRIPT [FILE]...")
		}
		scripts, o.names = o.names[:1], o.names[1:]
	}
	reader := scriptReader{text: strings.Join(scripts, "\n"), extended: o.has("E", "r")}
	script, err := reader.read()
	if err != nil {
		return problem(s, argv, "%v", err)
	}
	e := &editor{out: s.out, quiet: o.has("n"), script: script}
	if !o.has("i") {
		return e.editAll(p, argv, o.names, s)
	}
	code := 0
	for _, name := range o.names { // each by itself
		in := &editor{quiet: e.quiet, script: script}
		var text strings.Builder
		in.out = &text
		if wrong := in.editAll(p, argv, []string{name}, s); wrong != 0 {
			code = wrong
			continue
		}
		f, err := p.container.Files.Create(p.path(name), false)
		if err == nil {
			_, err = io.WriteString(f, text.String())
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			code = problem(s, argv, "%s: %s", name, why(err))
		}
		for _, i := range script {
			i.inRange = false
		}
	}
	return code
}

// editAll edits files as one text: its last line is that of the last file.
func (e *editor) editAll(p *process, argv, names []string, s streams) int {
	var before *string // is edited when it is known whether it is the last
	size := 0
	code := p.inputs(argv, names, s, func(_ string, in io.Reader) error {
		return p.lines(in, func(line string) (bool, error) {
			if size += len(line) + 1; size > maxSorted {
				if _, limited := e.out.(*strings.Builder); limited {
					return false, errTooLong
				}
			}
			var err error
			if before != nil {
				err = e.edit(*before, false)
			}
			before = &line
			return !e.quit, err
		})
	})
	if before != nil && !e.quit && p.ctx.Err() == nil {
		if err := e.edit(*before, true); err != nil {
			return max(code, problem(s, argv, "%s", why(err)))
		}
	}
	return code
}

// edit runs the script for a line.
func (e *editor) edit(line string, last bool) error {
	if e.quit {
		return nil
	}
	e.line++
	out := bufio.NewWriter(e.out)
	var after strings.Builder
	keep := true
	for _, i := range e.script {
		if !i.meant(e.line, line, last) {
			continue
		}
		switch i.name {
		case 's':
			changed, did, err := i.substitute(line)
			if err != nil {
				return err
			}
			line = changed
			if did && i.printed {
				fmt.Fprintln(out, line)
			}
		case 'y':
			line = i.translate(line)
		case 'p':
			fmt.Fprintln(out, line)
		case '=':
			fmt.Fprintln(out, e.line)
		case 'i':
			fmt.Fprintln(out, i.text)
		case 'a':
			after.WriteString(i.text + "\n")
		case 'c':
			if !i.inRange {
				fmt.Fprintln(out, i.text)
			}
			keep = false
		case 'd':
			keep = false
		case 'q':
			e.quit = true
		}
		if !keep || e.quit {
			break
		}
	}
	if keep && !e.quiet {
		fmt.Fprintln(out, line)
	}
	_, _ = out.WriteString(after.String()) // Flush returns its error
	return out.Flush()
}

// meant reports whether an instruction is for a line.
func (i *instruction) meant(number int, line string, last bool) bool {
	return i.addressed(number, line, last) != i.not
}

func (i *instruction) addressed(number int, line string, last bool) bool {
	switch {
	case i.from == nil:
		return true
	case i.to == nil:
		return i.from.is(number, line, last)
	case i.inRange:
		i.inRange = !i.to.is(number, line, last) && (i.to.number == 0 || number < i.to.number)
		return i.to.number == 0 || number <= i.to.number
	case i.from.is(number, line, last):
		i.inRange = !last && (i.to.number == 0 || number < i.to.number)
		return true
	}
	return false
}

func (a *lineAddress) is(number int, line string, last bool) bool {
	switch {
	case a.expression != nil:
		return a.expression.MatchString(line)
	case a.last:
		return last
	}
	return number == a.number
}

// substitute replaces what the expression matches.
func (i *instruction) substitute(line string) (changed string, did bool, err error) {
	var text strings.Builder
	at := 0
	for count, m := range i.expression.FindAllStringSubmatchIndex(line, -1) {
		if count+1 < i.which || count+1 > i.which && !i.all {
			continue
		}
		text.WriteString(line[at:m[0]])
		for _, p := range i.replacement {
			switch {
			case p.group < 0:
				text.WriteString(p.text)
			case m[2*p.group] >= 0:
				text.WriteString(line[m[2*p.group]:m[2*p.group+1]])
			}
		}
		if text.Len() > maxText {
			return "", false, errTooLong
		}
		at, did = m[1], true
	}
	text.WriteString(line[at:])
	return text.String(), did, nil
}

func (i *instruction) translate(line string) string {
	return strings.Map(func(r rune) rune {
		for at, from := range i.from1 {
			if from == r {
				return i.to1[at]
			}
		}
		return r
	}, line)
}
