package tui

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"

	"github.com/operator-lab/operator-lab/lessons/markdown"
)

// Plain returns a text in Markdown as plain text without any control sequences:
// wrapped to a width, or if that is zero with each paragraph on one line. Code
// is never wrapped; code within a line keeps its backquotes.
func Plain(markdown string, width int) string {
	var out strings.Builder
	for _, line := range render(markdown, width, true) {
		out.WriteString(strings.TrimRight(clean(line.plain()), " ") + "\n")
	}
	return out.String()
}

// markdownRows returns a text in Markdown as rows. Each is w cells wide at most, but for code, which is cut when it is drawn.
func markdownRows(markdown string, w int) []row {
	if w <= 0 {
		return nil
	}
	return render(markdown, w, false)
}

// render returns a text as rows of at most w cells, without a bound if that is not positive. With ticks, code within a
// line keeps its backquotes.
func render(text string, w int, ticks bool) []row {
	r := renderer{w: w, ticks: ticks, source: []byte(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(text, "?")))}
	r.blocks(markdown.Parse(r.source), row{}, row{})
	return r.rows
}

// renderer makes rows of a tree of Markdown.
type renderer struct {
	w      int  // no bound if it is not positive
	ticks  bool // code within a line keeps its backquotes
	source []byte
	rows   []row
}

// gap makes an empty line between blocks.
func (r *renderer) gap() {
	if n := len(r.rows); n > 0 && len(r.rows[n-1].segs) > 0 {
		r.rows = append(r.rows, row{})
	}
}

// blocks renders what is below a node. The first line begins with one text, such as the mark of a list, the others with another.
func (r *renderer) blocks(parent ast.Node, first, rest row) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if html, ok := n.(*ast.HTMLBlock); ok && html.HTMLBlockType == ast.HTMLBlockType2 || n.Kind() == ast.KindLinkReferenceDefinition {
			continue // comments, and the addresses of links
		}
		if parent.Kind() != ast.KindListItem || n != parent.FirstChild() && n.Kind() != ast.KindList {
			r.gap()
		}
		r.block(n, first, rest)
		first = rest
	}
}

func (r *renderer) block(n ast.Node, first, rest row) {
	switch n := n.(type) {
	case *ast.Heading:
		r.paragraph(r.spans(n, title), first, rest)
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		r.codeBlock(n.Lines().Value(r.source), first, rest)
	case *ast.List:
		r.list(n, first, rest)
	case *ast.Blockquote:
		r.blocks(n, indented(first, "| "), indented(rest, "| "))
	case *ast.ThematicBreak:
		r.paragraph([]seg{{dim, "---"}}, first, rest)
	case *ast.HTMLBlock:
		r.paragraph([]seg{{plain, strings.TrimSpace(string(n.Lines().Value(r.source)) + string(n.ClosureLine.Value(r.source)))}}, first, rest)
	default:
		r.paragraph(r.spans(n, plain), first, rest)
	}
}

// indented returns the beginning of a line, and more.
func indented(lead row, more string) row {
	return row{segs: append(slices.Clip(lead.segs), seg{plain, more})}
}

func (r *renderer) list(n *ast.List, first, rest row) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "- "
		if n.IsOrdered() {
			mark = itoa(number) + ". "
			number++
		}
		if item != n.FirstChild() && !n.IsTight {
			r.gap()
		}
		if !item.HasChildren() {
			r.paragraph([]seg{{plain, ""}}, indented(first, mark), rest)
		}
		r.blocks(item, indented(first, mark), indented(rest, blanks(len(mark))))
		first = rest
	}
}

// codeIndent sets code off from the text around it.
const codeIndent = "  "

// codeBlock shows lines as they are.
func (r *renderer) codeBlock(text []byte, first, rest row) {
	for line := range strings.SplitSeq(strings.TrimRight(string(text), "\n"), "\n") {
		out := indented(first, codeIndent)
		r.rows = append(r.rows, *out.add(code, strings.ReplaceAll(line, "\t", "    ")))
		first = rest
	}
}

// paragraph wraps a text.
func (r *renderer) paragraph(text []seg, first, rest row) {
	for _, line := range lines(text) {
		room := r.w - max(first.width(), rest.width())
		if r.w > 0 && room < 1 { // nested deeper than the screen is wide
			first, rest, room = row{}, row{}, r.w
		}
		for _, piece := range wrapSegs(line, room) {
			out := row{segs: append(slices.Clip(first.segs), piece...)}
			r.rows = append(r.rows, out)
			first = rest
		}
	}
}

