package load

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// headings say what was done in each phase.
var headings = map[string]string{
	Create:  "CREATE: all objects, from the first one on",
	Change:  "CHANGE: %d changes, one object after the other",
	Relist:  "RELIST: all watches end with 410 Gone, a full resync; nothing has changed",
	Restart: "RESTART: the operator is started again; nothing has changed",
}

func (r *Report) heading(phase string) string {
	if phase == Change {
		return fmt.Sprintf(headings[phase], r.Changes)
	}
	return headings[phase]
}

// Name returns the variant, or else the operator.
func (r *Report) Name() string {
	if r.Variant != "" {
		return r.Variant
	}
	return r.Operator
}

// row is a line of a table: what is measured at each size, and how it grows.
type row struct {
	Name   string
	Cells  []string
	Growth string
}

// rows returns the table of a phase; without figures that are zero throughout.
func (r *Report) rows(phase string) (out []row) {
	for _, f := range figures {
		g := r.growth(phase, f.name)
		if g == nil || slices.Max(g.Values) == 0 {
			continue
		}
		text := short
		if f.name == "bytes" {
			text = bytesText
		}
		out = append(out, row{f.name, texts(g.Values, text), g.text()})
		if f.name == "calls" && phase == Create {
			out = append(out, row{Name: "calls per object", Cells: texts(divided(g.Values, floats(r.sizes(phase))), number)})
		}
	}
	times := func(name string, of func(*Phase) float64) {
		var values []float64
		for _, s := range r.at(phase) {
			values = append(values, of(s.Phases[phase]))
		}
		if len(values) > 0 && slices.Max(values) > 0 {
			out = append(out, row{Name: name, Cells: texts(values, number)})
		}
	}
	switch phase {
	case Create:
		times("reconciles/s", func(p *Phase) float64 { return float64(p.Reconciles) / p.Seconds })
	case Change:
		times("p50 ms", func(p *Phase) float64 { return 1000 * p.P50 })
		times("p99 ms", func(p *Phase) float64 { return 1000 * p.P99 })
	}
	return out
}

// machine returns the table of what the sizes took of the machine.
func (r *Report) machine() (out []row) {
	add := func(name string, text func(float64) string, of func(*Size) float64) {
		var values []float64
		for _, s := range r.at(Create) {
			values = append(values, of(s))
		}
		if len(values) > 0 && slices.Max(values) > 0 {
			out = append(out, row{Name: name, Cells: texts(values, text)})
		}
	}
	add("etcd grew by", bytesText, summing(func(s *Size) float64 { return float64(s.Etcd) }))
	add("CPU seconds", number, func(s *Size) float64 { return s.CPU })
	add("memory", bytesText, func(s *Size) float64 { return float64(s.Memory) })
	return out
}

func texts(values []float64, text func(float64) string) (out []string) {
	for _, v := range values {
		out = append(out, text(v))
	}
	return out
}

func floats(of []int) (out []float64) {
	for _, n := range of {
		out = append(out, float64(n))
	}
	return out
}

// text returns how a figure grows, and how far off that is.
func (g *Growth) text() string {
	if g.Model == "" {
		return "?"
	}
	atMost := ""
	if g.AtMost {
		atMost = "at most "
	}
	return fmt.Sprintf("%s%s (±%.0f%%)", atMost, g.Model, 100*g.Off)
}

// notes say what has to be known of the figures.
func (r *Report) notes() []string {
	out := slices.Clone(r.Notes)
	if !r.OwnProcess {
		out = append(out, "the operator runs in the lab's process: its CPU time and memory are not measured")
	}
	if f := NewFit(r.sizes(Create), make([]float64, len(r.sizes(Create)))); f.Model == "" {
		out = append(out, "how the figures grow cannot be said: "+f.Why)
	}
	if r.Missed > 0 {
		out = append(out, fmt.Sprintf("%s events were forgotten before they were counted: the figures are too low", number(float64(r.Missed))))
	}
	return out
}

