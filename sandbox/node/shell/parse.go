package shell

import (
	"fmt"
	"slices"
	"strings"
)

// maxDepth is how deeply commands may lie in each other.
const maxDepth = 64

// syntaxError is what is wrong with a script.
type syntaxError string

func (e syntaxError) Error() string { return string(e) }

func unexpected(what string) error {
	return syntaxError(fmt.Sprintf("syntax error: unexpected %s", what))
}

func unsupported(what string) error {
	return syntaxError(what + " is not supported by the lab's small shell")
}

// parse reads a script.
func parse(script string) (command, error) {
	if strings.ContainsRune(script, 0) {
		return nil, syntaxError("syntax error: a script has no null bytes")
	}
	p := &parser{text: script}
	c, err := p.list()
	if err != nil {
		return nil, err
	}
	if rest := p.peek(); rest != "" {
		return nil, unexpected(quote(rest))
	}
	return c, nil
}

func quote(s string) string {
	if s == "\n" {
		return "newline"
	}
	return `"` + s + `"`
}

type parser struct {
	text  string
	at    int
	depth int
}

func (p *parser) deeper() error {
	if p.depth++; p.depth > maxDepth {
		return syntaxError("syntax error: too deep")
	}
	return nil
}

// blank skips spaces, comments, and lines that go on.
func (p *parser) blank() {
	for p.at < len(p.text) {
		switch rest := p.text[p.at:]; {
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r':
			p.at++
		case strings.HasPrefix(rest, "\\\n"):
			p.at += 2
		case rest[0] == '#':
			for p.at < len(p.text) && p.text[p.at] != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

// operators, the longest first.
var operators = []string{"<<<", "<<", "&&", "||", ";;", "&>", ">>", ">&", "<&", "\n", ";", "&", "|", "(", ")", "<", ">"}

func isOperator(b byte) bool { return strings.IndexByte("\n;&|()<>", b) >= 0 }

// peek is the next operator or the plain text of the next word; empty at the end.
func (p *parser) peek() string {
	p.blank()
	rest := p.text[p.at:]
	for _, o := range operators {
		if strings.HasPrefix(rest, o) {
			return o
		}
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r == ' ' || r == '\t' || r == '\r' || r < 0x80 && isOperator(byte(r)) })
	if end < 0 {
		end = len(rest)
	}
	return rest[:end]
}

// take takes what is next, if it is that.
func (p *parser) take(token string) bool {
	if p.peek() != token {
		return false
	}
	p.at += len(token)
	return true
}

func (p *parser) newlines() {
	for p.take("\n") {
	}
}

// closing words end a list.
var closing = []string{"", ")", "}", "then", "else", "elif", "fi", "do", "done", ";;", "esac"}

// list reads commands up to a closing word.
func (p *parser) list() (command, error) {
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	var all sequence
	for {
		p.newlines()
		if slices.Contains(closing, p.peek()) {
			return all, nil
		}
		c, err := p.chain()
		if err != nil {
			return nil, err
		}
		all = append(all, c)
		switch {
		case p.take(";"), p.take("\n"):
		case p.peek() == "&":
			return nil, unsupported("a background job (&)")
		case slices.Contains(closing, p.peek()):
		default:
			return nil, unexpected(quote(p.peek()))
		}
	}
}

// chain reads pipelines with && and || between them.
func (p *parser) chain() (command, error) {
	first, err := p.pipeline()
	if err != nil {
		return nil, err
	}
	for {
		and := p.take("&&")
		if !and && !p.take("||") {
			return first, nil
		}
		p.newlines()
		second, err := p.pipeline()
		if err != nil {
			return nil, err
		}
		if and {
			first = both{first, second}
		} else {
			first = either{first, second}
		}
	}
}

func (p *parser) pipeline() (command, error) {
	line := pipeline{}
	for p.take("!") {
		line.not = !line.not
	}
	for {
		c, err := p.command()
		if err != nil {
			return nil, err
		}
		line.commands = append(line.commands, c)
		if !p.take("|") {
			break
		}
		p.newlines()
	}
	if len(line.commands) == 1 && !line.not {
		return line.commands[0], nil
	}
	return line, nil
}

func (p *parser) command() (command, error) {
	switch next := p.peek(); next {
	case "(":
		p.take("(")
		return p.group(true, ")")
	case "{":
		p.take("{")
		return p.group(false, "}")
	case "if":
		p.take("if")
		return p.redirected(p.conditional())
	case "while", "until":
		p.take(next)
		return p.redirected(p.loop(next == "until"))
	case "for":
		p.take("for")
		return p.redirected(p.iteration())
	case "case", "function", "select", "[[":
		return nil, unsupported(next)
	}
	return p.simple()
}

func (p *parser) group(subshell bool, end string) (command, error) {
	body, err := p.body()
	if err != nil {
		return nil, err
	}
	if err := p.expect(end); err != nil {
		return nil, err
	}
	redirections, err := p.redirections()
	return group{body, subshell, redirections}, err
}

// body is a list with something in it.
func (p *parser) body() (command, error) {
	body, err := p.list()
	if err == nil && len(body.(sequence)) == 0 {
		err = unexpected(p.describe())
	}
	return body, err
}

func (p *parser) describe() string {
	if next := p.peek(); next != "" {
		return quote(next)
	}
	return "end of file"
}

func (p *parser) expect(token string) error {
	if p.take(token) {
		return nil
	}
	return syntaxError(fmt.Sprintf("syntax error: unexpected %s (expecting %q)", p.describe(), token))
}

// redirected is a compound command with what follows it.
func (p *parser) redirected(c command, err error) (command, error) {
	if err != nil {
		return nil, err
	}
	redirections, err := p.redirections()
	if err != nil || len(redirections) == 0 {
		return c, err
	}
	return group{body: c, redirections: redirections}, nil
}

func (p *parser) redirections() ([]redirection, error) {
	var all []redirection
	for {
		r, err := p.redirection()
		if err != nil || r == nil {
			return all, err
		}
		all = append(all, *r)
	}
}

// conditional reads what follows if or elif.
func (p *parser) conditional() (command, error) {
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	test, err := p.body()
	if err != nil {
		return nil, err
	}
	if err := p.expect("then"); err != nil {
		return nil, err
	}
	then, err := p.body()
	if err != nil {
		return nil, err
	}
	c := conditional{test: test, then: then}
	switch {
	case p.take("elif"):
		c.otherwise, err = p.conditional()
		return c, err
	case p.take("else"):
		if c.otherwise, err = p.body(); err != nil {
			return nil, err
		}
	}
	return c, p.expect("fi")
}

func (p *parser) loop(until bool) (command, error) {
	test, err := p.body()
	if err != nil {
		return nil, err
	}
	body, err := p.do()
	return loop{test, body, until}, err
}

func (p *parser) do() (command, error) {
	if err := p.expect("do"); err != nil {
		return nil, err
	}
	body, err := p.body()
	if err != nil {
		return nil, err
	}
	return body, p.expect("done")
}

func (p *parser) iteration() (command, error) {
	c := iteration{name: p.peek()}
	if !isName(c.name) {
		return nil, unexpected(p.describe())
	}
	p.take(c.name)
	p.newlines()
	c.arguments = !p.take("in")
	for !c.arguments {
		w, err := p.word()
		if err != nil {
			return nil, err
		}
		if w == nil {
			break
		}
		c.words = append(c.words, w)
	}
	p.take(";")
	p.newlines()
	var err error
	c.body, err = p.do()
	return c, err
}

func (p *parser) simple() (command, error) {
	var c simple
	for {
		r, err := p.redirection()
		if err != nil {
			return nil, err
		}
		if r != nil {
			c.redirections = append(c.redirections, *r)
			continue
		}
		if len(c.words) == 0 {
			if name, ok := p.assigned(); ok {
				value, err := p.value()
				if err != nil {
					return nil, err
				}
				c.assignments = append(c.assignments, assignment{name, value})
				continue
			}
		}
		w, err := p.word()
		if err != nil {
			return nil, err
		}
		if w == nil {
			break
		}
		c.words = append(c.words, w)
	}
	switch {
	case len(c.words)+len(c.assignments)+len(c.redirections) == 0:
		return nil, unexpected(p.describe())
	case len(c.words) == 1 && p.peek() == "(":
		return nil, unsupported("a function")
	}
	return c, nil
}

// assigned takes the name and the sign of an assignment.
func (p *parser) assigned() (name string, ok bool) {
	p.blank()
	name, _, ok = strings.Cut(p.peek(), "=")
	if !ok || !isName(name) {
		return "", false
	}
	p.at += len(name) + 1
	return name, true
}

func (p *parser) value() (word, error) {
	if p.at == len(p.text) || isOperator(p.text[p.at]) || strings.IndexByte(" \t\r", p.text[p.at]) >= 0 {
		return word{}, nil
	}
	return p.word()
}

// redirection reads one, if it is next.
func (p *parser) redirection() (*redirection, error) {
	p.blank()
	rest := p.text[p.at:]
	r := &redirection{stream: -1}
	if len(rest) > 1 && rest[0] >= '0' && rest[0] <= '9' && (rest[1] == '<' || rest[1] == '>') {
		r.stream = int(rest[0] - '0')
		rest = rest[1:]
	}
	for _, kind := range []string{"<<", "<&", "&>", ">>", ">&", "<", ">"} {
		if strings.HasPrefix(rest, kind) {
			r.kind = kind
			break
		}
	}
	switch r.kind {
	case "":
		return nil, nil
	case "<<", "<&":
		return nil, unsupported(r.kind)
	}
	if r.stream > 2 {
		return nil, unsupported(fmt.Sprintf("the file descriptor %d", r.stream))
	}
	p.at = len(p.text) - len(rest) + len(r.kind)
	if r.stream < 0 {
		r.stream = 1
		if r.kind == "<" {
			r.stream = 0
		}
	}
	if r.kind == "&>" {
		r.stream, r.kind = 3, ">"
	}
	if strings.HasPrefix(p.text[p.at:], "|") { // >| is > here
		p.at++
	}
	w, err := p.word()
	if err != nil {
		return nil, err
	}
	if w == nil {
		return nil, unexpected(p.describe())
	}
	r.target = w
	return r, nil
}

func isName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i], i > 0) {
			return false
		}
	}
	return s != ""
}

func isNameByte(b byte, digits bool) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || digits && b >= '0' && b <= '9'
}
