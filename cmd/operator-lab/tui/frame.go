package tui

import (
	"strconv"
	"strings"
)

func itoa[T int | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

// canvas puts rectangles of finished lines beside each other. Rectangles do not overlap.
type canvas struct {
	w, h  int
	lines [][]piece
}

type piece struct {
	x, w int
	s    string
}

func newCanvas(w, h int) *canvas { return &canvas{w: w, h: h, lines: make([][]piece, h)} }

// put draws lines at a rectangle, from the left to the right of the screen.
func (c *canvas) put(r Rect, lines []string) {
	for i, line := range lines {
		if y := r.Y + i; y < c.h && i < r.H {
			c.lines[y] = append(c.lines[y], piece{r.X, r.W, line})
		}
	}
}

// String returns exactly h lines of w cells.
func (c *canvas) String() string {
	var b strings.Builder
	b.Grow(c.w * c.h * 2)
	for y, pieces := range c.lines {
		if y > 0 {
			b.WriteByte('\n')
		}
		x := 0
		for _, p := range pieces {
			b.WriteString(blanks(p.x - x))
			b.WriteString(p.s)
			x = p.x + p.w
		}
		b.WriteString(blanks(c.w - x))
	}
	return b.String()
}

// drawOrder draws the panes of each line from left to right.
var drawOrder = []Pane{ObjectsPane, QueuePane, LoopPane, CausePane, DetailPane, LessonPane}

// bar is a part of the screen that goes from its left to its right side, without a border.
type bar interface {
	// draw returns as many rows as the rectangle has at most.
	draw(r Rect) []row
}

// frame draws the whole screen: h lines of w cells, or nothing if there are none.
func (m *Model) frame() string {
	s := &m.state
	if s.w <= 0 || s.h <= 0 {
		return ""
	}
	l := s.layout()
	s.placed = l
	c := newCanvas(s.w, s.h)
	switch {
	case l.TooSmall:
		c.put(s.screen(), tooSmall(s))
		return c.String()
	case s.booting != nil:
		c.put(s.screen(), bootScreen{s}.draw())
		return c.String()
	}
	bars := func(bars ...placedBar) {
		for _, b := range bars {
			for i, r := range b.draw(b.at) {
				c.put(Rect{b.at.X, b.at.Y + i, b.at.W, min(1, b.at.H-i)}, []string{r.draw(&s.theme, b.at.W)})
			}
		}
	}
	bars(placedBar{l.Why, whyBar{s}}, placedBar{l.Header, headerBar{s}}, placedBar{l.Strip, stripBar{s}}, placedBar{l.Traffic, trafficBar{s}}, placedBar{l.Store, storeBar{s}})
	for _, p := range drawOrder {
		if r := l.Pane[p]; !r.Empty() {
			c.put(r, box{s, p}.draw(r))
		}
	}
	bars(placedBar{l.Scrubber, scrubberBar{s}}, placedBar{l.Legend, legendBar{s}}, placedBar{l.Rule, ruleBar{s}},
		placedBar{l.Aside, asideBar{s}}, placedBar{l.Footer, footerBar{s}})
	switch {
	case s.busy != nil && s.busy.shown:
		return overlay(s.screen(), c.String(), s.busy.window(s))
	case s.popup != nil:
		return overlay(s.screen(), c.String(), s.popup.window(s))
	}
	return c.String()
}

// placedBar is a bar and where it is drawn.
type placedBar struct {
	at Rect
	bar
}

// ruleBar is a horizontal line.
type ruleBar struct{ *state }

func (s ruleBar) draw(r Rect) []row { return []row{text(frame, strings.Repeat(s.border[4], r.W))} }

// tooSmall says so in the middle of the screen, in as much space as there is.
func tooSmall(s *state) []string {
	full := s.t("operator-lab needs 60x16 cells; this is ", "operator-lab には 60x16 以上の画面が必要。現在は ") +
		itoa(s.w) + "x" + itoa(s.h) +
		s.t(". The lab keeps running; q quits.", "。ラボは動作中。q で終了。")
	lines := wrap(full, s.w)
	if len(lines) > s.h {
		lines = wrap(s.t("60x16 needed, q quits", "60x16 が必要、q で終了"), s.w)
	}
	out := make([]string, s.h)
	top := max(0, (s.h-len(lines))/2)
	for y := range out {
		r := row{}
		if i := y - top; i >= 0 && i < len(lines) {
			r = text(plain, blanks((s.w-width(lines[i]))/2)+lines[i])
		}
		out[y] = r.draw(&s.theme, s.w)
	}
	return out
}
