package tui

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// seg is a piece of a line in one style. Its text carries no escape sequences:
// what comes out of the journal is cleaned before it gets here.
type seg struct {
	st style
	s  string
}

// row is a line of segments, not yet cut to a width.
type row struct {
	segs []seg
	// base is laid under all segments: later than the cursor, deleted…
	base style
	// chosen marks the selected row.
	chosen bool
}

func text(st style, s string) row { return row{segs: []seg{{st, s}}} }

// add appends a piece.
func (r *row) add(st style, s string) *row {
	if s != "" {
		r.segs = append(r.segs, seg{st, s})
	}
	return r
}

// cell appends a piece that takes exactly w cells, and one blank.
func (r *row) cell(th *theme, st style, s string, w int) *row {
	return r.add(st, th.fit(s, w)).add(plain, " ")
}

// name appends a name that takes exactly w cells, and one blank.
func (r *row) name(th *theme, st style, s string, w int) *row {
	return r.cell(th, st, th.elide(s, w), w)
}

// to fills up with blanks to a column.
func (r *row) to(column int) *row {
	if n := column - r.width(); n > 0 {
		r.add(plain, blanks(n))
	}
	return r
}

func (r *row) width() int {
	n := 0
	for _, s := range r.segs {
		n += width(s.s)
	}
	return n
}

// plain returns the row's text without styles.
func (r *row) plain() string {
	var b strings.Builder
	for _, s := range r.segs {
		b.WriteString(s.s)
	}
	return b.String()
}

// draw returns the row in exactly w cells.
func (r row) draw(th *theme, w int) string {
	if w <= 0 {
		return ""
	}
	var b strings.Builder
	left := w
	for i, s := range r.segs {
		text := clean(s.s)
		n := width(text)
		if n > left || (n == left && i+1 < len(r.segs) && rest(r.segs[i+1:]) > 0) {
			text = th.shorten(text, left)
			n = width(text)
			th.paint(&b, r.style(s.st), text)
			left -= n
			break
		}
		th.paint(&b, r.style(s.st), text)
		left -= n
	}
	th.paint(&b, r.style(plain), blanks(left))
	out := b.String()
	if !isASCII(out) && ansi.StringWidth(out) != w { // pieces that joined into other characters
		return th.fit(questionMarks(ansi.Strip(out)), w)
	}
	return out
}

// rest is the width of what else is to come, blanks at the end not counted.
func rest(segs []seg) int {
	for _, s := range segs {
		if strings.TrimRight(s.s, " ") != "" {
			return 1
		}
	}
	return 0
}

func (r row) style(st style) style {
	st |= r.base
	if r.chosen {
		st = st&^(faint|colorBits) | chosen // one block, legible on any palette
	}
	return st
}

// shorten cuts a text to w cells and marks that something was taken away.
func (th *theme) shorten(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if n := width(th.cut); n <= w {
		return ansi.Truncate(s, w-n, "") + th.cut
	}
	return ansi.Truncate(s, w, "")
}

// elide shortens a name to at most w cells by taking out of its middle: names
// of objects differ at their ends.
func (th *theme) elide(s string, w int) string {
	s = clean(s)
	n := width(s)
	if n <= w {
		return s
	}
	mark := width(th.cut)
	tail := (w - mark) * 2 / 3
	if w < 6 {
		return th.shorten(s, w)
	}
	head := ansi.Truncate(s, w-mark-tail, "")
	return head + th.cut + ansi.TruncateLeft(s, n-(w-mark-width(head)), "")
}

// cutTo shortens a text to w cells, without filling it up.
func (th *theme) cutTo(text string, w int) string {
	text = clean(text)
	if width(text) <= w {
		return text
	}
	return th.shorten(text, w)
}

// fit returns a text in exactly w cells.
func (th *theme) fit(s string, w int) string {
	if w <= 0 {
		return ""
	}
	s = clean(s)
	n := width(s)
	if n > w {
		s = th.shorten(s, w)
		n = width(s)
	}
	return s + blanks(w-n)
}

// width is the number of cells a text takes.
func width(s string) int {
	if isASCII(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c < 0x20 || c == 0x7f {
			return false
		}
	}
	return true
}

// clean makes one line of a text and takes out what would upset a terminal.
func clean(s string) string {
	if isASCII(s) {
		return s
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "?")
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			return '?'
		case r == 0x2028 || r == 0x2029 || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return -1 // separators, zero-width joiners and what changes direction
		}
		return r
	}, s)
	for s != "" && !isASCII(s[:1]) && firstWidth(s) == 0 { // a mark with nothing to sit on
		_, n := utf8.DecodeRuneInString(s)
		s = s[n:]
	}
	return s
}

