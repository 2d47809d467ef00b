package load

import (
	"fmt"
	"math"
	"slices"
	"strings"

	plotter "github.com/operator-lab/operator-lab/sandbox/plot"
)

// line is a figure in a plot.
type line struct {
	name   string
	mark   byte
	values []float64
}

// lines returns the figures of a phase that are plotted: those that are not zero at all sizes.
func (r *Report) lines(phase string) (out []line) {
	for _, of := range []struct {
		figure string
		mark   byte
	}{{"reconciles", 'r'}, {"calls", 'c'}, {"items", 'i'}, {"keys", 'k'}, {"no-op writes", 'w'}} {
		if g := r.growth(phase, of.figure); g != nil && slices.Max(g.Values) > 0 {
			out = append(out, line{of.figure, of.mark, g.Values})
		}
	}
	return out
}

// area maps sizes and values to a plot with logarithms on both axes.
type area struct{ left, right, low, high float64 }

// newArea returns the area of lines; false if there is nothing to draw, or only one size.
func newArea(sizes []int, lines []line) (a area, ok bool) {
	if len(sizes) < 2 || len(lines) == 0 {
		return a, false
	}
	a = area{left: float64(sizes[0]), right: float64(sizes[len(sizes)-1]), low: 1, high: 10}
	for _, l := range lines {
		a.high = math.Max(a.high, slices.Max(l.values))
	}
	a.high = math.Pow(10, math.Ceil(math.Log10(a.high)))
	return a, true
}

// x returns where a size is, from 0 to 1.
func (a area) x(n float64) float64 { return math.Log(n/a.left) / math.Log(a.right/a.left) }

// y returns where a value is, from 0 to 1; one below 1 is drawn as 1.
func (a area) y(v float64) float64 { return math.Log(math.Max(v, 1)/a.low) / math.Log(a.high/a.low) }

// How large a plot is, in characters.
const (
	plotWidth  = 60
	plotHeight = 12
)

// plot returns a plot of lines in characters: the marks of the values, * where there are several, and dots as slow as n and as fast as n².
func plot(sizes []int, lines []line) string {
	a, ok := newArea(sizes, lines)
	if !ok {
		return ""
	}
	canvas := plotter.New(plotWidth, plotHeight)
	put := func(n, v float64, mark byte) { canvas.Put(a.x(n), a.y(v), mark) }
	for i := range plotWidth {
		n := a.left * math.Pow(a.right/a.left, float64(i)/(plotWidth-1))
		if i%2 == 0 {
			put(n, n, plotter.Background)
			put(n, n*n, plotter.Background)
		}
	}
	for _, l := range lines {
		for i, v := range l.values {
			put(float64(sizes[i]), v, l.mark)
		}
	}
	var out strings.Builder
	for _, row := range canvas.Rows(9, short(a.high), short(a.low)) {
		fmt.Fprintln(&out, row)
	}
	axis := []byte(strings.Repeat(" ", plotWidth+8))
	for _, n := range sizes {
		text := short(float64(n))
		copy(axis[canvas.Column(a.x(float64(n))):], text)
	}
	fmt.Fprintf(&out, "%9s  %s\n", "", strings.TrimRight(string(axis), " "))
	var legend []string
	for _, l := range lines {
		legend = append(legend, string(l.mark)+" "+l.name)
	}
	fmt.Fprintf(&out, "%9s  %s, * several, dots: n and n²\n", "", strings.Join(legend, ", "))
	return out.String()
}

// short returns a number in at most seven characters.
func short(v float64) string {
	for _, unit := range []struct {
		name string
		of   float64
	}{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if v >= unit.of && (unit.of > 1e3 || v >= 1e5) {
			return number(v/unit.of) + unit.name
		}
	}
	return number(v)
}

// bytesText returns bytes with a unit.
func bytesText(v float64) string {
	for _, unit := range units[:3] {
		if v < 1024*unit.bytes || unit.name == "GiB" {
			if v < 10*unit.bytes {
				return fmt.Sprintf("%.1f%s", v/unit.bytes, unit.name)
			}
			return fmt.Sprintf("%.0f%s", v/unit.bytes, unit.name)
		}
	}
	return ""
}
