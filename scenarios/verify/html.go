package verify

import (
	"embed"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

//go:embed html/page.tmpl
var htmlFiles embed.FS

// htmlPage is the data of the page: a report, with its table by places.
type htmlPage struct {
	*Report
	Operator string
	Places   []Place
}

// Place is a line of the table of a report: a write, an event or an object, and what came of each fault there.
type Place struct {
	Name  string
	Cells []Cell
}

// Cell is what came of a fault at a place; empty if there is no such plan.
type Cell struct {
	Result Result
	// Mark is one letter for it, Title says it in words.
	Mark, Title string
}

// Differences returns what was different in the end.
func (f Finding) Differences() []Difference {
	var out []Difference
	if f.outcome != nil {
		for _, d := range f.outcome.differences {
			out = append(out, d.Difference)
		}
	}
	return out
}

// NotSteady returns what went wrong, but not each time.
func (p htmlPage) NotSteady() []Finding {
	return slices.DeleteFunc(slices.Clone(p.Findings), func(f Finding) bool { return f.Steady })
}

// Journal returns the journal of the play that went wrong; nil if there is none.
func (f Finding) Journal() *trace.Journal {
	if f.outcome == nil {
		return nil
	}
	return f.outcome.journal
}

// Timeline returns the page of a finding's journal; empty if there is none.
func (p htmlPage) Timeline(f Finding) (string, error) {
	if f.Journal() == nil {
		return "", nil
	}
	var page strings.Builder
	err := trace.WriteHTML(&page, f.Journal(), trace.HTMLOptions{Title: f.Plan})
	return page.String(), err
}

// WriteHTML writes the report as one page that loads nothing: the findings with what was different and with their timelines,
// and the table of what was explored.
func (r *Report) WriteHTML(w io.Writer, operator string) error {
	t, err := template.New("page.tmpl").Funcs(template.FuncMap{"inc": func(i int) int { return i + 1 }}).ParseFS(htmlFiles, "html/page.tmpl")
	if err != nil {
		return err
	}
	return t.Execute(w, htmlPage{r, operator, r.Places()})
}

// Places returns the table by places, with a cell for each of Faults. Plans with two faults have two places, and are left out.
func (r *Report) Places() []Place {
	var out []Place
	for _, p := range r.Plans {
		if p.Fault == pairName {
			continue
		}
		i := slices.IndexFunc(out, func(place Place) bool { return place.Name == p.At })
		if i < 0 {
			i = len(out)
			out = append(out, Place{Name: p.At, Cells: make([]Cell, len(r.Faults))})
		}
		column := slices.IndexFunc(r.Faults, func(f FaultCount) bool { return f.Name == p.Fault })
		out[i].Cells[column] = Cell{p.Result, marks[p.Result], strings.TrimSuffix(p.Fault+": "+string(p.Result)+", "+p.Why, ", ")}
	}
	return out
}
