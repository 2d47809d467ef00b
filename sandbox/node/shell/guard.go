package shell

import (
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

// guardBase is so much below zero that no file's name is such a number.
const guardBase = 1 << 60

// guard lets a word that is too long end the script, before it is made: it adds $(<n) to the word, where n is
// how long its variables are. That opens a file of that name: see [session.open].
func (c *checker) guard(w *syntax.Word, more ...*syntax.Lit) {
	names := append(variables(w.Parts), more...)
	alone := len(w.Parts) == 1 && len(names) < 2 && !isQuotedList(w)
	if len(names) == 0 || alone || slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool { return isGuard(p) }) {
		return
	}
	size := 0
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			size += len(lit.Value)
		}
	}
	var sum syntax.ArithmExpr = literal(strconv.Itoa(size))
	for _, name := range names {
		length := word(&syntax.ParamExp{Length: true, Param: name})
		sum = &syntax.BinaryArithm{Op: syntax.Add, X: sum, Y: length}
	}
	sum = &syntax.BinaryArithm{Op: syntax.Sub, X: sum, Y: literal(strconv.Itoa(guardBase))}
	file := word(&syntax.ArithmExp{X: sum})
	w.Parts = append(w.Parts, &syntax.CmdSubst{Stmts: []*syntax.Stmt{
		{Redirs: []*syntax.Redirect{{Op: syntax.RdrIn, Word: file}}},
	}})
	c.changed = true
}

func isQuotedList(w *syntax.Word) bool {
	q, ok := w.Parts[0].(*syntax.DblQuoted)
	return ok && len(q.Parts) > 1
}

// variables returns the variables that make up a word, each as often as it occurs.
func variables(parts []syntax.WordPart) []*syntax.Lit {
	var all []*syntax.Lit
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.ParamExp:
			if part.Param != nil && syntax.ValidName(part.Param.Value) && !part.Length {
				all = append(all, part.Param)
			}
		case *syntax.DblQuoted:
			all = append(all, variables(part.Parts)...)
		}
	}
	return all
}

func isGuard(node syntax.Node) bool {
	s, ok := node.(*syntax.CmdSubst)
	if !ok || len(s.Stmts) != 1 || s.Stmts[0].Cmd != nil || len(s.Stmts[0].Redirs) != 1 {
		return false
	}
	file := s.Stmts[0].Redirs[0].Word
	if file == nil || len(file.Parts) != 1 || s.Stmts[0].Redirs[0].Op != syntax.RdrIn {
		return false
	}
	sum, ok := file.Parts[0].(*syntax.ArithmExp)
	if !ok {
		return false
	}
	b, ok := sum.X.(*syntax.BinaryArithm)
	if !ok || b.Op != syntax.Sub {
		return false
	}
	base, ok := b.Y.(*syntax.Word)
	return ok && base.Lit() == strconv.Itoa(guardBase)
}
