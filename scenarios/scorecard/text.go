package scorecard

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// width is the width of the text in terminal columns.
const width = 80

// indent precedes the evidence of a verdict.
const indent = "    "

// Write writes cards as text, with an empty line between them.
func Write(w io.Writer, language string, cards ...Card) error {
	var pages []string
	for _, c := range cards {
		p := &page{words: wordsOf(language), told: map[string]bool{}}
		fmt.Fprintf(p, "%s\n\n", c.name())
		p.group(p.theHabits, c.Habits)
		p.group(p.thePhases, c.Phases)
		p.costs(c.Toil)
		fmt.Fprintf(p, "%s\n", c.Summary)
		pages = append(pages, p.String())
	}
	_, err := io.WriteString(w, strings.Join(pages, "\n"))
	return err
}

// page formats a card as text.
type page struct {
	words
	strings.Builder
	told map[string]bool // scenarios whose failure was explained already
}

// group writes the habits or the phases, if there are any.
func (p *page) group(heading string, rows []Row) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(p, "%s\n", heading)
	for _, r := range rows {
		fmt.Fprintf(p, " %d  %s %s\n", r.Number, filled(p.verdicts[r.Verdict]), r.Title)
		p.evidence(r)
	}
	fmt.Fprintln(p)
}

// filled pads a verdict to the width of the widest one.
func filled(verdict string) string {
	return verdict + strings.Repeat(" ", max(0, len(NotShown)-trace.TextWidth(verdict)))
}

// evidence writes the evidence of a verdict: failed scenarios with the reason, passed ones by name.
func (p *page) evidence(r Row) {
	if r.Verdict == NotShown {
		p.fill(indent, p.notShown)
	}
	p.fill(indent, r.Why)
	var passed []string
	for _, e := range r.Evidence {
		if e.Failed == "" {
			passed = append(passed, e.Scenario)
			continue
		}
		p.failure(e)
	}
	label := p.shownBy
	if r.Verdict == NotHeld {
		label = "pass"
	}
	p.fill(indent+label+" ", strings.Join(passed, ", "))
}

// failure writes a failed scenario, with the reason the first time.
func (p *page) failure(e Evidence) {
	name := e.Failed
	if e.Finding != "" {
		name += " (" + e.Finding + ")"
	}
	p.fill(indent+"FAIL ", name)
	if !p.told[e.Scenario] {
		p.fill(indent+"     ", e.Description)
		p.fill(indent+"     ", e.Why)
		if e.Journal != "" {
			fmt.Fprintf(p, "%s     operator-lab replay %s\n", indent, e.Journal)
		}
	}
	p.told[e.Scenario] = true
}

// fill writes words within the width: the first line begins with first, the others are aligned below it. Without words
// it writes nothing.
func (p *page) fill(first, words string) {
	line, below := first, strings.Repeat(" ", trace.TextWidth(first))
	empty := true
	for word := range strings.FieldsSeq(words) {
		if !empty && trace.TextWidth(line)+1+trace.TextWidth(word) > width {
			fmt.Fprintln(p, line)
			line, empty = below, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	if !empty {
		fmt.Fprintln(p, line)
	}
}

// WriteTags writes a table of which scenarios are evidence of what.
func WriteTags(w io.Writer, tags []Tag) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "OPERATOR\tSCENARIO\tHABITS\tPHASES\tTOIL\tFINDING\tDESCRIPTION")
	for _, tag := range tags {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", tag.Operator, tag.Name, numbers(tag.Habits), numbers(tag.Phases),
			cmp.Or(tag.Keeper, "-"), cmp.Or(tag.Finding, "-"), tag.Description)
	}
	return t.Flush()
}

func numbers(all []int) string {
	var text []string
	for _, n := range all {
		text = append(text, strconv.Itoa(n))
	}
	return cmp.Or(strings.Join(text, ", "), "-")
}
