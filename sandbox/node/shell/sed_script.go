package shell

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

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