// wrapSegs breaks a text in several styles into lines of at most w cells; if w is not positive into one.
func wrapSegs(text []seg, w int) [][]seg {
	var all strings.Builder
	var ends []int
	for _, s := range text {
		all.WriteString(clean(s.s))
		ends = append(ends, all.Len())
	}
	s := all.String()
	if w <= 0 || width(s) <= w {
		return [][]seg{text}
	}
	var out [][]seg
	for _, l := range breaks(s, w) {
		var line []seg
		from := 0
		for i, end := range ends {
			if a, b := max(from, l[0]), min(end, l[1]); a < b {
				line = append(line, seg{text[i].st, s[a:b]})
			}
			from = end
		}
		out = append(out, line)
	}
	return out
}

// hardBreak stands for a line break that must be kept; other newlines only separate words.
const hardBreak = "\u2028"

// lines splits a text where a line has to end, and joins lines that end elsewhere.
func lines(text []seg) [][]seg {
	out := [][]seg{nil}
	for _, s := range joined(text) {
		for i, part := range strings.Split(s.s, hardBreak) {
			if i > 0 {
				out = append(out, nil)
				part = strings.TrimLeft(part, " ")
			}
			out[len(out)-1] = append(out[len(out)-1], seg{s.st, part})
		}
	}
	return out
}

// joined puts a blank where a line of the source ends, but nothing between wide characters, or after a full stop
// of theirs: Japanese has no blanks.
func joined(text []seg) []seg {
	whole := row{segs: text}
	all, at := whole.plain(), 0
	out := make([]seg, 0, len(text))
	for _, s := range text {
		var b strings.Builder
		for i := range len(s.s) {
			if s.s[i] != '\n' {
				b.WriteByte(s.s[i])
				continue
			}
			before, _ := utf8.DecodeLastRuneInString(all[:at+i])
			after, _ := utf8.DecodeRuneInString(strings.TrimLeft(all[at+i+1:], " "))
			if !strings.ContainsRune("。、」）！？", before) && (width(string(before)) < 2 || width(string(after)) < 2) {
				b.WriteByte(' ')
			}
		}
		at += len(s.s)
		out = append(out, seg{s.st, b.String()})
	}
	return out
}

// spans returns what is written below a node, in its styles.
func (r *renderer) spans(n ast.Node, st style) []seg {
	var out []seg
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			out = append(out, seg{st, markdown.Text(c, r.source)})
			if c.HardLineBreak() {
				out = append(out, seg{st, hardBreak})
			} else if c.SoftLineBreak() {
				out = append(out, seg{st, "\n"})
			}
		case *ast.CodeSpan:
			out = append(out, r.codeSpan(c, st))
		case *ast.Emphasis:
			if c.Level == 2 {
				out = append(out, r.spans(c, st|bold)...)
			} else {
				out = append(out, r.spans(c, st|underline)...)
			}
		case *ast.AutoLink:
			out = append(out, seg{st | underline, string(c.Label(r.source))})
		case *ast.Link:
			out = append(out, r.link(c, c.Destination, st)...)
		case *ast.Image:
			out = append(out, r.link(c, c.Destination, st)...)
		case *ast.RawHTML: // <name> is not meant as that here
			out = append(out, seg{st, string(c.Segments.Value(r.source))})
		}
	}
	return out
}

func (r *renderer) codeSpan(n *ast.CodeSpan, st style) seg {
	var s strings.Builder
	for _, piece := range r.spans(n, plain) {
		s.WriteString(piece.s)
	}
	if r.ticks {
		return seg{code | st&^colorBits, "`" + s.String() + "`"}
	}
	return seg{code | st&^colorBits, s.String()}
}

// link is a link's text and where it leads, unless that is the same. A file of the repository is named from the repository's root.
func (r *renderer) link(n ast.Node, destination []byte, st style) []seg {
	out := r.spans(n, st|underline)
	to := string(destination)
	if !strings.Contains(to, "://") && !strings.HasPrefix(to, "mailto:") {
		to = strings.TrimLeft(path.Clean(to), "./")
	}
	shown := row{segs: out}
	if text := shown.plain(); to == "" || to == text || "mailto:"+text == to {
		return out
	}
	return append(out, seg{st, " (" + to + ")"})
}
