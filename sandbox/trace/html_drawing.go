package trace

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"
)

// The drawing: a lane for each key and for each actor outside of the loop, a bar for each reconcile, a mark for
// everything else, and arcs from causes to effects. Reconciles take milliseconds and minutes lie between them, so the
// axis is compressed: order is kept, idle time is drawn short. A strip above shows the same run on a linear time axis.

// Measures of the drawing in pixels.
const (
	axisHeight = 40
	laneHeight = 38
	barTop     = 13 // within the lane; arcs pass above
	barHeight  = 20
	leastWidth = 1080 // width of the whole drawing
	leastBar   = 19   // wide enough for a symbol
	leastMark  = 15
	tickRoom   = 78 // wide enough for a time such as 00:00.238
)

// htmlLanes bounds the number of lanes for keys, htmlActors of those for actors.
const (
	htmlLanes  = 40
	htmlActors = 4
)

// htmlDrawing is the template's data for the drawing.
type htmlDrawing struct {
	Width, Height int
	Lanes         []htmlLane
	Bars          []htmlBar
	Marks         []htmlBar
	Arcs          []htmlArc
	Ticks, Idle   []htmlTick
	Strip         []htmlBucket
	Ends          [2]string // the times of the strip's ends
	Crowded       bool      // arcs are shown only for the selection
	Undrawn       int       // keys without a lane
}

// htmlLane is a row of the drawing.
type htmlLane struct {
	Name, Of string
	Top      int
	Outside  bool
}

// htmlBar is the bar of a reconcile, or a mark.
type htmlBar struct {
	Anchor, Title string
	X, Y, W       int
	Look          htmlLook
	Waits         []int // positions where the events that woke it entered the queue
	Wait          int   // position of the first of them; X if it did not wait
	Writes        []int // positions of its writes
	Own           bool
	Lane          int
}

// Mid returns the vertical middle of the bar.
func (b htmlBar) Mid() int { return b.Y + barHeight/2 }

// IconX returns the left edge of its symbol.
func (b htmlBar) IconX() int { return b.X + b.W/2 - 6 }

// IconY returns the top edge of its symbol.
func (b htmlBar) IconY() int { return b.Y + barHeight/2 - 6 }

// Bottom returns the lower edge, where marks of writes are drawn.
func (b htmlBar) Bottom() int { return b.Y + barHeight }

// htmlArc leads from a cause to its effect. From and To are anchors.
type htmlArc struct{ Path, Class, From, To string }

// htmlTick is a label at the axis.
type htmlTick struct {
	X, W int
	Text string
}

// htmlBucket is an interval of the strip.
type htmlBucket struct {
	X, H, Bad int // heights for all reconciles and for the failed ones
	Href      string
	Title     string
}

// drawer builds the drawing.
type drawer struct {
	*htmlMaker
	d     htmlDrawing
	axis  axis
	lanes map[any]int // QueueKey or actor -> lane
	bars  map[int64]*htmlBar
	marks map[int64]*htmlBar // by Seq
}

func (m *htmlMaker) draw() htmlDrawing {
	d := &drawer{htmlMaker: m, lanes: map[any]int{}, bars: map[int64]*htmlBar{}, marks: map[int64]*htmlBar{}}
	if len(m.reconciles) == 0 {
		return d.d
	}
	d.layLanes()
	d.axis = newAxis(m.points())
	d.d.Width = max(leastWidth, d.axis.width()) + tickRoom - leastBar
	d.d.Height = axisHeight + len(d.d.Lanes)*laneHeight + 6
	d.drawMarks()
	d.drawBars()
	d.drawArcs()
	d.ticks()
	d.strip()
	return d.d
}

// layLanes gives each actor and each key a lane, in order of appearance. If there are too many keys, those with the
// most reconciles get one.
func (d *drawer) layLanes() {
	for _, e := range d.aside {
		if name, marked := laneOf(e); marked && !d.has(name) && len(d.lanes) < htmlActors {
			d.lane(name, htmlLane{Name: htmlText(name), Outside: true})
		}
	}
	count := map[QueueKey]int{}
	var order []QueueKey
	for _, reconcile := range d.reconciles {
		k := reconcile.queueKey()
		if count[k]++; count[k] == 1 {
			order = append(order, k)
		}
	}
	drawn := slices.Clone(order)
	sort.SliceStable(drawn, func(i, k int) bool { return count[drawn[i]] > count[drawn[k]] })
	drawn = drawn[:min(len(drawn), htmlLanes)]
	for _, k := range order {
		if slices.Contains(drawn, k) {
			d.lane(k, htmlLane{Name: htmlText(k.Key.String()), Of: htmlText(orElse(k.Controller, k.Operator))})
		}
	}
	d.d.Undrawn = len(order) - len(drawn)
}

func (d *drawer) has(lane any) bool {
	_, has := d.lanes[lane]
	return has
}

func (d *drawer) lane(of any, l htmlLane) {
	d.lanes[of] = len(d.d.Lanes)
	l.Top = axisHeight + len(d.d.Lanes)*laneHeight
	d.d.Lanes = append(d.d.Lanes, l)
}

// laneOf returns the lane of a mark. Events of recorders and log lines get no mark.
func laneOf(e *Event) (string, bool) {
	switch e.Kind {
	case KindCall, KindHold:
		return orElse(e.Actor, "?"), e.Via != ViaRecorder
	case KindControl:
		return orElse(e.Actor, "you"), true
	case KindFault:
		return orElse(e.Actor, "lab"), true
	case KindTraffic:
		return orElse(e.Actor, "traffic"), true
	case KindMembers, KindWrites, KindPackage:
		return orElse(e.Actor, string(e.Kind)), true
	case KindOperator:
		return "you", true // operators are started and stopped on your request
	}
	return "", false
}

