package markdown

import (
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"mvdan.cc/sh/v3/syntax"
)

// Commands returns the commands in the shell blocks (```sh) of a text, in their order, each once. A command is a whole
// statement, which may have several lines, without comments.
func Commands(source string) []string {
	var out []string
	for n := Parse([]byte(source)).FirstChild(); n != nil; n = n.NextSibling() {
		_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if block, is := n.(*ast.FencedCodeBlock); is && entering && string(block.Language([]byte(source))) == "sh" {
				for _, c := range statements(string(block.Lines().Value([]byte(source)))) {
					if !slices.Contains(out, c) {
						out = append(out, c)
					}
				}
			}
			return ast.WalkContinue, nil
		})
	}
	return out
}

// statements splits a script. One that no shell takes, because of a placeholder such as <id>, is split at the ends of
// lines.
func statements(script string) []string {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return lines(script)
	}
	var out []string
	for i, s := range file.Stmts {
		end := s.End().Offset()
		if hasHereDocument(s) { // which goes on behind the statement
			end = uint(len(script))
			if i+1 < len(file.Stmts) {
				end = file.Stmts[i+1].Pos().Offset()
			}
		}
		out = append(out, strings.TrimSpace(script[s.Pos().Offset():end]))
	}
	return out
}

func hasHereDocument(s *syntax.Stmt) bool {
	found := false
	syntax.Walk(s, func(n syntax.Node) bool {
		r, is := n.(*syntax.Redirect)
		found = found || is && r.Hdoc != nil
		return true
	})
	return found
}

// lines splits a script at the ends of lines that are not continued with a backslash, and drops comments.
func lines(script string) []string {
	var out []string
	command := ""
	for line := range strings.Lines(script) {
		command += line
		if strings.HasSuffix(line, "\\\n") {
			continue
		}
		command, _, _ = strings.Cut(" "+command, " #")
		if command = strings.TrimSpace(command); command != "" {
			out = append(out, command)
		}
		command = ""
	}
	return out
}

// Links returns the destinations of the links of a text, in their order, each once.
func Links(source string) []string {
	var out []string
	_ = ast.Walk(Parse([]byte(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, is := n.(*ast.Link); is && entering && !slices.Contains(out, string(link.Destination)) {
			out = append(out, string(link.Destination))
		}
		return ast.WalkContinue, nil
	})
	return out
}
