package tui

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
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

// frame draws the whole screen: h lines of w cells, or nothing if there are none.
func (s *scene) frame() string {
	if s.w <= 0 || s.h <= 0 {
		return ""
	}
	l := s.layout()
	s.placed = l
	c := newCanvas(s.w, s.h)
	switch {
	case l.TooSmall:
		c.put(Rect{0, 0, s.w, s.h}, s.tooSmall())
		return c.String()
	case s.booting != nil:
		c.put(Rect{0, 0, s.w, s.h}, s.bootScreen())
		return c.String()
	}
	one := func(r Rect, rows ...row) {
		for i := range rows {
			c.put(Rect{r.X, r.Y + i, r.W, min(1, r.H-i)}, []string{rows[i].draw(&s.theme, r.W)})
		}
	}
	one(l.Header, s.header())
	one(l.Strip, s.strip(l.Strip)...)
	one(l.Traffic, s.traffic(l.Traffic.W))
	one(l.Store, s.store(l.Store)...)
	for _, p := range drawOrder {
		if r := l.Pane[p]; !r.Empty() {
			c.put(r, s.box(p, r))
		}
	}
	one(l.Scrubber, s.scrubber(l.Scrubber.W))
	one(l.Legend, s.legend())
	one(l.Rule, s.rule())
	one(l.Narration, s.narration(l.Narration)...)
	one(l.Rule2, s.rule())
	one(l.Footer, s.footer(l.Footer.W))
	out := c.String()
	switch {
	case s.busy != nil && s.busy.shown:
		out = s.overlay(out, s.workWindow())
	case s.popup != nil:
		out = s.overlay(out, s.popup.window(s))
	}
	return out
}

// drawOrder draws the panes of each line from left to right.
var drawOrder = []Pane{ObjectsPane, QueuePane, LoopPane, CausePane, DetailPane, LessonPane}

func (s *scene) layout() Layout {
	l := layout(layoutArgs{w: s.w, h: s.h, zoom: s.zoom, focus: s.focus, top: s.top, low: s.low, lesson: s.guided, asked: s.asked(), store: s.membersSeen()})
	if !l.TooSmall && s.zoom == ZoomHalf && l.Pane[s.focus].X == 0 && leftFirst(s.focus) > 0 {
		swapHalves(&l, s.focus)
	}
	return l
}

// leftFirst tells the panes that belong to the right of the screen.
func leftFirst(p Pane) int {
	if p == DetailPane || p == LessonPane {
		return 1
	}
	return 0
}

// swapHalves puts a pane that is zoomed to half of the screen to its own side.
func swapHalves(l *Layout, focus Pane) {
	for p := range l.Pane {
		r := &l.Pane[p]
		if Pane(p) == focus || r.Empty() || r.Y != l.Pane[focus].Y {
			continue
		}
		f := &l.Pane[focus]
		r.X, f.X = 0, r.W
	}
}

func (s *scene) rule() row {
	return text(frame, strings.Repeat(s.border[4], s.w))
}

