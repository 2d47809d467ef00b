package shell

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
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

// scriptReader reads a script.
type scriptReader struct {
	text     string
	extended bool
	previous *regexp.Regexp
}

// read returns the instructions of the script.
func (r *scriptReader) read() ([]*instruction, error) {
	var all []*instruction
	for {
		r.text = strings.TrimLeft(r.text, " \t\n;")
		if r.text == "" {
			return all, nil
		}
		if r.text[0] == '#' {
			_, r.text, _ = strings.Cut(r.text, "\n")
			continue
		}
		i, err := r.instruction()
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
}

func (r *scriptReader) instruction() (*instruction, error) {
	i := &instruction{which: 1}
	var err error
	if i.from, err = r.address(); err != nil {
		return nil, err
	}
	if i.from != nil && strings.HasPrefix(r.text, ",") {
		r.text = strings.TrimLeft(r.text[1:], " ")
		if i.to, err = r.address(); err == nil && i.to == nil {
			err = errors.New("an address is missing after ','")
		}
		if err != nil {
			return nil, err
		}
	}
	for r.text = strings.TrimLeft(r.text, " "); strings.HasPrefix(r.text, "!"); r.text = strings.TrimLeft(r.text[1:], " ") {
		i.not = true
	}
	if r.text == "" {
		return nil, errors.New("a command is missing")
	}
	i.name, r.text = r.text[0], r.text[1:]
	switch i.name {
	case 'd', 'p', 'q', '=':
	case 's':
		err = r.substitution(i)
	case 'y':
		err = r.translation(i)
	case 'a', 'i', 'c':
		r.text = strings.TrimLeft(r.text, " ")
		r.text = strings.TrimPrefix(strings.TrimPrefix(r.text, `\`), "\n")
		i.text, r.text, _ = strings.Cut(r.text, "\n")
		return i, nil
	default:
		return nil, unsupported("the command " + strconv.QuoteRune(rune(i.name)) + " of sed")
	}
	if err != nil {
		return nil, err
	}
	r.text = strings.TrimLeft(r.text, " ")
	if r.text != "" && strings.IndexByte(";\n#", r.text[0]) < 0 {
		return nil, fmt.Errorf("unexpected '%s' after a command", r.text[:1])
	}
	return i, nil
}

// address reads an address; nil: there is none.
func (r *scriptReader) address() (*lineAddress, error) {
	switch {
	case r.text == "":
	case r.text[0] == '$':
		r.text = r.text[1:]
		return &lineAddress{last: true}, nil
	case r.text[0] == '/', len(r.text) > 1 && r.text[0] == '\\':
		r.text = strings.TrimPrefix(r.text, `\`)
		text, err := r.part(r.text[0])
		if err != nil {
			return nil, err
		}
		expression, err := r.compile(text, "")
		return &lineAddress{expression: expression}, err
	case r.text[0] >= '0' && r.text[0] <= '9':
		end := strings.IndexFunc(r.text, func(c rune) bool { return c < '0' || c > '9' })
		if end < 0 {
			end = len(r.text)
		}
		n, err := strconv.Atoi(r.text[:end])
		if r.text = r.text[end:]; err != nil || n == 0 {
			return nil, errors.New("a line's number is not valid")
		}
		return &lineAddress{number: n}, nil
	}
	return nil, nil
}

// part reads from one delimiter to the next, and leaves that. In the part an escaped delimiter stands for itself.
func (r *scriptReader) part(delimiter byte) (string, error) {
	var text strings.Builder
	brackets := false
	for i := 1; i < len(r.text); i++ {
		c := r.text[i]
		switch {
		case c == '\\' && i+1 < len(r.text):
			i++
			if r.text[i] != delimiter {
				text.WriteByte('\\')
			}
			text.WriteByte(r.text[i])
			continue
		case c == delimiter && !brackets:
			r.text = r.text[i+1:]
			return text.String(), nil
		case c == '[':
			brackets = true
		case c == ']':
			brackets = false
		}
		text.WriteByte(c)
	}
	return "", fmt.Errorf("'%c' is missing at the end", delimiter)
}

// parts reads the two parts of s and y.
func (r *scriptReader) parts() (first, second string, err error) {
	if r.text == "" || strings.IndexByte("\\\n", r.text[0]) >= 0 || r.text[0] >= 0x80 {
		return "", "", errors.New("a delimiter is missing")
	}
	delimiter := r.text[0]
	if first, err = r.part(delimiter); err != nil {
		return "", "", err
	}
	r.text = string(delimiter) + r.text
	second, err = r.replacement(delimiter)
	return first, second, err
}

// replacement reads like part, but brackets mean nothing, and an escaped delimiter stays escaped.
func (r *scriptReader) replacement(delimiter byte) (string, error) {
	for i := 1; i < len(r.text); i++ {
		switch r.text[i] {
		case '\\':
			i++
		case delimiter:
			text := r.text[1:i]
			r.text = r.text[i+1:]
			return text, nil
		}
	}
	return "", fmt.Errorf("'%c' is missing at the end", delimiter)
}

func (r *scriptReader) substitution(i *instruction) error {
	expression, replacement, err := r.parts()
	if err != nil {
		return err
	}
	mode := ""
	for ; r.text != "" && strings.IndexByte("gpiI0123456789", r.text[0]) >= 0; r.text = r.text[1:] {
		switch c := r.text[0]; c {
		case 'g':
			i.all = true
		case 'p':
			i.printed = true
		case 'i', 'I':
			mode = "(?i)"
		case '0':
			return errors.New("the number of a match must not begin with 0")
		default:
			i.which = int(c - '0')
		}
	}
	if i.expression, err = r.compile(expression, mode); err != nil {
		return err
	}
	i.replacement, err = pieces(replacement, i.expression.NumSubexp())
	return err
}

// pieces reads a replacement: & is all that was matched, \1 to \9 are groups of it.
func pieces(text string, groups int) ([]piece, error) {
	var all []piece
	plain := func(text string) { all = append(all, piece{text, -1}) }
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '&':
			all = append(all, piece{group: 0})
		case c != '\\' || i+1 == len(text):
			plain(text[i : i+1])
		default:
			i++
			switch c := text[i]; {
			case c >= '0' && c <= '9':
				if int(c-'0') > groups {
					return nil, fmt.Errorf("the expression has no group %c", c)
				}
				all = append(all, piece{group: int(c - '0')})
			case c == 'n':
				plain("\n")
			case c == 't':
				plain("\t")
			default:
				plain(text[i : i+1])
			}
		}
	}
	return all, nil
}

func (r *scriptReader) translation(i *instruction) error {
	from, to, err := r.parts()
	if err != nil {
		return err
	}
	i.from1, i.to1 = []rune(unescape(from)), []rune(unescape(to))
	if len(i.from1) != len(i.to1) {
		return errors.New("the two parts of y are not of the same length")
	}
	return nil
}

// compile compiles an expression; an empty one is the one before it.
func (r *scriptReader) compile(text, mode string) (*regexp.Regexp, error) {
	if text == "" && r.previous != nil {
		return r.previous, nil
	}
	if !r.extended {
		text = basic(text)
	}
	expression, err := compile(mode + text)
	if err != nil {
		return nil, fmt.Errorf("bad regex '%s'", text)
	}
	r.previous = expression
	return expression, nil
}

// compile compiles an extended regular expression; of several matches the longest counts.
func compile(text string) (*regexp.Regexp, error) {
	if len(text) > maxScript {
		return nil, errTooLong
	}
	expression, err := regexp.Compile(text)
	if err == nil {
		expression.Longest()
	}
	return expression, err
}

// basic makes an extended regular expression of a basic one, in which brackets, bars and repetitions are escaped, and
// those that are not stand for themselves.
func basic(text string) string {
	var all strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '[': // as it is, up to its end
			end := i + 1
			for end < len(text) && (text[end] == '^' && end == i+1 || text[end] == ']' && (end == i+1 || end == i+2 && text[i+1] == '^')) {
				end++
			}
			for end < len(text) && text[end] != ']' {
				if strings.HasPrefix(text[end:], "[:") {
					if length := strings.Index(text[end:], ":]"); length > 0 {
						end += length + 1
					}
				}
				end++
			}
			all.WriteString(strings.ReplaceAll(text[i:min(end+1, len(text))], `\`, `\\`))
			i = end
		case strings.IndexByte("(){}+?|", c) >= 0:
			all.WriteByte('\\')
			all.WriteByte(c)
		case c == '*' && (i == 0 || i == 1 && text[0] == '^' || i > 1 && text[i-2] == '\\' && strings.IndexByte("(|", text[i-1]) >= 0):
			all.WriteString(`\*`)
		case c != '\\' || i+1 == len(text):
			all.WriteByte(c)
		default:
			i++
			if strings.IndexByte("(){}+?|", text[i]) < 0 {
				all.WriteByte('\\')
			}
			all.WriteByte(text[i])
		}
	}
	return all.String()
}