// points returns the times that must be distinguishable on the axis.
func (m *htmlMaker) points() []axisPoint {
	var out []axisPoint
	for _, reconcile := range m.reconciles {
		began, ended := m.bounds(reconcile)
		out = append(out, axisPoint{began, leastBar}, axisPoint{ended, 0})
	}
	for _, e := range m.aside {
		if _, marked := laneOf(e); marked {
			out = append(out, axisPoint{sentAt(e), leastMark})
		}
	}
	return out
}

// bounds returns when a reconcile began and ended; the end is always later, even if a damaged file says otherwise.
func (m *htmlMaker) bounds(reconcile *Reconcile) (began, ended time.Duration) {
	began, ended = max(0, reconcile.Started), reconcile.Ended
	if reconcile.Running() {
		ended = m.at
	}
	if began > math.MaxInt64-2 {
		began = math.MaxInt64 - 2
	}
	return began, max(began+1, ended)
}

func (d *drawer) drawMarks() {
	d.d.Marks = make([]htmlBar, 0, len(d.aside)) // never grows: pointers into it are kept
	for _, e := range d.aside {
		name, marked := laneOf(e)
		if !marked || !d.has(name) {
			continue
		}
		lane := d.lanes[name]
		d.d.Marks = append(d.d.Marks, htmlBar{
			Anchor: fmt.Sprintf("e%d", e.Seq), Title: htmlText(htmlClock(sentAt(e)) + " " + d.Why(e, d.l)), Lane: lane,
			X: d.axis.x(sentAt(e)), Y: d.d.Lanes[lane].Top + barTop, W: leastMark, Look: htmlMarkOf(e),
		})
		d.marks[e.Seq] = &d.d.Marks[len(d.d.Marks)-1]
	}
}

func (d *drawer) drawBars() {
	d.d.Bars = make([]htmlBar, 0, len(d.reconciles)) // never grows: pointers into it are kept
	for _, reconcile := range d.reconciles {
		lane, drawn := d.lanes[reconcile.queueKey()]
		if !drawn {
			continue
		}
		began, ended := d.bounds(reconcile)
		b := htmlBar{
			Anchor: fmt.Sprintf("r%d", reconcile.ID), Lane: lane, Look: htmlLookOf(reconcile), Own: d.Own(reconcile),
			X: d.axis.x(began), Y: d.d.Lanes[lane].Top + barTop,
			Title: htmlText(fmt.Sprintf("#%d %s: %s, %s", reconcile.ID, reconcile.Key, d.OutcomeText(reconcile, d.l), d.WokenText(reconcile, d.l))),
		}
		b.W, b.Wait = max(d.axis.x(ended)-b.X, leastBar-2), b.X
		for i, e := range reconcile.Woken {
			if x := d.axis.x(e.At); i < 20 && x < b.X {
				b.Waits = append(b.Waits, x)
				b.Wait = min(b.Wait, x)
			}
		}
		for _, e := range reconcile.Calls() {
			if e.IsWrite() && !e.Failed() && len(b.Writes) < 20 {
				b.Writes = append(b.Writes, min(max(d.axis.x(sentAt(e)), b.X+4), b.X+b.W-4))
			}
		}
		d.d.Bars = append(d.d.Bars, b)
		d.bars[reconcile.ID] = &d.d.Bars[len(d.d.Bars)-1]
	}
}

// drawArcs draws an arc from each write or timer to the reconcile that it caused.
func (d *drawer) drawArcs() {
	for _, reconcile := range d.reconciles {
		to := d.bars[reconcile.ID]
		if to == nil {
			continue
		}
		seen := map[*htmlBar]bool{}
		for i, w := range d.Wakes(reconcile) {
			from, x, class := d.origin(w)
			if i >= htmlChains || from == nil || from == to || seen[from] {
				continue
			}
			seen[from] = true
			d.d.Arcs = append(d.d.Arcs, htmlArc{Path: arcPath(*from, x, *to), Class: class, From: from.Anchor, To: to.Anchor})
		}
	}
	d.d.Crowded = len(d.d.Arcs) > 120
}

// origin returns the bar or mark of the cause of a reconcile, the position in it and the arc's class.
func (d *drawer) origin(w Wake) (from *htmlBar, x int, class string) {
	switch {
	case w.Requeue != nil:
		if from = d.bars[w.Requeue.Reconcile]; from != nil {
			return from, from.X + from.W - 5, "timer"
		}
	case w.Write != nil:
		if from = d.marks[w.Write.Seq]; from != nil {
			return from, from.X + from.W/2, "other"
		}
		if from = d.bars[w.Write.Reconcile]; from != nil {
			x = min(max(d.axis.x(sentAt(w.Write)), from.X+4), from.X+from.W-4)
			if w.Own {
				return from, x, "own"
			}
			return from, x, "other"
		}
	}
	return nil, 0, ""
}

// arcPath returns the curve from a point of a bar to the beginning of another.
func arcPath(from htmlBar, x int, to htmlBar) string {
	end := to.X + 5
	switch {
	case from.Lane == to.Lane:
		top := from.Y - 14
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x, from.Y, x, top, end, top, end, to.Y-2)
	case from.Lane < to.Lane:
		mid := (from.Bottom() + to.Y) / 2
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x, from.Bottom(), x, mid, end, mid, end, to.Y-2)
	}
	mid := (from.Y + to.Bottom()) / 2
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x, from.Y, x, mid, end, mid, end, to.Bottom()+2)
}
