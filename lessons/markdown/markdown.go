// Package markdown reads the Markdown of lessons. The screen and the linter use it both, so that they see the same.
package markdown

import (
	"bufio"
	"html"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	markup "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

var parser = goldmark.New(goldmark.WithExtensions(extension.Linkify)).Parser()

// Parse returns the tree of a text: CommonMark, in which a bare URL is a link too. Positions in it are offsets into the
// source.
func Parse(source []byte) ast.Node { return parser.Parse(text.NewReader(source)) }

// Text returns what readers see of a piece of text: without the backslashes that escape, and with characters in place
// of their names. Code is as it is.
func Text(n *ast.Text, source []byte) string {
	value := n.Value(source)
	if n.IsRaw() {
		return string(value)
	}
	var out strings.Builder
	w := bufio.NewWriter(&out)
	markup.DefaultWriter.Write(w, value) // as HTML
	_ = w.Flush()                        // a strings.Builder takes everything
	return html.UnescapeString(out.String())
}
