package trace

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"
)

// axisPoint is a time that must be distinguishable on the axis, and the minimum room in pixels behind it.
type axisPoint struct {
	at   time.Duration
	room float64
}

// axis maps times to pixels, monotonically, with long intervals compressed.
type axis struct {
	at []time.Duration
	px []float64
}

// newAxis lays the points out from left to right. The room between two grows with the logarithm of the time between
// them.
func newAxis(points []axisPoint) axis {
	sort.Slice(points, func(i, k int) bool { return points[i].at < points[k].at })
	var a axis
	var rooms []float64
	for _, p := range points {
		if n := len(a.at); n > 0 && a.at[n-1] == p.at {
			rooms[n-1] = max(rooms[n-1], p.room)
			continue
		}
		a.at, rooms = append(a.at, p.at), append(rooms, p.room)
	}
	x := 12.0
	for i := range a.at {
		a.px = append(a.px, x)
		if i+1 < len(a.at) {
			x += rooms[i] + 3 + 5*math.Log2(1+float64(a.at[i+1]-a.at[i])/1e6)
		} else {
			x += rooms[i]
		}
	}
	a.stretch(x)
	return a
}

// stretch widens the axis to the width of a page, at most threefold.
func (a axis) stretch(width float64) {
	if width >= leastWidth {
		return
	}
	for i := range a.px {
		a.px[i] *= min(3, leastWidth/width)
	}
}

// x returns the pixel of a time.
func (a axis) x(at time.Duration) int {
	i := sort.Search(len(a.at), func(i int) bool { return a.at[i] > at })
	switch i {
	case 0:
		return 12
	case len(a.at):
		return int(a.px[i-1])
	}
	part := float64(at-a.at[i-1]) / float64(a.at[i]-a.at[i-1])
	return int(a.px[i-1] + part*(a.px[i]-a.px[i-1]))
}

func (a axis) width() int {
	if len(a.px) == 0 {
		return 0
	}
	return int(a.px[len(a.px)-1]) + leastBar
}

// ticks labels the axis where there is room, and labels idle intervals with their length.
func (d *drawer) ticks() {
	last := -tickRoom
	for i, at := range d.axis.at {
		x := int(d.axis.px[i])
		if x-last >= tickRoom {
			d.d.Ticks = append(d.d.Ticks, htmlTick{X: x, Text: htmlClock(at)})
			last = x
		}
	}
	// An interval is idle if no reconcile covers it.
	var until time.Duration
	for i, reconcile := range d.sorted() {
		began, ended := d.bounds(reconcile)
		from, to := d.axis.x(until), d.axis.x(began)
		if quiet := began - until; i > 0 && quiet >= 10*time.Millisecond && to-from >= 44 {
			d.d.Idle = append(d.d.Idle, htmlTick{X: from, W: to - from, Text: FormatDuration(quiet)})
		}
		until = max(until, ended)
	}
}

// sorted returns the reconciles by start time, which in a damaged journal may differ from their order.
func (d *drawer) sorted() []*Reconcile {
	out := slices.Clone(d.reconciles)
	sort.SliceStable(out, func(i, k int) bool { return out[i].Started < out[k].Started })
	return out
}

// Measures of the strip in units of its own; it is scaled to the page.
const (
	stripBuckets = 150
	stripHeight  = 30
)

// strip counts the reconciles in equal intervals of the whole run.
func (d *drawer) strip() {
	end := max(d.at, 1)
	for _, reconcile := range d.reconciles {
		_, ended := d.bounds(reconcile)
		end = max(end, ended)
	}
	var all, bad [stripBuckets]int
	var first [stripBuckets]*Reconcile
	most := 0
	for _, reconcile := range d.reconciles {
		began, _ := d.bounds(reconcile)
		i := min(stripBuckets-1, int(float64(began)/float64(end)*stripBuckets))
		if all[i]++; htmlLookOf(reconcile).Class == "error" {
			bad[i]++
		}
		if first[i] == nil {
			first[i] = reconcile
		}
		most = max(most, all[i])
	}
	for i, n := range all {
		if n == 0 {
			continue
		}
		b := htmlBucket{X: i, H: max(4, n*stripHeight/most), Href: d.href(first[i].ID)}
		if bad[i] > 0 {
			b.Bad = max(3, bad[i]*stripHeight/most)
		}
		b.Title = htmlClock(first[i].Started) + ": " + d.l.pick(
			fmt.Sprintf("%s, %d failed", plural(n, "reconcile"), bad[i]), fmt.Sprintf("reconcile %d 回、失敗 %d 回", n, bad[i]))
		d.d.Strip = append(d.d.Strip, b)
	}
	d.d.Ends = [2]string{htmlClock(0), htmlClock(end)}
}