func firstWidth(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return ansi.StringWidth(s[:n])
}

// questionMarks replaces what is not ASCII, one for one cell.
func questionMarks(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else if n := ansi.StringWidth(string(r)); n > 0 {
			b.WriteString(strings.Repeat("?", n))
		}
	}
	return b.String()
}

const manyBlanks = "                                                                                                                                "

func blanks(n int) string {
	switch {
	case n <= 0:
		return ""
	case n <= len(manyBlanks):
		return manyBlanks[:n]
	}
	return strings.Repeat(" ", n)
}

// wrap breaks a text into lines of at most w cells: at blanks, or between wide
// characters, but not before a mark that ends a sentence or closes a bracket.
func wrap(s string, w int) []string {
	if w <= 0 {
		return nil
	}
	var out []string
	for paragraph := range strings.SplitSeq(s, "\n") {
		paragraph = clean(paragraph)
		if width(paragraph) <= w {
			out = append(out, paragraph)
			continue
		}
		for _, l := range breaks(paragraph, w) {
			out = append(out, paragraph[l[0]:l[1]])
		}
	}
	return out
}

// wrapped returns a text as rows of at most w cells behind a lead, of which the rows after the first have the width.
func wrapped(st style, lead, s string, w int) []row {
	var rows []row
	for _, line := range wrap(s, w) {
		rows = append(rows, text(st, lead+line))
		lead = blanks(width(lead))
	}
	return rows
}

// folded returns rows of which each is as wide as w at most: what is wider goes on below, further in.
func folded(rows []row, w int) []row {
	const further = 6
	var out []row
	for _, r := range rows {
		if r.width() <= w || w < 2*further {
			out = append(out, r)
			continue
		}
		cleaned := r.part(0, math.MaxInt)
		whole := cleaned.plain()
		text := strings.TrimLeft(whole, " ")
		in := len(whole) - len(text)
		for i, l := range breaks(text, w-in-further) {
			if i == 0 {
				out = append(out, r.part(0, in+l[1]))
			} else {
				out = append(out, r.part(in+l[0], in+l[1]))
				out[len(out)-1].segs = append([]seg{{plain, blanks(in + further)}}, out[len(out)-1].segs...)
			}
		}
	}
	return out
}

// part returns the bytes from one to another of a row's text, cleaned, in their styles.
func (r row) part(from, to int) row {
	out, at := row{base: r.base, chosen: r.chosen}, 0
	for _, s := range r.segs {
		text := clean(s.s)
		out.add(s.st, text[min(max(0, from-at), len(text)):min(max(0, to-at), len(text))])
		at += len(text)
	}
	return out
}

// breaks returns where the lines of a text begin and end, which was cleaned
// before. Blanks at the end of a line belong to none.
func breaks(s string, w int) (lines [][2]int) {
	from, at, n := 0, 0, 0 // the line, where the next word begins, and what the line takes so far
	flush := func(to int) {
		lines = append(lines, [2]int{from, from + len(strings.TrimRight(s[from:to], " "))})
		from, n = to, 0
	}
	for _, word := range words(s, w-2) {
		if n+width(strings.TrimRight(word, " ")) > w && n > 0 {
			flush(at)
		}
		end := at + len(word)
		for width(strings.TrimRight(s[at:end], " ")) > w { // no line is long enough for it
			head := ansi.Truncate(s[at:end], w, "")
			if head == "" {
				return lines
			}
			at += len(head)
			flush(at)
		}
		n += width(s[at:end])
		at = end
	}
	if from < len(s) {
		flush(len(s))
	}
	return lines
}

// closers are the marks that no line begins with.
const closers = "。、，．・：；）」』】〕！？ー…)]},.;:!?"

// words splits a text where a line may break: after blanks, and before and
// after wide characters, but inside of a word in katakana only where it is wider
// than most cells. What cannot begin a line stays with what is before it.
func words(s string, most int) []string {
	var out []string
	start, breakable, last := 0, false, ' '
	for i, r := range s {
		wide := width(string(r)) == 2
		if i > start && (breakable || wide) && r != ' ' && !strings.ContainsRune(closers, r) && width(string(r)) > 0 &&
			(!unicode.Is(unicode.Katakana, last) || !unicode.Is(unicode.Katakana, r) || width(s[start:i])+2 > most) {
			out = append(out, s[start:i])
			start = i
		}
		breakable = wide || r == ' ' || breakable && strings.ContainsRune(closers, r)
		if r != 'ー' {
			last = r
		}
	}
	return append(out, s[start:])
}