// WriteText writes reports as text: those of several variants side by side.
func WriteText(w io.Writer, reports []*Report) error {
	var out strings.Builder
	for _, r := range reports {
		fmt.Fprintln(&out, r.title())
		for _, note := range r.notes() {
			fmt.Fprintf(&out, "  %s\n", note)
		}
	}
	for _, phase := range Phases {
		writeTable(&out, reports, phase)
	}
	for _, r := range reports {
		if sizes := r.sizes(Create); len(sizes) > 0 {
			r.writeRequests(&out, sizes)
		}
	}
	for _, r := range reports {
		for _, phase := range []string{Create, Relist} {
			if p := plot(r.sizes(phase), r.lines(phase)); p != "" {
				fmt.Fprintf(&out, "\n%s, %s, with so many objects\n%s", r.Name(), phase, p)
			}
		}
	}
	fmt.Fprintln(&out)
	for _, r := range reports { // last, where it is read first
		fmt.Fprintf(&out, "%s: %s\n", r.title(), r.summary())
		for _, f := range r.Findings {
			fmt.Fprintf(&out, "  ! %s\n    hint: %s\n", f.Text, f.Hint)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// title returns the operator with its variant.
func (r *Report) title() string { return strings.TrimSuffix(r.Operator+" "+r.Variant, " ") }

// summary says in a line what came of it.
func (r *Report) summary() string {
	fast, unknown := 0, 0
	for _, g := range r.Growth {
		switch {
		case g.Figure == "queue depth" || g.Figure == "conflicts":
		case g.Model == "":
			unknown++
		case g.fast():
			fast++
		}
	}
	switch {
	case len(r.Findings) > 0:
		return fmt.Sprintf("%d found", len(r.Findings))
	case fast > 0 || unknown > 0 || len(r.sizes(Restart)) < fewestSizes:
		return fmt.Sprintf("nothing was found; of %d figures %d grow fast, and how %d grow cannot be said", len(r.Growth), fast, unknown)
	}
	return "nothing grows faster than it has to"
}

// writeTable writes the table of a phase. With several reports each row has a line for each of them.
func writeTable(out *strings.Builder, reports []*Report, phase string) {
	var head []string
	names, wide := []string{}, 0
	for _, r := range reports {
		if sizes := texts(floats(r.sizes(phase)), short); len(sizes) > len(head) {
			head = sizes
		}
		wide = max(wide, len(r.Name()))
		for _, row := range r.all(phase) {
			if !slices.Contains(names, row.Name) {
				names = append(names, row.Name)
			}
		}
	}
	if len(head) == 0 {
		return
	}
	write := func(name, variant string, cells []string, growth string) {
		var line strings.Builder
		fmt.Fprintf(&line, "%-16s", name)
		if len(reports) > 1 {
			fmt.Fprintf(&line, " %-*s", wide, variant)
		}
		for _, cell := range cells {
			fmt.Fprintf(&line, " %8s", cell)
		}
		if growth != "" {
			line.WriteString("  " + growth)
		}
		fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	}
	fmt.Fprintf(out, "\n%s\n", reports[0].heading(phase))
	write("objects", "", head, "grows like")
	for _, name := range names {
		shown := name
		for _, r := range reports {
			rows := r.all(phase)
			if i := slices.IndexFunc(rows, func(row row) bool { return row.Name == name }); i >= 0 {
				write(shown, r.Name(), rows[i].Cells, rows[i].Growth)
				shown = ""
			}
		}
	}
}

// all returns the rows of a phase, with what all of it took of the machine in the first one.
func (r *Report) all(phase string) []row {
	rows := r.rows(phase)
	if phase == Create {
		rows = append(rows, r.machine()...)
	}
	return rows
}

// mostRequests is how many sorts of requests are listed.
const mostRequests = 8

// requests returns the requests of the phase create up to the last size, with the most frequent first.
func (r *Report) requests() []RequestCount {
	all := map[Request]Traffic{}
	sizes := r.at(Create)
	for _, s := range sizes {
		if s.Shard != sizes[len(sizes)-1].Shard {
			continue
		}
		for _, c := range s.Phases[Create].Requests {
			t := all[Request{c.Verb, c.Resource}]
			all[Request{c.Verb, c.Resource}] = Traffic{t.Requests + c.Requests, t.Sent + c.Sent, t.Received + c.Received}
		}
	}
	return newPhase(&tally{}, nil, all, 0).Requests
}

func (r *Report) writeRequests(out *strings.Builder, sizes []int) {
	n := float64(sizes[len(sizes)-1])
	fmt.Fprintf(out, "\nREQUESTS of %s until there were %s, and per object\n", r.Name(), ofKind(int(n), r.Kind))
	all := r.requests()
	for i, c := range all {
		if i == mostRequests {
			fmt.Fprintf(out, "… and %d more sorts\n", len(all)-i)
			break
		}
		fmt.Fprintf(out, "%-34s %8s %8s %9s %9s\n", c.Verb+" "+c.Resource, short(float64(c.Requests)), number(float64(c.Requests)/n),
			bytesText(float64(c.Sent+c.Received)), bytesText(float64(c.Sent+c.Received)/n))
	}
}
