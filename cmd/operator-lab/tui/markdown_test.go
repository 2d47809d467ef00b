package tui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

const everything = `# Title *here*

A first line
and a second one with **bold**, ` + "`code`" + ` and <name>.\
After a break: a & b &amp; c.
- one
- two that is so long that it has to be wrapped somewhere around here
  1. deeper
  2. still

1. first

2. second

~~~
code after them
~~~

> said by somebody

` + "```yaml" + `
kind: Hikawa
	tab: and a line of code that is wider than any pane of this test will ever be, so it is cut
` + "```" + `
See [the docs](https://kubernetes.io/docs/), [a file](../../operators/zundoko/README.md) and https://example.org.

日本語の文は、ここで
改行しても**空白**が
入りません。
`

func TestPlain(t *testing.T) {
	const want = `Title here

A first line and a second one with bold,
` + "`code`" + ` and <name>.
After a break: a & b & c.

- one
- two that is so long that it has to be
  wrapped somewhere around here
  1. deeper
  2. still

1. first

2. second

  code after them

| said by somebody

  kind: Hikawa
      tab: and a line of code that is wider than any pane of this test will ever be, so it is cut

See the docs
(https://kubernetes.io/docs/), a file
(operators/zundoko/README.md) and
https://example.org.

日本語の文は、ここで改行しても空白が入り
ません。
`
	if got := Plain(everything, 40); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := Plain("a\nb\n\nc\x1b[31m", 0); got != "a b\n\nc?[31m\n" {
		t.Errorf("without a width: %q", got)
	}
}

func TestMarkdownStyles(t *testing.T) {
	th := newTheme(Options{}.withDefaults())
	var out strings.Builder
	for _, r := range markdownRows("# T\n\na **b** `c`\n\n```\nx\n```", 40) {
		out.WriteString(r.draw(&th, 12) + "|")
	}
	const want = "\x1b[1mT\x1b[m           |            |a \x1b[1mb\x1b[m \x1b[36mc\x1b[m       |            |  \x1b[36mx\x1b[m         |"
	if got := out.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// FuzzMarkdown: whatever a lesson says, its rows fit, and no control sequence gets through.
func FuzzMarkdown(f *testing.F) {
	for _, w := range []uint8{0, 1, 2, 7, 40, 92} {
		f.Add(everything, w)
	}
	f.Add("**a** `b\n> - 1. [x](y\n```\n\x1b[2J", uint8(5))
	f.Add("- - - > > 1. 1. 1. deep 深い", uint8(4))
	f.Add("`ズ`**ン**e\u0301\u0301**\u0301**👨‍👩‍👧‍👦<!-- x -->&#27;[31m", uint8(3))
	th := newTheme(Options{Getenv: utf8Env}.withDefaults())
	f.Fuzz(func(t *testing.T, markdown string, w uint8) {
		if len(markdown) > 2000 {
			return
		}
		for _, r := range markdownRows(markdown, int(w)) {
			if got := ansi.StringWidth(r.draw(&th, int(w))); got != int(w) {
				t.Fatalf("a row of %d cells, not %d", got, w)
			}
		}
		for _, r := range Plain(markdown, int(w)) {
			if r < 0x20 && r != '\n' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("a control character %q gets through", r)
			}
		}
	})
}

// TestMarkdownFits: no line of text is wider than asked for, unless one character is.
func TestMarkdownFits(t *testing.T) {
	text, _, _ := strings.Cut(everything, "~~~")
	for w := 2; w < 100; w++ {
		for _, r := range markdownRows(text, w) {
			if r.width() > w {
				t.Errorf("%d cells: %q", w, r.plain())
			}
		}
	}
}