// tooSmall says so in the middle of the screen, in as much space as there is.
func (s *scene) tooSmall() []string {
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

// box draws a pane with its border into a rectangle.
func (s *scene) box(p Pane, r Rect) []string {
	inner := Rect{0, 0, r.W - 2, r.H - 2}
	content := s.content(p, inner)
	border, st := s.border, frame
	if p == s.focus && s.popup == nil {
		border, st = s.theme.focus, active
	}
	out := make([]string, 0, r.H)
	out = append(out, s.edge(p, border, st, content, r.W))
	var side strings.Builder
	s.paint(&side, st, border[5])
	for y := range inner.H {
		line := blanks(inner.W)
		if y < len(content.rows) {
			line = content.rows[y].draw(&s.theme, inner.W)
		}
		out = append(out, side.String()+line+side.String())
	}
	return append(out, s.lowerEdge(border, st, content.foot, r.W))
}

// lowerEdge draws the lower border of a pane, with what is to be said there.
func (s *scene) lowerEdge(border [6]string, st style, foot string, w int) string {
	if foot != "" {
		foot = " " + s.cutTo(foot, w-6) + " "
	}
	line := strings.Repeat(border[4], max(0, w-3-width(foot)))
	bottom := text(st, border[2]+line)
	bottom.add(plain, foot).add(st, border[4]+border[3])
	return bottom.draw(&s.theme, w)
}

// leastTitle is what is left of a pane's title before what is on its right goes.
const leastTitle = 14

// edge draws the upper border of a pane with its title.
func (s *scene) edge(p Pane, border [6]string, st style, c pane, w int) string {
	name := itoa(int(p)) + " " + c.title
	if f := s.filter[p]; f != "" || s.typing && s.focus == p {
		name += "  /" + string(f)
		if s.typing && s.focus == p {
			name += "_"
		}
	}
	right := c.right
	name = strings.TrimRight(name, " ")
	if room := w - width(right) - 9; width(name) > room {
		if room < leastTitle {
			right, room = "", w-6
		}
		name = s.elide(name, room)
	}
	r := row{}
	r.add(st, border[0]+border[4]+" ").add(title, name).add(st, " ")
	if right != "" {
		fill := w - r.width() - width(right) - 4
		r.add(st, strings.Repeat(border[4], max(0, fill))+" ").add(plain, right).add(st, " "+border[4]+border[1])
	} else {
		r.add(st, strings.Repeat(border[4], max(0, w-r.width()-1))+border[1])
	}
	return r.draw(&s.theme, w)
}

// cutTo shortens a text to w cells, without filling it up.
func (s *scene) cutTo(text string, w int) string {
	text = clean(text)
	if width(text) <= w {
		return text
	}
	return s.shorten(text, w)
}

// content returns what a pane shows in a space.
func (s *scene) content(p Pane, inner Rect) pane {
	switch p {
	case ObjectsPane:
		return s.objects(inner)
	case QueuePane:
		return s.queue(inner)
	case LoopPane:
		return s.loop(inner)
	case DetailPane:
		return s.detail(inner)
	case LessonPane:
		return s.lesson(inner)
	case CausePane:
		return s.cause(inner)
	}
	return pane{}
}

// scrolled returns the rows of a pane of text from where it is scrolled to.
func (s *scene) scrolled(p Pane, rows []row, h int) []row {
	from := min(max(0, s.scroll[p]), max(0, len(rows)-h))
	return rows[from:]
}

// window returns where to begin to show h of n rows so that the selected one is seen.
func window(n, selected, h int) int {
	if n <= h || selected < 0 {
		return 0
	}
	return min(max(0, selected-h*2/3), n-h)
}

// asOf is added to the title of panes that show the past.
func (s *scene) asOf() string {
	if s.live {
		return ""
	}
	if span := s.span(); span != nil {
		return s.t("  as of #", "  時点 #") + itoa(span.ID)
	}
	return s.t("  as of event ", "  時点 イベント ") + itoa(s.cursor())
}

// overlay lays a window of finished lines over the middle of a frame.
func (s *scene) overlay(under string, lines []string) string {
	if len(lines) == 0 {
		return under
	}
	w := ansi.StringWidth(lines[0])
	all := strings.Split(under, "\n")
	x, y := max(0, (s.w-w)/2), max(0, (s.h-len(lines))/2)
	for i, line := range lines {
		if y+i >= len(all) {
			break
		}
		old := all[y+i]
		left := ansi.Truncate(old, x, "")
		left += "\x1b[m" + blanks(x-ansi.StringWidth(left))
		right := ansi.TruncateLeft(old, x+w, "")
		room := s.w - x - w
		if ansi.StringWidth(right) > room { // a wide character is cut in half
			right = ansi.TruncateLeft(old, x+w+1, "")
		}
		right = blanks(room-ansi.StringWidth(right)) + right
		all[y+i] = left + line + right
	}
	return strings.Join(all, "\n")
}
