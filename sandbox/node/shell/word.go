package shell

import "strings"

// word reads the next word; nil if there is none.
func (p *parser) word() (word, error) {
	p.blank()
	var w word
	for p.at < len(p.text) {
		b := p.text[p.at]
		if isOperator(b) || b == ' ' || b == '\t' || b == '\r' {
			break
		}
		parts, err := p.parts(b)
		if err != nil {
			return nil, err
		}
		w = append(w, parts...)
	}
	return w, nil
}

// parts reads the next parts of a word outside of quotes.
func (p *parser) parts(b byte) ([]part, error) {
	switch b {
	case '\'':
		end := strings.IndexByte(p.text[p.at+1:], '\'')
		if end < 0 {
			return nil, syntaxError("syntax error: unterminated quoted string")
		}
		text := p.text[p.at+1 : p.at+1+end]
		p.at += end + 2
		return []part{{text: text, quoted: true}}, nil
	case '"':
		p.at++
		return p.doubleQuoted()
	case '$', '`':
		one, err := p.dollar(false)
		return []part{one}, err
	case '\\':
		p.at++
		if p.at == len(p.text) {
			return []part{{text: `\`, quoted: true}}, nil
		}
		p.at++
		if p.text[p.at-1] == '\n' {
			return nil, nil
		}
		return []part{{text: p.text[p.at-1 : p.at], quoted: true}}, nil
	}
	start := p.at
	for p.at < len(p.text) && strings.IndexByte("'\"$`\\ \t\r", p.text[p.at]) < 0 && !isOperator(p.text[p.at]) {
		p.at++
	}
	return []part{{text: p.text[start:p.at]}}, nil
}

// doubleQuoted reads up to the closing quote.
func (p *parser) doubleQuoted() ([]part, error) {
	parts := []part{{quoted: true}} // "" is a word, too
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, part{text: text.String(), quoted: true})
			text.Reset()
		}
	}
	for p.at < len(p.text) {
		switch b := p.text[p.at]; {
		case b == '"':
			p.at++
			flush()
			return parts, nil
		case b == '$' || b == '`':
			flush()
			one, err := p.dollar(true)
			if err != nil {
				return nil, err
			}
			parts = append(parts, one)
		case b == '\\' && p.at+1 < len(p.text) && strings.IndexByte("$`\"\\\n", p.text[p.at+1]) >= 0:
			if p.text[p.at+1] != '\n' {
				text.WriteByte(p.text[p.at+1])
			}
			p.at += 2
		default:
			text.WriteByte(b)
			p.at++
		}
	}
	return nil, syntaxError("syntax error: unterminated quoted string")
}

// dollar reads a variable, or a command whose output it stands for.
func (p *parser) dollar(quoted bool) (part, error) {
	rest := p.text[p.at:]
	switch {
	case rest[0] == '`':
		return p.backquoted(quoted)
	case strings.HasPrefix(rest, "$(("):
		return part{}, unsupported("arithmetic, $((…)),")
	case strings.HasPrefix(rest, "$("):
		p.at += 2
		c, err := p.list()
		if err != nil {
			return part{}, err
		}
		return part{output: c, quoted: quoted}, p.expect(")")
	case strings.HasPrefix(rest, "${"):
		p.at += 2
		return p.braced(quoted)
	}
	p.at++
	name := p.name()
	if name == "" {
		return part{text: "$", quoted: true}, nil
	}
	return part{variable: name, quoted: quoted}, nil
}

// name reads the name of a variable or of a parameter, such as ? or 1.
func (p *parser) name() string {
	start := p.at
	for p.at < len(p.text) && isNameByte(p.text[p.at], p.at > start) {
		p.at++
	}
	if p.at == start && p.at < len(p.text) && strings.IndexByte("?#@*$!-0123456789", p.text[p.at]) >= 0 {
		p.at++
	}
	return p.text[start:p.at]
}

func (p *parser) backquoted(quoted bool) (part, error) {
	end := strings.IndexByte(p.text[p.at+1:], '`')
	if end < 0 {
		return part{}, syntaxError("syntax error: unterminated `")
	}
	inner := &parser{text: p.text[p.at+1 : p.at+1+end], depth: p.depth}
	p.at += end + 2
	c, err := inner.list()
	if err == nil && inner.peek() != "" {
		err = unexpected(inner.describe())
	}
	return part{output: c, quoted: quoted}, err
}

// braced reads what follows ${.
func (p *parser) braced(quoted bool) (part, error) {
	if err := p.deeper(); err != nil {
		return part{}, err
	}
	defer func() { p.depth-- }()
	one := part{quoted: quoted}
	if strings.HasPrefix(p.text[p.at:], "#") && !strings.HasPrefix(p.text[p.at:], "#}") {
		one.operator = "#"
		p.at++
	}
	one.variable = p.name()
	if one.variable == "" {
		return part{}, syntaxError("syntax error: bad substitution")
	}
	if p.at < len(p.text) && p.text[p.at] == '}' {
		p.at++
		return one, nil
	}
	for _, operator := range []string{":-", ":=", ":+", ":?", "-", "=", "+", "?"} {
		if one.operator == "" && strings.HasPrefix(p.text[p.at:], operator) {
			one.operator = operator
			p.at += len(operator)
			var err error
			one.argument, err = p.argument()
			return one, err
		}
	}
	return part{}, unsupported("this ${" + one.variable + "…}")
}

// argument reads up to the closing brace.
func (p *parser) argument() (word, error) {
	w := word{}
	for p.at < len(p.text) {
		switch b := p.text[p.at]; {
		case b == '}':
			p.at++
			return w, nil
		case strings.IndexByte("'\"$`\\", b) >= 0:
			parts, err := p.parts(b)
			if err != nil {
				return nil, err
			}
			w = append(w, parts...)
		default:
			start := p.at
			for p.at < len(p.text) && strings.IndexByte("'\"$`\\}", p.text[p.at]) < 0 {
				p.at++
			}
			w = append(w, part{text: p.text[start:p.at]})
		}
	}
	return nil, syntaxError("syntax error: unterminated ${")
}
