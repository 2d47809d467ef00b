package format

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/jmespath-community/go-jmespath/pkg/parsing"
	"github.com/kyverno/kyverno-json/pkg/core/expression"
	"go.yaml.in/yaml/v3"
)

var (
	escaped     = regexp.MustCompile(`^\\(.+)\\$`)
	parentheses = regexp.MustCompile(`^\((?:(\w+);)?(.+)\)$`)
)

// Parse splits an expression into its compiler and its statement. It reports false for a plain string: the statement is
// then the string, without the backslashes that escape it. The compiler is empty if the expression names none.
func (e Expression) Parse() (compiler Compiler, statement string, ok bool) {
	s := string(e)
	if m := escaped.FindStringSubmatch(s); m != nil {
		return "", m[1], false
	}
	m := parentheses.FindStringSubmatch(s)
	if m == nil {
		return "", s, false
	}
	switch c := Compiler(m[1]); c {
	case "", "default":
		return "", m[2], true
	case CompilerJP, CompilerCEL:
		return c, m[2], true
	}
	// Chainsaw takes the statement of a compiler it does not know for a text.
	return "", m[2], false
}

// literal returns the string if it is not an expression.
func (e Expression) literal() (string, bool) {
	_, statement, ok := e.Parse()
	return statement, !ok
}

// howToEscape is the hint for text in parentheses that does not parse.
const howToEscape = `what is in parentheses is an expression; if it is a text, write a backslash before and after it`

// hintFor returns the hint for a statement that does not parse.
func hintFor(wrong string) string {
	if strings.HasSuffix(wrong, "a number") {
		return "in an expression a number is written in backticks: `3`"
	}
	return howToEscape
}

// maxExpression is the maximum length of an expression: the parser recurses for each parenthesis.
const maxExpression = 64 << 10

// compile returns the syntax error of a statement; empty if there is none.
func compile(statement string) string {
	if len(statement) > maxExpression {
		return fmt.Sprintf("it is longer than %d KiB", maxExpression>>10)
	}
	if _, err := parsing.NewParser().Parse(statement); err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		text = tokens.Replace(strings.TrimPrefix(text, "SyntaxError: "))
		return strings.ToLower(text[:min(1, len(text))]) + text[min(1, len(text)):]
	}
	return ""
}

// tokens replaces the parser's names of tokens by plain words.
var tokens = strings.NewReplacer(
	"TOKRparen", ")", "TOKLparen", "(", "TOKRbracket", "]", "TOKLbracket", "[", "TOKRbrace", "}", "TOKLbrace", "{",
	"TOKComma", ",", "TOKGT", ">", "TOKLT", "<", "TOKColon", ":", "TOKDot", ".", "TOKUnquotedIdentifier", "a name", "TOKQuotedIdentifier", "a name",
	"TOKNumber", "a number", "TOKStringLiteral", "a text", "TOKJSONLiteral", "a literal", "TOKVarref", "a variable", "TOKEOF", "the end",
)

// scope is the state that is inherited from the surrounding object.
type scope struct {
	// compiler of expressions that name none; empty if it is not known.
	compiler Compiler
	// plain is set if resources are not templates.
	plain bool
}

// jmespath reports whether a compiler is JMESPath; an empty one is the scope's default.
func (s scope) jmespath(c Compiler) bool {
	return c == CompilerJP || c == "" && s.compiler == CompilerJP
}

// expression checks a string that may be an expression. Chainsaw parses those in its own fields when it loads them: the
// whole string with its parentheses, and always as JMESPath.
func (r *reader) expression(n *yaml.Node, s string) {
	m := parentheses.FindStringSubmatch(s)
	if m == nil || escaped.MatchString(s) {
		return
	}
	wrong := compile(s)
	if wrong == "" {
		return
	}
	hint := hintFor(wrong)
	if m[1] != "" {
		hint = "Chainsaw takes no prefix in this field, and only JMESPath"
	}
	r.problem(n, hint, "%s is not an expression: %s", shorten(s), wrong)
}

// template returns a function that checks the strings of a template.
func (r *reader) template(in scope) func(*yaml.Node, string, bool) {
	return func(n *yaml.Node, s string, key bool) {
		if key {
			return
		}
		c, statement, ok := Expression(s).Parse()
		if !ok || !in.jmespath(c) {
			return
		}
		if wrong := compile(statement); wrong != "" {
			r.problem(n, hintFor(wrong), "%s is not an expression: %s", shorten(s), wrong)
		}
	}
}

// tree returns a function that checks the strings and keys of an assertion tree.
func (r *reader) tree(in scope) func(*yaml.Node, string, bool) {
	return func(n *yaml.Node, s string, key bool) {
		e := expression.Parse(s)
		if !key && e.Foreach {
			r.problem(n, `only keys can begin with "~.", which looks at every element`, "%s is a value and not a key", shorten(s))
			return
		}
		if !key && e.Binding != "" {
			r.problem(n, `only keys can end with "->" and a name, which keeps what was found`, "%s is a value and not a key", shorten(s))
			return
		}
		c := Compiler(e.Compiler)
		switch c {
		case "default":
			c = ""
		case CompilerJP, CompilerCEL:
		default:
			return
		}
		if !in.jmespath(c) {
			return
		}
		if wrong := compile(e.Statement); wrong != "" {
			r.problem(n, hintFor(wrong), "%s is not an expression: %s", shorten(s), wrong)
		}
	}
}

// shorten cuts a string that is too long for a line.
func shorten(s string) string {
	const most = 60
	if line, _, cut := strings.Cut(s, "\n"); cut {
		s = line + "…"
	}
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
