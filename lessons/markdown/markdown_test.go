package markdown

import (
	"strings"
	"testing"

	"github.com/yuin/goldmark/ast"
)

// TestText checks that readers see characters as they are meant, and that code stays as it is.
func TestText(t *testing.T) {
	for source, want := range map[string]string{
		`a & b &amp; c \&amp; <d> \* "e"`: `a & b & c &amp; <d> * "e"`,
		"`a &amp; \\*`":                   `a &amp; \*`,
		"日本語&#x3001;&nbsp;":               "日本語、\u00a0",
	} {
		var got strings.Builder
		_ = ast.Walk(Parse([]byte(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			switch n := n.(type) {
			case *ast.Text:
				if entering {
					got.WriteString(Text(n, []byte(source)))
				}
			case *ast.RawHTML:
				if entering {
					got.Write(n.Segments.Value([]byte(source)))
				}
			}
			return ast.WalkContinue, nil
		})
		if got.String() != want {
			t.Errorf("%s is read as %q, not %q", source, got.String(), want)
		}
	}
}
