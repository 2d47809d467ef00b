package load

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
)

//go:embed html/page.tmpl
var htmlFiles embed.FS

// Chart is a plot of a phase for the page, with logarithms on both axes.
type Chart struct {
	// Lines are the figures, Guides the growth of n and n².
	Lines, Guides []ChartLine
	// Across and Up are the labels of the axes.
	Across, Up []ChartLabel
}

// ChartLine is a line through points, each "x,y" in pixels.
type ChartLine struct {
	Name, Colour string
	Points       string
	Dots         []ChartLabel
}

// ChartLabel is a text at a place, in pixels.
type ChartLabel struct {
	Text string
	X, Y float64
}

// The place of the plot in a chart, in pixels.
const (
	chartLeft, chartTop      = 60.0, 10.0
	chartWidth, chartHeight  = 400.0, 240.0
	chartBottom, chartMargin = chartTop + chartHeight, 16.0
)

// colours are those of the figures, by their marks.
var colours = map[byte]string{'r': "#0a7", 'c': "#36c", 'i': "#c33", 'k': "#a5c", 'w': "#c80"}

// Chart returns the plot of a phase; nil if there is none.
func (r *Report) Chart(phase string) *Chart {
	sizes, lines := r.sizes(phase), r.lines(phase)
	a, ok := newArea(sizes, lines)
	if !ok {
		return nil
	}
	place := func(n, v float64) ChartLabel {
		return ChartLabel{X: math.Round(chartLeft + chartWidth*a.x(n)), Y: math.Round(chartBottom - chartHeight*a.y(v))}
	}
	c := &Chart{}
	for _, l := range lines {
		line := ChartLine{Name: l.name, Colour: colours[l.mark]}
		var points []string
		for i, v := range l.values {
			dot := place(float64(sizes[i]), v)
			points = append(points, fmt.Sprintf("%g,%g", dot.X, dot.Y))
			dot.Text = fmt.Sprintf("%s with %s: %s", l.name, ofKind(sizes[i], r.Kind), number(v))
			line.Dots = append(line.Dots, dot)
		}
		line.Points = strings.Join(points, " ")
		c.Lines = append(c.Lines, line)
	}
	for power, name := range []string{1: "n", 2: "n²"} {
		if name == "" {
			continue
		}
		end := math.Min(a.right, math.Pow(a.high, 1/float64(power)))
		if end <= a.left {
			continue
		}
		from, to := place(a.left, math.Pow(a.left, float64(power))), place(end, math.Pow(end, float64(power)))
		c.Guides = append(c.Guides, ChartLine{Name: name, Points: fmt.Sprintf("%g,%g %g,%g", from.X, from.Y, to.X, to.Y), Dots: []ChartLabel{{name, to.X + 4, to.Y + 4}}})
	}
	for _, n := range sizes {
		at := place(float64(n), a.low)
		c.Across = append(c.Across, ChartLabel{short(float64(n)), at.X, chartBottom + chartMargin})
	}
	for v := a.low; v <= a.high; v *= 10 {
		c.Up = append(c.Up, ChartLabel{short(v), chartLeft - 6, place(a.left, v).Y + 4})
	}
	return c
}

// htmlPage is the data of the page.
type htmlPage struct {
	Reports []*Report
	Phases  []string
}

// Title names what was measured.
func (p htmlPage) Title() string {
	var names []string
	for _, r := range p.Reports {
		names = append(names, r.title())
	}
	return strings.Join(names, " and ")
}

// WriteHTML writes reports as one page that loads nothing, with those of several variants side by side.
func WriteHTML(w io.Writer, reports []*Report) error {
	t, err := template.New("page.tmpl").Funcs(template.FuncMap{
		"rows": (*Report).all, "heading": (*Report).heading, "notes": (*Report).notes, "summary": (*Report).summary, "requests": (*Report).requests,
		"sizes":  func(r *Report, phase string) []string { return texts(floats(r.sizes(phase)), number) },
		"number": func(n int64) string { return number(float64(n)) }, "bytes": func(n int64) string { return bytesText(float64(n)) },
		"legend": func(i int) int { return 20 + 18*i },
		"calls": func(r *Report, phase string) []CallCount {
			if sizes := r.sizes(phase); len(sizes) > 0 {
				return slices.Clone(r.last(phase).Calls)
			}
			return nil
		},
	}).ParseFS(htmlFiles, "html/page.tmpl")
	if err != nil {
		return err
	}
	return t.Execute(w, htmlPage{reports, Phases})
}
