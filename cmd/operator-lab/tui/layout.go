package tui

// Pane names a pane.
type Pane int

// The panes, by the digit that focuses them.
const (
	NoPane Pane = iota
	ObjectsPane
	QueuePane
	LoopPane
	DetailPane
	LessonPane
	CausePane

	panes = int(CausePane) + 1
)

// Zoom says how much of the screen the focused pane gets.
type Zoom int

// The zooms, in the order the key goes through them.
const (
	ZoomNormal Zoom = iota
	ZoomHalf
	ZoomFull
)

// Rect is a rectangle of cells.
type Rect struct{ X, Y, W, H int }

// Empty reports whether nothing fits into it.
func (r Rect) Empty() bool { return r.W <= 0 || r.H <= 0 }

// inside returns the size of what is within the border of a pane.
func (r Rect) inside() Rect { return Rect{0, 0, r.W - 2, r.H - 2} }

// Layout says where everything is. What has an empty rectangle is not shown.
type Layout struct {
	TooSmall bool
	Why      Rect // the first rows: why what is selected happened
	Header   Rect
	Strip    Rect
	Traffic  Rect // below the strip, when somebody asks a URL
	Store    Rect // below that, when somebody looks at the members of a store
	Pane     [panes]Rect
	Scrubber Rect
	Legend   Rect // below the scrubber, on large screens
	Rule     Rect // on medium and large screens
	Aside    Rect
	Footer   Rect
}

// The smallest screen on which everything essential is legible.
const minWidth, minHeight = 60, 16

// layoutArgs are all that a layout depends on.
type layoutArgs struct {
	w, h   int
	zoom   Zoom
	focus  Pane
	top    Pane // in a stack: which of Objects, Queue, Loop and Cause is on top
	low    Pane // which of Detail and Lesson is shown where they share a place
	why    int  // how many rows the sentence takes
	lesson bool // there is a lesson
	noted  bool // the lab has noted something in a lesson, such as that an operator was built
	demo   bool // there is a demo that can be played
	bare   bool // it has no operator: there is nothing else to show
	asked  bool // somebody asks a URL
	store  int  // how many members somebody looks at, at most so far; 0 without a store
}

// layout places everything:
//
//	wide (160x40 on)        medium (100x30 on)    stack       tall (45 lines on)
//	+-----+-------+-----+   +-----+-----------+   +-------+   +-------+
//	|  1  |   3   |  4  |   |  1  |     3     |   | 3,1,2 |   |   1   |
//	|     |       |     |   |     |           |   | or 6  |   +-------+
//	|     +-------+     |   +-----+-----------+   +-------+   |   2   |
//	+-----+   6   +-----+   |  2  |   4 or 5  |   |   4   |   +-------+
//	|  2  |       |  5  |   |     |           |   |       |   |   3   |
//	+-----+-------+-----+   +-----+-----------+   +-------+   +-------+
//	                                                          | 4 or 5|
//	                                                          +-------+
//
// A lesson without an operator has the screen for itself, as there is no loop.
//
// A lesson is to be read: while it is focused it takes all of a stack, and the
// greater part of its place elsewhere.
func layout(a layoutArgs) Layout {
	if a.w < minWidth || a.h < minHeight {
		return Layout{TooSmall: true}
	}
	l, area := chrome(a)
	switch {
	case a.bare:
		l.Pane[LessonPane] = area
	case a.zoom == ZoomFull:
		l.Pane[a.focus] = area
	case a.zoom == ZoomHalf:
		half(&l, a, area)
	case a.w >= 160 && a.h >= 40:
		wide(&l, a, area)
	case a.w >= 100 && a.h >= 30:
		medium(&l, a, area)
	case a.h >= 45:
		tall(&l, a, area)
	default:
		stack(&l, a, area)
	}
	return l
}

// chrome places what is around the panes, and returns the area that is left for them.
func chrome(a layoutArgs) (Layout, Rect) {
	var l Layout
	line := func(y, h int) Rect { return Rect{0, y, a.w, h} }
	strip, aside, rule := 1, 2, 0
	if a.w >= 100 && a.h >= 30 {
		strip, rule = 2, 1
	}
	switch {
	case a.h < 20:
		aside = 1
	case a.h >= 40 && a.w < 160 && a.demo: // what it tells is long, and there is room
		aside = 4
	case a.noted:
		aside = 3
	}
	top := 0
	down := func(h int) Rect {
		top += h
		return line(top-h, h)
	}
	if !a.bare && (a.w >= 100 || a.h >= 45 || a.focus != LessonPane) { // there a lesson takes the place of what the sentence is about
		l.Why = down(a.why)
	}
	l.Header = down(1)
	if !a.bare {
		l.Strip = down(strip)
	}
	if a.asked {
		l.Traffic = down(1)
	}
	if a.store > 0 {
		l.Store = down(storeLines(a))
	}
	y := a.h - 1
	l.Footer = line(y, 1)
	y -= aside
	l.Aside = line(y, aside)
	if rule > 0 {
		y--
		l.Rule = line(y, 1)
	}
	if a.bare {
		return l, Rect{0, top, a.w, y - top}
	}
	if a.w >= 160 && a.h >= 40 {
		y--
		l.Legend = line(y, 1)
	}
	y--
	l.Scrubber = line(y, 1)
	return l, Rect{0, top, a.w, y - top}
}

