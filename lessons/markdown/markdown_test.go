package markdown

import (
	"slices"
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

func TestCommands(t *testing.T) {
	text := "Look:\n\n```sh\nkubectl get pods\nkubectl delete pod web-…   # one of them\nkubectl get pods\n```\n\n" +
		"- and in a list\n\n  ```sh\n  kubectl patch a b \\\n    -p '{\"a\": 1}'   # why\n  ```\n\n" +
		"```sh\n# with a placeholder\nkubectl exec kv-0 -- member remove <id>  # the id\nkubectl exec kv-0 -- add kv-3 \\\n  --url=http://kv-3\n\n" +
		"```\n\n```yaml\na: b\n```\n\n```sh\nuntil a; do\n  sleep 1\ndone\nb 'x\ny' && c # d\ncat <<X | d\ne\nX\n```\n"
	want := []string{
		"kubectl get pods", "kubectl delete pod web-…", "kubectl patch a b \\\n  -p '{\"a\": 1}'",
		"kubectl exec kv-0 -- member remove <id>", "kubectl exec kv-0 -- add kv-3 \\\n  --url=http://kv-3",
		"until a; do\n  sleep 1\ndone", "b 'x\ny' && c", "cat <<X | d\ne\nX",
	}
	if got := Commands(text); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := Commands("no `code` of a shell\n\n```\na\n```\n"); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

func FuzzCommands(f *testing.F) {
	f.Add("```sh\na <b> \\\nc\n```")
	f.Add("> ```sh\n> a 'b\n> c' # d\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range Commands(text) {
			if strings.TrimSpace(c) == "" {
				t.Errorf("%q has an empty command", text)
			}
		}
	})
}
