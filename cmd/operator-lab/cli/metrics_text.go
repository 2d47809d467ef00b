package cli

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"
	"github.com/dustin/go-humanize"

	"github.com/operator-lab/operator-lab/sandbox/metrics"
	"github.com/operator-lab/operator-lab/sandbox/plot"
)

// Sizes of plots, in characters.
const (
	plotColumns = 60 // the most points of a line
	onceWidth   = 100
	onceHeight  = 6
	labelWidth  = 7 // of the values at the left axis
	leastHeight = 2
	mostHeight  = 12
	// around is what a plot has besides its area: title, axis and legend.
	around = 3
)

// metricsText returns a picture as lines of a width. The plots are as high as the height allows; 0: as high as is good.
func metricsText(p *metrics.Picture, where string, width, height int) []string {
	head := fmt.Sprintf("%s  %s  %d of %d answer", p.At.Format(time.TimeOnly), where, p.Answering(), len(p.Targets))
	lines := []string{head}
	for _, t := range p.Targets {
		if t.Error != "" {
			lines = append(lines, t.Name()+": "+t.Error)
		}
	}
	lines = append(lines, "")
	alerts := alertLines(p)
	columns := 1
	if width >= 2*(labelWidth+2+16)+2 {
		columns = 2
	}
	rows := 0
	for of := range slices.Values(subjects(p)) {
		rows += (len(plotsOf(p, of)) + columns - 1) / columns
	}
	area := onceHeight
	if height > 0 && rows > 0 {
		area = min(max((height-len(lines)-len(alerts)-1)/rows-around, leastHeight), mostHeight)
	}
	var plots []string
	for _, of := range subjects(p) {
		for row := range slices.Chunk(plotsOf(p, of), columns) {
			plots = append(plots, beside(row, p.At, (width-2*(columns-1))/columns, area)...)
		}
	}
	if len(plots) == 0 {
		plots = []string{"no metrics of controllers or of etcd yet"}
	}
	if room := height - len(lines) - len(alerts) - 1; height > 0 && len(plots) > room {
		plots = plots[:max(room, 0)] // the alerts are what matters
	}
	return slices.Concat(lines, plots, []string{""}, alerts)
}

// subjects returns what there are plots of.
func subjects(p *metrics.Picture) []string {
	var all []string
	for _, one := range p.Plots {
		if !slices.Contains(all, one.Of) {
			all = append(all, one.Of)
		}
	}
	return all
}

func plotsOf(p *metrics.Picture, of string) (all []metrics.Plot) {
	for _, one := range p.Plots {
		if one.Of == of {
			all = append(all, one)
		}
	}
	return all
}

// beside returns plots side by side, each in a width.
func beside(row []metrics.Plot, at time.Time, width, height int) []string {
	out := make([]string, height+around)
	for i, one := range row {
		for j, line := range plotLines(one, at, width, height) {
			if i > 0 {
				out[j] += strings.Repeat(" ", max(i*(width+2)-displaywidth.String(out[j]), 0))
			}
			out[j] += cut(line, width)
		}
	}
	for i := range out {
		out[i] = strings.TrimRight(out[i], " ")
	}
	return out
}

// plotLines returns a plot with its title above and its legend below.
func plotLines(p metrics.Plot, at time.Time, width, height int) []string {
	begin, high := at, 0.0
	for _, l := range p.Lines {
		for _, point := range l.Points {
			high = math.Max(high, point.Value)
			if point.At.Before(begin) {
				begin = point.At
			}
		}
	}
	span := max(at.Sub(begin), time.Second)
	canvas := plot.New(width-labelWidth-2, height)
	var legend, without []string
	for i, l := range p.Lines {
		mark := byte('a' + i%26)
		for _, point := range l.Points {
			y := 0.0
			if high > 0 {
				y = point.Value / high
			}
			canvas.Put(1-float64(at.Sub(point.At))/float64(span), y, mark)
		}
		if v, is := l.Now(at); is {
			legend = append(legend, fmt.Sprintf("%c %s %s", mark, inUnit(v, p.Unit), l.Name))
		} else {
			without = append(without, fmt.Sprintf("%c - %s", mark, l.Name))
		}
	}
	legend = append(legend, without...)
	top := ""
	if high > 0 {
		top = inUnit(high, p.Unit)
	}
	out := append([]string{p.Name + ": " + p.Title}, canvas.Rows(labelWidth, top, inUnit(0, p.Unit))...)
	return append(out, fmt.Sprintf("%*s  %s", labelWidth, "-"+span.Round(time.Second).String(), strings.Join(legend, ", ")))
}

