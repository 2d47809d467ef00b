package shell

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxText is the maximum length of a variable, or of a command's output in one.
	maxText = 1 << 20
	// maxScript is the maximum length of a script: the parser recurses for every bracket.
	maxScript = 64 << 10
	// maxDepth is the maximum nesting of the parts of a script.
	maxDepth = 1000
)

var errTooLong = errors.New("sh: a text is longer than the lab's small shell takes")

// syntaxError describes what is wrong with a script.
type syntaxError string

func (e syntaxError) Error() string { return string(e) }

func unsupported(what string) error {
	return syntaxError(what + " is not supported by the lab's small shell")
}

// incomplete is the error of a script that may continue in the next line.
type incomplete struct{ syntaxError }

func isIncomplete(err error) bool {
	_, is := errors.AsType[incomplete](err)
	return is
}

// parse reads a script and makes it harmless.
func (c *checker) parse(script string) (*syntax.File, error) {
	switch {
	case strings.ContainsRune(script, 0):
		return nil, syntaxError("syntax error: a script has no null bytes")
	case len(script) > maxScript:
		return nil, syntaxError("syntax error: a script is longer than the lab's small shell takes")
	case strings.Count(script, "(")+strings.Count(script, "{") > 10*maxDepth:
		return nil, syntaxError("syntax error: too deep")
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(strings.ToValidUTF8(script, "\uFFFD")), "")
	if err != nil {
		return nil, complaint(err)
	}
	c.keep = map[*syntax.Word]bool{}
	syntax.Walk(file, c.visit)
	return file, c.err
}

// harmless returns a script in a form that the interpreter may safely parse itself.
func harmless(script string) (string, error) {
	var first, second checker
	file, err := first.parse(script)
	if err != nil || !first.changed {
		return script, err
	}
	var text strings.Builder
	if err := syntax.NewPrinter().Print(&text, file); err != nil {
		return "", syntaxError("syntax error: " + err.Error())
	}
	if _, err = second.parse(text.String()); err == nil && second.changed {
		err = unsupported("such a script in a script")
	}
	return text.String(), err
}

var lastQuoted = regexp.MustCompile("`([^`]+)`$")

// complaint returns a syntax error in the words of a shell.
func complaint(err error) error {
	var at syntax.ParseError
	if !errors.As(err, &at) {
		return syntaxError("syntax error: " + err.Error())
	}
	if !at.Incomplete && !strings.HasPrefix(at.Text, "unclosed here-document") {
		return syntaxError(fmt.Sprintf("syntax error: line %d: %s", at.Pos.Line(), at.Text))
	}
	text := "syntax error: unexpected end of file"
	if strings.Contains(at.Text, "closing quote") {
		text = "syntax error: unterminated quoted string"
	} else if expected := lastQuoted.FindStringSubmatch(at.Text); expected != nil {
		text += fmt.Sprintf(" (expecting %q)", expected[1])
	}
	return incomplete{syntaxError(text)}
}

// checker refuses what the interpreter does not know, what it would do to this machine instead of the container, and what
// makes it panic; and it rewrites what it would do wrong:
//
//   - ~user is not looked up among this machine's users
//   - $$ and $0 are those of a container
//   - variables stay as short as maxText
//   - export with arguments that are not known before is a command: see [session.call]
type checker struct {
	// jobs allows commands in the background.
	jobs bool
	// name is the value of $0; empty: the interpreter knows it.
	name string

	stack []syntax.Node
	// keep are words in which a backslash must stay.
	keep    map[*syntax.Word]bool
	changed bool
	err     error
}

func (c *checker) visit(node syntax.Node) bool {
	if node == nil {
		c.stack = c.stack[:len(c.stack)-1]
		return true
	}
	if c.err == nil {
		c.err = c.check(node)
	}
	if c.err == nil && len(c.stack) > maxDepth {
		c.err = syntaxError("syntax error: too deep")
	}
	if c.err != nil {
		return false
	}
	c.stack = append(c.stack, node)
	return true
}

