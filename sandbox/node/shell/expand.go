package shell

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// maxText is how long a variable or a command's output in one may be.
const maxText = 1 << 20

var errTooLong = errors.New("a text is longer than the lab's small shell takes")

// field is a word that grows.
type field struct {
	text strings.Builder
	// pattern is the text with everything quoted that was quoted.
	pattern strings.Builder
	// there: also an empty text is a word.
	there bool
	// globs: it may be a pattern.
	globs bool
}

func (f *field) add(text string, quoted bool) {
	f.text.WriteString(text)
	if quoted {
		f.there = true
		for i := range len(text) {
			if strings.IndexByte(`*?[\`, text[i]) >= 0 {
				f.pattern.WriteByte('\\')
			}
			f.pattern.WriteByte(text[i])
		}
		return
	}
	f.there = f.there || text != ""
	f.globs = f.globs || strings.ContainsAny(text, "*?[")
	f.pattern.WriteString(text)
}

// fields makes of words what a command is given.
func (p *process) fields(words []word, io streams) ([]string, error) {
	var all []string
	for _, w := range words {
		list, err := p.split(w, io)
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			all = append(all, p.glob(f)...)
		}
	}
	return all, nil
}

// split makes fields of a word: what variables stand for is split at spaces unless it is quoted.
func (p *process) split(w word, io streams) ([]*field, error) {
	var list []*field
	current := &field{}
	end := func() {
		if current.there {
			list = append(list, current)
		}
		current = &field{}
	}
	for i, one := range w {
		if one.variable == "@" && one.operator == "" && one.quoted { // "$@" is a word for each
			for j, argument := range p.arguments {
				if j > 0 {
					end()
				}
				current.add(argument, true)
			}
			continue
		}
		text, literal, err := p.value(one, io)
		if err != nil {
			return nil, err
		}
		if i == 0 && literal && !one.quoted {
			text = p.home(text)
		}
		if one.quoted || literal {
			if one.quoted && one.variable == "" && text == "" && len(w) > 1 && p.onlyArguments(w) {
				continue // "$@" of nothing is no word
			}
			current.add(text, one.quoted)
			continue
		}
		for len(text) > 0 {
			at := strings.IndexAny(text, " \t\n")
			if at < 0 {
				current.add(text, false)
				break
			}
			current.add(text[:at], false)
			end()
			text = text[at+1:]
		}
	}
	end()
	return list, nil
}

func (p *process) onlyArguments(w word) bool {
	return len(w) == 2 && w[1].variable == "@" && len(p.arguments) == 0
}

func (p *process) home(text string) string {
	if text != "~" && !strings.HasPrefix(text, "~/") {
		return text
	}
	if home := p.variables["HOME"]; home != "" {
		return home + text[1:]
	}
	return "/root" + text[1:]
}

// text makes one text of a word, without splitting it.
func (p *process) text(w word, io streams) (string, error) {
	var all strings.Builder
	for i, one := range w {
		text, literal, err := p.value(one, io)
		if err != nil {
			return "", err
		}
		if i == 0 && literal && !one.quoted {
			text = p.home(text)
		}
		if all.Len()+len(text) > maxText {
			return "", errTooLong
		}
		all.WriteString(text)
	}
	return all.String(), nil
}

// value is what a part stands for; literal: itself.
func (p *process) value(one part, io streams) (text string, literal bool, err error) {
	switch {
	case one.output != nil:
		text, err = p.output(one.output, io)
		return text, false, err
	case one.variable != "":
		text, err = p.variable(one, io)
		return text, false, err
	}
	return one.text, true, nil
}

// output is what a command writes, without the line ends behind it.
func (p *process) output(c command, io streams) (string, error) {
	var out limited
	io.out = &out
	inner := p.child(p.ctx)
	p.status = c.run(inner, io)
	if out.full {
		return "", errTooLong
	}
	return strings.TrimRight(out.text.String(), "\n"), nil
}

// limited keeps no more than maxText.
type limited struct {
	text strings.Builder
	full bool
}

func (l *limited) Write(b []byte) (int, error) {
	if l.text.Len()+len(b) > maxText {
		l.full = true
		return 0, errTooLong
	}
	return l.text.Write(b)
}

func (p *process) variable(one part, io streams) (string, error) {
	value, set := p.get(one.variable)
	some := set && (value != "" || !strings.HasPrefix(one.operator, ":"))
	switch strings.TrimPrefix(one.operator, ":") {
	case "#":
		return strconv.Itoa(len([]rune(value))), nil
	case "-":
		if !some {
			return p.text(one.argument, io)
		}
	case "=":
		if !some {
			text, err := p.text(one.argument, io)
			if err == nil && !isName(one.variable) {
				err = fmt.Errorf("$%s: cannot assign in this way", one.variable)
			}
			if err == nil {
				p.variables[one.variable] = text
			}
			return text, err
		}
	case "+":
		if !some {
			return "", nil
		}
		return p.text(one.argument, io)
	case "?":
		if !some {
			text, err := p.text(one.argument, io)
			if err == nil {
				if text == "" {
					text = "parameter not set"
				}
				p.ended = true
				err = fmt.Errorf("%s: %s", one.variable, text)
			}
			return "", err
		}
	}
	return value, nil
}

func (p *process) get(name string) (string, bool) {
	switch name {
	case "?":
		return strconv.Itoa(p.status), true
	case "$":
		return "7", true // any but that of the container's program
	case "#":
		return strconv.Itoa(len(p.arguments)), true
	case "@", "*":
		return strings.Join(p.arguments, " "), len(p.arguments) > 0
	case "0":
		return p.name, true
	case "PWD":
		return p.dir, true
	case "!", "-":
		return "", false
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n > len(p.arguments) {
			return "", false
		}
		return p.arguments[n-1], true
	}
	value, ok := p.variables[name]
	return value, ok
}

// glob finds the files that a pattern means; a pattern that means none stays as it is.
func (p *process) glob(f *field) []string {
	text := f.text.String()
	if !f.globs {
		return []string{text}
	}
	pattern := f.pattern.String()
	absolute := strings.HasPrefix(pattern, "/")
	found := []string{""}
	if absolute {
		found = []string{"/"}
	}
	for element := range strings.SplitSeq(strings.Trim(pattern, "/"), "/") {
		if element == "" {
			continue
		}
		var next []string
		for _, dir := range found {
			next = append(next, p.entries(dir, element)...)
			if len(next) > maxText/64 {
				return []string{text}
			}
		}
		found = next
	}
	if len(found) == 0 || found[0] == "" || found[0] == "/" {
		return []string{text}
	}
	return found
}

// entries are those of a directory that fit one element of a pattern.
func (p *process) entries(dir, element string) []string {
	if !strings.ContainsAny(element, "*?[") {
		name := path.Join(dir, strings.ReplaceAll(element, `\`, ""))
		if _, err := p.world.Files.Stat(p.path(name)); err != nil {
			return nil
		}
		return []string{name}
	}
	list, err := p.world.Files.ReadDir(p.path(dir))
	if err != nil {
		return nil
	}
	var found []string
	for _, info := range list {
		if strings.HasPrefix(info.Name, ".") && !strings.HasPrefix(element, ".") {
			continue
		}
		if ok, err := path.Match(element, info.Name); ok && err == nil {
			found = append(found, path.Join(dir, info.Name))
		}
	}
	return found
}
