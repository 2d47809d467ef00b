package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// box is a numbered pane with its border.
type box struct {
	*state
	number Pane
}

// leastTitle is the width of a title below which the text on its right is left out.
const leastTitle = 14

// draw returns the lines of the box.
func (s box) draw(r Rect) []string {
	inner := r.inside()
	content := s.pane(s.number).draw(inner)
	border, st := s.border, frame
	if s.number == s.focus && s.popup == nil {
		border, st = s.theme.focus, active
	}
	out := make([]string, 0, r.H)
	out = append(out, s.upperEdge(border, st, content, r.W))
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

// shortTitle shortens a title to w cells: what stands behind the pane's name, a lesson's at its end, since its number comes
// first.
func (s box) shortTitle(title string, w int) string {
	head, rest, _ := strings.Cut(title, "  ")
	head += "  "
	switch room := w - width(head); {
	case room < shortName:
		return s.elide(title, w)
	case s.number == LessonPane:
		return head + s.cutTo(rest, room)
	default:
		return head + s.elide(rest, room)
	}
}

// upperEdge draws the upper border with the title, and the filter if there is one.
func (s box) upperEdge(border [6]string, st style, c content, w int) string {
	name := itoa(int(s.number)) + " " + c.title
	typing := s.typing && s.focus == s.number
	if f := s.filter[s.number]; f != "" || typing {
		name += "  /" + string(f)
		if typing {
			name += "_"
		}
	}
	right := c.right
	name = strings.TrimRight(name, " ")
	if room := w - width(right) - 9; width(name) > room {
		if room < leastTitle {
			right, room = "", w-6
		}
		name = s.shortTitle(name, room)
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

// lowerEdge draws the lower border with a text in it.
func (s box) lowerEdge(border [6]string, st style, foot string, w int) string {
	if foot != "" {
		foot = " " + s.cutTo(foot, w-6) + " "
	}
	line := strings.Repeat(border[4], max(0, w-3-width(foot)))
	bottom := text(st, border[2]+line)
	bottom.add(plain, foot).add(st, border[4]+border[3])
	return bottom.draw(&s.theme, w)
}

// scrolled returns the rows of a pane of text from where it is scrolled to.
func scrolled(s *state, p Pane, rows []row, h int) []row {
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

// window returns rows in a border, as wide as the widest of them but no wider than the screen.
func (th *theme) window(screen Rect, heading string, rows []row, least, scroll int) []string {
	w := max(least, width(heading)+6)
	for _, r := range rows {
		w = max(w, r.width()+1)
	}
	w = min(w, screen.W-4)
	h := min(len(rows), screen.H-4)
	scroll = min(max(0, scroll), len(rows)-h)
	b := th.focus
	var top row
	top.add(active, b[0]+b[4]+" ").add(title, th.cutTo(heading, w-6)).add(active, " ")
	top.add(active, strings.Repeat(b[4], max(0, w+2-top.width()-1))+b[1])
	out := []string{top.draw(th, w+2)}
	var side strings.Builder
	th.paint(&side, active, b[5])
	for _, r := range rows[scroll : scroll+h] {
		out = append(out, side.String()+r.draw(th, w)+side.String())
	}
	bottom := text(active, b[2]+strings.Repeat(b[4], w)+b[3])
	return append(out, bottom.draw(th, w+2))
}

// overlay lays a window of finished lines over the middle of a frame.
func overlay(screen Rect, under string, lines []string) string {
	if len(lines) == 0 {
		return under
	}
	w := ansi.StringWidth(lines[0])
	all := strings.Split(under, "\n")
	x, y := max(0, (screen.W-w)/2), max(0, (screen.H-len(lines))/2)
	for i, line := range lines {
		if y+i >= len(all) {
			break
		}
		old := all[y+i]
		left := ansi.Truncate(old, x, "")
		left += "\x1b[m" + blanks(x-ansi.StringWidth(left))
		right := ansi.TruncateLeft(old, x+w, "")
		room := screen.W - x - w
		if ansi.StringWidth(right) > room { // a wide character is cut in half
			right = ansi.TruncateLeft(old, x+w+1, "")
		}
		right = blanks(room-ansi.StringWidth(right)) + right
		all[y+i] = left + line + right
	}
	return strings.Join(all, "\n")
}