func (c *checker) check(node syntax.Node) error {
	switch n := node.(type) {
	case *syntax.Stmt:
		return c.statement(n)
	case *syntax.Redirect:
		return c.redirect(n)
	case *syntax.Word:
		c.word(n)
	case *syntax.Assign:
		return c.assign(n)
	case *syntax.ParamExp:
		return c.parameter(n)
	case *syntax.CmdSubst:
		return c.substitution(n)
	case *syntax.FuncDecl:
		if n.Name == nil || builtin(n.Name.Value) {
			return unsupported("a function with the name of a command of the shell")
		}
	case *syntax.ForClause:
		if n.Select {
			return unsupported("select")
		}
	case *syntax.WordIter:
		for _, w := range n.Items {
			c.guard(w)
		}
	case *syntax.DeclClause:
		if !slices.Contains([]string{"export", "readonly", "local"}, n.Variant.Value) {
			return unsupported(n.Variant.Value)
		}
	case *syntax.UnaryTest:
		if !slices.Contains(knownTests, n.Op) {
			return unsupported("[[ " + n.Op.String() + " ]]")
		}
	case *syntax.BinaryTest:
		if w, ok := n.Y.(*syntax.Word); ok && n.Op == syntax.TsReMatch {
			c.keep[w] = true
		}
	case *syntax.UnaryArithm:
		if n.Op == syntax.Inc || n.Op == syntax.Dec {
			return variable(n.X)
		}
	case *syntax.BinaryArithm:
		if n.Op >= syntax.Assgn && n.Op <= syntax.ShrAssgn {
			return variable(n.X)
		}
	case *syntax.ProcSubst:
		return unsupported("<(…)")
	case *syntax.ArrayExpr, *syntax.ArrayElem:
		return unsupported("an array")
	case *syntax.ExtGlob:
		return unsupported(n.Op.String() + "…)")
	case *syntax.CoprocClause:
		return unsupported("coproc")
	case *syntax.TestDecl, *syntax.FlagsArithm, *syntax.LetClause, *syntax.TimeClause:
		return unsupported("this")
	}
	return nil
}

var knownTests = []syntax.UnTestOperator{
	syntax.TsExists, syntax.TsRegFile, syntax.TsDirect, syntax.TsCharSp, syntax.TsRead, syntax.TsWrite, syntax.TsExec,
	syntax.TsNoEmpty, syntax.TsEmpStr, syntax.TsNempStr, syntax.TsNot, syntax.TsParen,
}

// variable refuses to count up anything else.
func variable(x syntax.ArithmExpr) error {
	if w, ok := x.(*syntax.Word); ok && syntax.ValidName(w.Lit()) {
		return nil
	}
	return syntaxError("syntax error: arithmetic assigns to a variable only")
}

func (c *checker) statement(s *syntax.Stmt) error {
	if s.Disown || s.Coprocess {
		return unsupported("such a background job")
	}
	if s.Background {
		if !c.jobs || c.within() {
			return unsupported("a background job here")
		}
		nothing := &syntax.Redirect{Op: syntax.RdrIn, Word: literal("/dev/null")}
		s.Redirs = append([]*syntax.Redirect{nothing}, s.Redirs...)
	}
	if d, ok := s.Cmd.(*syntax.DeclClause); ok && slices.ContainsFunc(d.Args, unknownBefore) {
		s.Cmd = asCommand(d)
		c.changed = true
	}
	return nil
}

// within reports whether this is in something whose output ends before it.
func (c *checker) within() bool {
	return slices.ContainsFunc(c.stack, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.FuncDecl:
			return true
		}
		return false
	})
}

func unknownBefore(a *syntax.Assign) bool {
	return a.Name == nil && !strings.HasPrefix(a.Value.Lit(), "-")
}

// asCommand quotes everything as assignments do.
func asCommand(d *syntax.DeclClause) syntax.Command {
	call := &syntax.CallExpr{Args: []*syntax.Word{word(&syntax.SglQuoted{Value: d.Variant.Value})}}
	for _, a := range d.Args {
		if a.Name == nil {
			call.Args = append(call.Args, a.Value)
			continue
		}
		w := literal(a.Name.Value)
		if !a.Naked {
			w = literal(a.Name.Value + "=")
			if a.Value != nil {
				for _, part := range a.Value.Parts {
					w.Parts = append(w.Parts, asQuoted(part))
				}
			}
		}
		call.Args = append(call.Args, w)
	}
	return call
}

