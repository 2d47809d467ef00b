package tui

import (
	"bytes"
	"html"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/russross/blackfriday/v2"
)

// dialect is Markdown as it is commonly read: a list or a fence needs no empty line before it, and a bare URL is a link.
const dialect = blackfriday.NoIntraEmphasis | blackfriday.FencedCode | blackfriday.Autolink |
	blackfriday.SpaceHeadings | blackfriday.BackslashLineBreak | blackfriday.NoEmptyLineBeforeBlock

// Plain returns a text in Markdown as plain text without any control sequences:
// wrapped to a width, or if that is zero with each paragraph on one line. Code
// is never wrapped; code within a line keeps its backquotes.
func Plain(markdown string, width int) string {
	r := renderer{w: width, ticks: true}
	r.blocks(parse(markdown), row{}, row{})
	var out strings.Builder
	for _, line := range r.rows {
		out.WriteString(strings.TrimRight(clean(line.plain()), " ") + "\n")
	}
	return out.String()
}

// markdownRows returns a text in Markdown as rows. Each is w cells wide at most, but for code, which is cut when it is drawn.
func markdownRows(markdown string, w int) []row {
	if w <= 0 {
		return nil
	}
	r := renderer{w: w}
	r.blocks(parse(markdown), row{}, row{})
	return r.rows
}

// parse reads Markdown. Texts come from files of people: whatever they hold, there is something to show.
func parse(markdown string) (document *blackfriday.Node) {
	defer func() {
		if recover() != nil { // a bug of the parser must not end the lesson
			document = verbatim(markdown)
		}
	}()
	markdown = strings.ToValidUTF8(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "?").Replace(markdown), "?")
	return blackfriday.New(blackfriday.WithExtensions(dialect)).Parse([]byte(apart(markdown)))
}

// apart puts an empty comment before code that follows an empty line: the parser
// would else take it into a list above it, although it is not indented.
func apart(markdown string) string {
	var out strings.Builder
	fence, before := "", ""
	for line := range strings.Lines(markdown) {
		mark := line[:min(3, len(line))]
		switch {
		case fence == "" && (mark == "```" || mark == "~~~"):
			if fence = mark; strings.TrimSpace(before) == "" {
				out.WriteString("<!-- -->\n\n")
			}
		case mark == fence:
			fence = ""
		}
		out.WriteString(line)
		before = line
	}
	return out.String() + "\n"
}

// verbatim is a document that shows a text as it is.
func verbatim(markdown string) *blackfriday.Node {
	document, block := blackfriday.NewNode(blackfriday.Document), blackfriday.NewNode(blackfriday.CodeBlock)
	block.Literal = []byte(markdown)
	document.AppendChild(block)
	return document
}

// renderer makes rows of a tree of Markdown.
type renderer struct {
	w     int  // no bound if it is not positive
	ticks bool // code within a line keeps its backquotes
	rows  []row
}

// gap makes an empty line between blocks.
func (r *renderer) gap() {
	if n := len(r.rows); n > 0 && len(r.rows[n-1].segs) > 0 {
		r.rows = append(r.rows, row{})
	}
}

// blocks renders what is below a node. The first line begins with one text, such as the mark of a list, the others with another.
func (r *renderer) blocks(parent *blackfriday.Node, first, rest row) {
	for n := parent.FirstChild; n != nil; n = n.Next {
		if n.Type == blackfriday.HTMLBlock && bytes.HasPrefix(n.Literal, []byte("<!--")) {
			continue
		}
		if parent.Type != blackfriday.Item || n != parent.FirstChild && n.Type != blackfriday.List {
			r.gap()
		}
		r.block(n, first, rest)
		first = rest
	}
}

func (r *renderer) block(n *blackfriday.Node, first, rest row) {
	switch n.Type {
	case blackfriday.Heading:
		r.paragraph(spans(n, title, r.ticks), first, rest)
	case blackfriday.CodeBlock:
		r.codeBlock(n.Literal, first, rest)
	case blackfriday.List:
		r.list(n, first, rest)
	case blackfriday.BlockQuote:
		r.blocks(n, indented(first, "| "), indented(rest, "| "))
	case blackfriday.HorizontalRule:
		r.paragraph([]seg{{dim, "---"}}, first, rest)
	case blackfriday.HTMLBlock:
		r.paragraph([]seg{{plain, string(bytes.TrimSpace(n.Literal))}}, first, rest)
	default:
		r.paragraph(spans(n, plain, r.ticks), first, rest)
	}
}

// indented returns the beginning of a line, and more.
func indented(lead row, more string) row {
	return row{segs: append(slices.Clip(lead.segs), seg{plain, more})}
}

func (r *renderer) list(n *blackfriday.Node, first, rest row) {
	number := 0
	for item := n.FirstChild; item != nil; item = item.Next {
		mark := "- "
		if item.ListFlags&blackfriday.ListTypeOrdered != 0 {
			number++
			mark = itoa(number) + ". "
		}
		if item != n.FirstChild && item.Prev.ListFlags&blackfriday.ListItemContainsBlock != 0 {
			r.gap()
		}
		if item.FirstChild == nil {
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
func spans(n *blackfriday.Node, st style, ticks bool) []seg {
	var out []seg
	for c := n.FirstChild; c != nil; c = c.Next {
		switch c.Type {
		case blackfriday.Hardbreak:
			out = append(out, seg{st, hardBreak})
		case blackfriday.Code:
			out = append(out, codeSpan(c.Literal, st, ticks))
		case blackfriday.Strong:
			out = append(out, spans(c, st|bold, ticks)...)
		case blackfriday.Emph:
			out = append(out, spans(c, st|underline, ticks)...)
		case blackfriday.Link, blackfriday.Image:
			out = append(out, link(c, st, ticks)...)
		default:
			if len(c.Literal) > 0 { // also of what looks like HTML: <name> is not meant as that here
				out = append(out, seg{st, html.UnescapeString(string(c.Literal))})
			}
			out = append(out, spans(c, st, ticks)...)
		}
	}
	return out
}

func codeSpan(text []byte, st style, ticks bool) seg {
	s := string(text)
	if ticks {
		s = "`" + s + "`"
	}
	return seg{code | st&^colorBits, s}
}

// link is a link's text and where it leads, unless that is the same. A file of the repository is named from the repository's root.
func link(n *blackfriday.Node, st style, ticks bool) []seg {
	out := spans(n, st|underline, ticks)
	to := string(n.Destination)
	if !strings.Contains(to, "://") && !strings.HasPrefix(to, "mailto:") {
		to = strings.TrimLeft(path.Clean(to), "./")
	}
	shown := row{segs: out}
	if text := shown.plain(); to == "" || to == text || "mailto:"+text == to {
		return out
	}
	return append(out, seg{st, " (" + to + ")"})
}