// inUnit returns a value with its unit, in at most seven characters.
func inUnit(v float64, unit metrics.Unit) string {
	switch unit {
	case metrics.Seconds:
		d := time.Duration(v * float64(time.Second))
		for _, to := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
			if d >= to {
				return d.Round(to / 10).String()
			}
		}
		return d.String()
	case metrics.Ratio:
		if percent := 100 * v; percent >= 0.01 || percent == 0 {
			return short(percent) + "%"
		}
		return "<0.01%"
	case metrics.PerSecond:
		return short(v) + "/s"
	}
	return short(v)
}

// short returns a number with three digits.
func short(v float64) string {
	if v >= 1000 {
		value, prefix := humanize.ComputeSI(v)
		return strconv.FormatFloat(value, 'g', 3, 64) + prefix
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// cut cuts a line to a width.
func cut(line string, width int) string {
	return displaywidth.TruncateString(line, width, "…")
}

// alertLines returns the alerts: what fires and what is pending first, then what fired, and the rules of which there is
// nothing in one line.
func alertLines(p *metrics.Picture) []string {
	var lines, quiet []string
	for _, state := range []metrics.State{metrics.Firing, metrics.Pending, metrics.Inactive} {
		for _, r := range p.Alerts {
			for _, a := range r.Alerts {
				if a.State == state {
					lines = append(lines, alertLine(r.Name, a, p.At))
				}
			}
		}
	}
	for _, r := range p.Alerts {
		if r.Error != "" {
			lines = append(lines, fmt.Sprintf("rule %s of %s cannot be evaluated: %s", r.Name, r.File, r.Error))
		} else if len(r.Alerts) == 0 {
			quiet = append(quiet, r.Name)
		}
	}
	if len(quiet) > 0 {
		lines = append(lines, "inactive: "+strings.Join(quiet, ", "))
	}
	return lines
}

// alertLine returns an alert in one line.
func alertLine(name string, a metrics.Alert, at time.Time) string {
	state := string(a.State)
	switch a.State {
	case metrics.Firing:
		state = strings.ToUpper(state)
	case metrics.Inactive:
		state = "over"
	}
	line := fmt.Sprintf("%-7s %s since %s (%s)", state, name, a.Since().Format(time.TimeOnly), at.Sub(a.Since()).Round(time.Second))
	about := cmp.Or(a.Annotations["summary"], a.Annotations["message"], a.Annotations["description"])
	if about != "" && a.State != metrics.Inactive { // else it is not so any more
		line += ": " + strings.Join(strings.Fields(about), " ")
	}
	return line + " " + alertLabels(a)
}

// alertLabels returns the labels of an alert that are not about how its metrics were read.
func alertLabels(a metrics.Alert) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(a.Labels)) {
		if !slices.Contains([]string{"alertname", "container", "instance", "job"}, key) {
			words = append(words, key+"="+a.Labels[key])
		}
	}
	return "{" + strings.Join(words, ", ") + "}"
}

// told is what was said about a target or an alert.
type told struct {
	is   string // what it is now, without how long
	line string
	gone string // said when it is not there any more; empty: nothing is
}

// lines returns what prints a line for each target and each alert that has changed.
func (l *metricsLook) lines() func(*metrics.Picture) error {
	before, empty := map[string]told{}, false
	return func(p *metrics.Picture) error {
		if why := l.nothing(p); why != nil && !empty {
			empty = true
			fmt.Fprintln(l.io.err, why.Error()+" so far")
		}
		say := func(line string) { fmt.Fprintln(l.io.out, p.At.Format(time.TimeOnly), line) }
		now := map[string]told{}
		note := func(key string, t told) {
			if now[key] = t; before[key].is != t.is {
				say(t.line)
			}
		}
		for _, t := range p.Targets {
			is := "answers"
			if !t.Up {
				is = t.Error
			}
			note("target "+t.Name()+t.Path, told{is, t.Name() + ": " + is, t.Name() + ": gone"})
		}
		for _, r := range p.Alerts {
			rule := strings.Join([]string{r.File, r.Group, r.Name}, "/")
			if r.Error != "" {
				note("rule "+rule, told{is: r.Error, line: fmt.Sprintf("rule %s cannot be evaluated: %s", r.Name, r.Error)})
			}
			for _, a := range r.Alerts {
				t := told{is: string(a.State) + a.Since().String(), line: alertLine(r.Name, a, p.At)}
				if a.State == metrics.Pending {
					t.gone = fmt.Sprintf("%-7s %s %s", "over", r.Name, alertLabels(a))
				}
				note(fmt.Sprint("alert ", rule, a.Labels), t)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(before)) {
			if _, still := now[key]; !still && before[key].gone != "" {
				say(before[key].gone)
			}
		}
		before = now
		return nil
	}
}