func asQuoted(part syntax.WordPart) syntax.WordPart {
	switch part := part.(type) {
	case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp:
		return &syntax.DblQuoted{Parts: []syntax.WordPart{part}}
	case *syntax.Lit:
		return &syntax.SglQuoted{Value: strings.ReplaceAll(part.Value, `\`, "")}
	}
	return part
}

func word(parts ...syntax.WordPart) *syntax.Word { return &syntax.Word{Parts: parts} }

func literal(text string) *syntax.Word { return word(&syntax.Lit{Value: text}) }

func (c *checker) redirect(r *syntax.Redirect) error {
	if r.N != nil && !slices.Contains([]string{"0", "1", "2"}, r.N.Value) {
		return unsupported("file descriptor " + r.N.Value)
	}
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrIn, syntax.DplIn, syntax.DplOut, syntax.WordHdoc, syntax.RdrAll, syntax.AppAll:
	case syntax.Hdoc, syntax.DashHdoc:
		c.keep[r.Word] = true
		if r.Hdoc != nil {
			c.keep[r.Hdoc] = true
		}
	case syntax.RdrClob:
		r.Op = syntax.RdrOut
		c.changed = true
	default:
		return unsupported(r.Op.String())
	}
	return nil
}

// word quotes what follows a backslash, which the interpreter forgets in assignments, and ~ before a name.
func (c *checker) word(w *syntax.Word) {
	var parts []syntax.WordPart
	_, redirected := c.parent().(*syntax.Redirect)
	document := redirected && c.keep[w] // or where it ends
	for i, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			parts = append(parts, c.constant(part))
			continue
		}
		text := lit.Value
		if rest, tilde := strings.CutPrefix(text, "~"); tilde && i == 0 && !document &&
			rest != "" && rest[0] != '/' {
			parts = append(parts, &syntax.SglQuoted{Value: "~"})
			text = rest
			c.changed = true
		}
		if c.keep[w] || !strings.Contains(text, `\`) {
			parts = append(parts, &syntax.Lit{ValuePos: lit.ValuePos, ValueEnd: lit.ValueEnd, Value: text})
			continue
		}
		c.changed = true
		parts = append(parts, unescaped(text)...)
	}
	w.Parts = parts
}

func (c *checker) parent() syntax.Node {
	if len(c.stack) == 0 {
		return nil
	}
	return c.stack[len(c.stack)-1]
}

func unescaped(text string) []syntax.WordPart {
	var parts []syntax.WordPart
	plain := ""
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			plain += text[i : i+1]
			continue
		}
		if plain != "" {
			parts = append(parts, &syntax.Lit{Value: plain})
			plain = ""
		}
		i++
		if text[i] == '\'' {
			parts = append(parts, &syntax.DblQuoted{Parts: []syntax.WordPart{&syntax.Lit{Value: "'"}}})
			continue
		}
		parts = append(parts, &syntax.SglQuoted{Value: text[i : i+1]})
	}
	if plain != "" {
		parts = append(parts, &syntax.Lit{Value: plain})
	}
	return parts
}

// constant replaces $$, which would be that of this machine's process.
func (c *checker) constant(part syntax.WordPart) syntax.WordPart {
	p, ok := part.(*syntax.ParamExp)
	if !ok {
		if q, ok := part.(*syntax.DblQuoted); ok {
			for i := range q.Parts {
				q.Parts[i] = c.constant(q.Parts[i])
			}
		}
		return part
	}
	if p.Param == nil || p.Exp != nil || p.Slice != nil {
		return part
	}
	value := p.Param.Value
	switch {
	case value == "$":
		value = "7" // any but that of the container's program
	case value == "PPID":
		value = "0"
	case value == "0" && c.name != "":
		value = c.name
	default:
		return part
	}
	c.changed = true
	return &syntax.Lit{Value: value}
}

func (c *checker) assign(a *syntax.Assign) error {
	if a.Index != nil || a.Array != nil {
		return unsupported("an array")
	}
	if a.Value == nil {
		return nil
	}
	if a.Append && a.Name != nil {
		c.guard(a.Value, &syntax.Lit{Value: a.Name.Value})
		return nil
	}
	c.guard(a.Value)
	return nil
}

func (c *checker) parameter(p *syntax.ParamExp) error {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	if name == "" || p.Excl || p.Width || p.IsSet || p.Index != nil || p.Flags != nil || p.NestedParam != nil ||
		len(p.Modifiers) > 0 || p.Repl != nil || p.Names != 0 ||
		p.Split != 0 || p.GlobSubst != 0 || p.RcExpand != 0 || p.Exp != nil && p.Exp.Op == syntax.OtherParamOps {
		return unsupported("this ${" + name + "…}")
	}
	if p.Exp == nil || p.Exp.Word == nil {
		return nil
	}
	switch p.Exp.Op {
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix,
		syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		c.keep[p.Exp.Word] = true
	default:
		c.guard(p.Exp.Word)
	}
	return nil
}

func (c *checker) substitution(s *syntax.CmdSubst) error {
	if s.TempFile || s.ReplyVar {
		return unsupported("such a substitution")
	}
	if isGuard(s) || len(s.Stmts) != 1 || s.Stmts[0].Cmd != nil || len(s.Stmts[0].Redirs) != 1 {
		return nil
	}
	// The interpreter would read $(<file) itself, without a limit.
	s.Stmts[0].Cmd = &syntax.CallExpr{Args: []*syntax.Word{literal("cat")}}
	c.changed = true
	return nil
}

// quote quotes a text as one word.
func quote(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
	return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'"
}