// storeLines is how many lines there are for a store: one, or where there is room one of its members, one of who writes to it,
// and a table of members.
func storeLines(a layoutArgs) int {
	switch {
	case a.h >= 36:
		return 3 + min(max(a.store, 3), (a.h-27)/3)
	case a.w >= 100 && a.h >= 30:
		return 2
	}
	return 1
}

func wide(l *Layout, a layoutArgs, r Rect) {
	left, right := a.w*23/100, a.w*33/100
	mid := a.w - left - right
	columns := func(x, w, share int, up, down Pane) {
		top := r.H * share / 100
		l.Pane[up] = Rect{x, r.Y, w, top}
		l.Pane[down] = Rect{x, r.Y + top, w, r.H - top}
	}
	columns(0, left, 58, ObjectsPane, QueuePane)
	columns(left, mid, 58, LoopPane, CausePane)
	if a.lesson {
		share := 50
		if a.focus == LessonPane {
			share = 32
		}
		columns(left+mid, right, share, DetailPane, LessonPane)
	} else {
		l.Pane[DetailPane] = Rect{left + mid, r.Y, right, r.H}
	}
}

func medium(l *Layout, a layoutArgs, r Rect) {
	left := max(36, a.w/3)
	leftTop, rightTop := r.H*55/100, r.H*52/100
	if a.focus == LessonPane {
		rightTop = max(6, r.H*30/100)
	}
	l.Pane[ObjectsPane] = Rect{0, r.Y, left, leftTop}
	l.Pane[QueuePane] = Rect{0, r.Y + leftTop, left, r.H - leftTop}
	l.Pane[upper(a, CausePane)] = Rect{left, r.Y, a.w - left, rightTop}
	l.Pane[lower(a)] = Rect{left, r.Y + rightTop, a.w - left, r.H - rightTop}
}

// upper returns which of several panes that share a place is shown there: the
// loop, unless another has been asked for.
func upper(a layoutArgs, others ...Pane) Pane {
	for _, p := range others {
		if a.top == p {
			return p
		}
	}
	return LoopPane
}

// lower returns which of the panes that share the lower place is shown there.
func lower(a layoutArgs) Pane {
	if a.lesson && (a.low == LessonPane || a.focus == LessonPane) {
		return LessonPane
	}
	return DetailPane
}

func stack(l *Layout, a layoutArgs, r Rect) {
	if a.focus == LessonPane {
		l.Pane[LessonPane] = r
		return
	}
	top := upper(a, ObjectsPane, QueuePane, CausePane)
	share := 58
	if a.focus == DetailPane {
		share = 45
	}
	h := r.H * share / 100
	l.Pane[top] = Rect{0, r.Y, a.w, h}
	l.Pane[DetailPane] = Rect{0, r.Y + h, a.w, r.H - h}
}

func tall(l *Layout, a layoutArgs, r Rect) {
	order := []Pane{ObjectsPane, QueuePane, upper(a, CausePane), lower(a)}
	weight := map[Pane]int{ObjectsPane: 3, QueuePane: 2, DetailPane: 3, LessonPane: 6}
	total := 0
	share := func(p Pane) int {
		w := weight[p]
		if w == 0 {
			w = 4
		}
		if p == a.focus {
			w += 2
		}
		return w
	}
	for _, p := range order {
		total += share(p)
	}
	y, sum := r.Y, 0
	for _, p := range order {
		sum += share(p)
		end := r.Y + r.H*sum/total
		l.Pane[p] = Rect{0, y, a.w, end - y}
		y = end
	}
}

// half gives the focused pane one half of the area, and what goes with it the other.
func half(l *Layout, a layoutArgs, r Rect) {
	if a.w < 100 && a.focus == LessonPane {
		l.Pane[LessonPane] = r
		return
	}
	other := lower(a)
	if a.focus == DetailPane || a.focus == LessonPane {
		other = upper(a, ObjectsPane, QueuePane, CausePane)
	}
	if a.w >= 100 {
		w := a.w / 2
		x, beside := 0, w
		if a.focus == DetailPane || a.focus == LessonPane { // they belong to the right
			x, beside = a.w-w, 0
		}
		l.Pane[a.focus] = Rect{x, r.Y, w, r.H}
		l.Pane[other] = Rect{beside, r.Y, a.w - w, r.H}
		return
	}
	h := r.H * 72 / 100
	l.Pane[a.focus] = Rect{0, r.Y, a.w, h}
	l.Pane[other] = Rect{0, r.Y + h, a.w, r.H - h}
}

// paneAt returns the pane at a cell, or NoPane.
func (l *Layout) paneAt(x, y int) Pane {
	for p, r := range l.Pane {
		if x >= r.X && x < r.X+r.W && y >= r.Y && y < r.Y+r.H {
			return Pane(p)
		}
	}
	return NoPane
}
