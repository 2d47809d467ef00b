package tui

import (
	"strconv"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// style is how a text looks: one of the terminal's sixteen colours, so that the
// user's own palette is respected, and attributes, which also work without colour.
type style uint16

// The low five bits are a colour: 0 for the terminal's own, else its ANSI index plus one.
const (
	plain style = 0

	bold style = 1 << (5 + iota)
	faint
	underline
	reverse

	colorBits style = 1<<5 - 1
)

// The palette. Red and green are never told apart by colour: what is well is
// cyan, what is not is red and bold, what waits is yellow.
const (
	ok      = style(6 + 1)      // cyan
	warn    = style(3 + 1)      // yellow
	bad     = style(1+1) | bold // red
	accent  = style(4+1) | bold // blue
	own     = style(5 + 1)      // magenta
	dim     = faint             // what matters less
	title   = bold              // headings
	later   = faint             // what had not happened yet
	chosen  = reverse           // the selected row
	tool    = style(6+1) | bold // keys in the footer
	frame   = faint             // borders
	active  = style(4+1) | bold // border of the focused pane
	loud    = bold | reverse    // the mode word
	alarm   = style(3+1) | loud // the mode word when the loop is held
	past    = style(5+1) | loud // the mode word when looking at the past
	stage   = bold | reverse    // the stage of the strip that is active
	gone    = faint             // objects that are deleted
	added   = style(6 + 1)      // lines of a diff
	taken   = style(1 + 1)      //
	note    = style(3+1) | bold // messages
	field   = style(4 + 1)      // names of fields in YAML
	hint    = faint             //
	wait    = style(3 + 1)      // timers
	hold    = style(3+1) | bold // what is held
	planned = style(3+1) | bold // writes not sent yet
	code    = style(6 + 1)      // code in the text of a lesson
)

// glyphs are the signs that differ between Unicode and ASCII.
type glyphs struct {
	ok, failing, working    string
	running, held, timer    string
	own, err, cut           string
	open, closed, at        string
	tee, end, bar           string
	arrow, cursor, heat     string
	one, several, reconcile string
	tick, untick            string
	up, down, learns        string
	levels                  string // of a chart, from nothing to all
	// border of a pane: corners, horizontal, vertical; then the same for the focused pane.
	border, focus [6]string
}

var unicodeGlyphs = glyphs{
	ok: "✓", failing: "✗", working: "◐",
	running: "●", held: "‖", timer: "◔",
	own: "↺", err: "✗", cut: "…",
	open: "▾", closed: " ", at: "▸",
	tee: "├─ ", end: "└─ ", bar: "│  ",
	arrow: "→", cursor: "◂", heat: "▪",
	one: "·", several: ":", reconcile: "│",
	tick: "[✓]", untick: "[ ]",
	up: "●", down: "○", learns: "◌", levels: "·▁▂▃▄▅▆▇█",
	border: [6]string{"╭", "╮", "╰", "╯", "─", "│"},
	focus:  [6]string{"┏", "┓", "┗", "┛", "━", "┃"},
}

var asciiGlyphs = glyphs{
	ok: "ok", failing: "!!", working: "..",
	running: "*", held: "#", timer: "@",
	own: "(own)", err: "!", cut: "~",
	open: "v", closed: " ", at: ">",
	tee: "|- ", end: "`- ", bar: "|  ",
	arrow: "->", cursor: "<", heat: ":",
	one: ".", several: ":", reconcile: "|",
	tick: "[x]", untick: "[ ]",
	up: "*", down: "o", learns: "+", levels: "_.:|#",
	border: [6]string{"+", "+", "+", "+", "-", "|"},
	focus:  [6]string{"+", "+", "+", "+", "=", "|"},
}

// theme is how everything looks, and in which language it speaks.
type theme struct {
	glyphs
	ascii bool
	color bool
	lang  trace.Language
}

func newTheme(o Options) theme {
	th := theme{glyphs: unicodeGlyphs, ascii: o.ASCII, color: !o.NoColor, lang: o.Language}
	if o.ASCII {
		th.glyphs = asciiGlyphs
	}
	return th
}

// t returns the text in the language of the UI.
func (th *theme) t(english, japanese string) string {
	if th.lang == trace.Japanese {
		return japanese
	}
	return english
}

// paint appends a text in a style.
func (th *theme) paint(b *strings.Builder, st style, s string) {
	if !th.color {
		st &^= colorBits
	}
	if st == plain || s == "" {
		b.WriteString(s)
		return
	}
	b.WriteString("\x1b[")
	sep := ""
	code := func(n int) {
		b.WriteString(sep)
		b.WriteString(strconv.Itoa(n))
		sep = ";"
	}
	for _, a := range []struct {
		bit  style
		code int
	}{{bold, 1}, {faint, 2}, {underline, 4}, {reverse, 7}} {
		if st&a.bit != 0 {
			code(a.code)
		}
	}
	if c := st & colorBits; c != 0 {
		code(30 + int(c) - 1)
	}
	b.WriteByte('m')
	b.WriteString(s)
	b.WriteString("\x1b[m")
}
