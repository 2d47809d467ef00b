package scorecard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// NoOperator is the keeper of a play without an operator.
const NoOperator = "none"

// Play is what the faults of one scenario have cost.
type Play struct {
	// Keeper is who looks after the store: the variant of the operator, the name of one of somebody's own, or NoOperator.
	Keeper string `json:"keeper"`
	// Scenario is the scenario's name.
	Scenario string `json:"scenario"`
	// Failed is the name of the scenario if it failed: then faults are missing. Why is the reason in one line.
	Failed string `json:"failed,omitempty"`
	Why    string `json:"why,omitempty"`
	// Journal is the path of the journal of a scenario that failed.
	Journal string `json:"journal,omitempty"`
	// Faults are what was measured, in the order of the scenario.
	Faults []report.Toil `json:"faults"`
}

// fault returns what a fault has cost; nil if it was not measured.
func (p *Play) fault(name string) *report.Toil {
	for i := range p.Faults {
		if p.Faults[i].Fault == name {
			return &p.Faults[i]
		}
	}
	return nil
}

// total returns the sum of all faults.
func (p *Play) total() (sum report.Toil) {
	for _, f := range p.Faults {
		sum.Actions += f.Actions
		sum.Decisions += f.Decisions
		sum.Outage += f.Outage
	}
	return sum
}

// keeperOf returns who looks after the store in a scenario that measures toil; empty if it measures none, or is of another variant
// than the one that was asked for.
func (s Scope) keeperOf(lab *format.Lab) string {
	switch {
	case !s.Toil || len(lab.Toil) == 0:
		return ""
	case len(lab.Operators) == 0 && s.Variant != "":
		return NoOperator
	case !s.OtherVariants && cmp.Or(lab.Variant, s.Variant) != s.Variant:
		return ""
	}
	return cmp.Or(lab.Variant, s.Variant, s.Operator)
}

// plays returns what the runs have measured: without an operator first.
func plays(results []Result, found map[string]Evidence) (all []Play) {
	for _, r := range results {
		e := found[r.Name]
		if r.Keeper == "" || e.Runs == 0 {
			continue
		}
		p := Play{Keeper: r.Keeper, Scenario: r.Name, Failed: e.Failed, Why: e.Why, Journal: e.Journal}
		for _, run := range r.Runs {
			for _, step := range run.Steps {
				if step.Toil != nil {
					p.Faults = append(p.Faults, *step.Toil)
				}
			}
		}
		all = append(all, p)
	}
	order := func(p Play) string {
		if p.Keeper == NoOperator {
			return "" // first
		}
		return p.Keeper
	}
	slices.SortStableFunc(all, func(a, b Play) int { return cmp.Compare(order(a), order(b)) })
	return all
}

// faultWidth and cellWidth are the widths of the columns of the table of toil.
const (
	faultWidth = 22
	cellWidth  = 18
)

// costs writes the table of the faults, with a column for each play.
func (p *page) costs(all []Play) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(p, "%s\n", p.theToil)
	var keepers, totals []string
	for i := range all {
		play := &all[i]
		keepers = append(keepers, cmp.Or(map[string]string{NoOperator: p.noOperator}[play.Keeper], play.Keeper))
		total := play.total()
		totals = append(totals, cell(&total))
		if play.Failed != "" {
			totals[i] = "?"
		}
	}
	p.columns("", keepers)
	for _, fault := range format.ToilFaults {
		var cells []string
		for i := range all {
			switch f := all[i].fault(fault); {
			case f != nil:
				cells = append(cells, cell(f))
			case all[i].Failed != "":
				cells = append(cells, "?")
			default:
				cells = append(cells, "-")
			}
		}
		p.columns(p.faults[fault], cells)
	}
	p.columns(p.total, totals)
	for line := range strings.SplitSeq(p.toilLegend, "\n") {
		p.fill(indent, line)
	}
	for _, play := range all {
		if play.Failed != "" {
			p.failure(Evidence{Scenario: play.Scenario, Failed: play.Failed, Why: play.Why, Journal: play.Journal})
		}
	}
	fmt.Fprintln(p)
}

// cell returns what a fault has cost: commands, those that decided something after a plus sign, and seconds.
func cell(f *report.Toil) string {
	count := fmt.Sprint(f.Actions)
	if f.Decisions > 0 {
		count += fmt.Sprintf(" +%d", f.Decisions)
	}
	return fmt.Sprintf("%-5s %6.1f s", count, f.Outage)
}

// columns writes a line of the table.
func (p *page) columns(title string, cells []string) {
	padded := []string{"", pad(title, faultWidth)}
	for _, c := range cells {
		padded = append(padded, pad(c, cellWidth))
	}
	fmt.Fprintln(p, strings.TrimRight(strings.Join(padded, " "), " "))
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-trace.TextWidth(text)))
}
