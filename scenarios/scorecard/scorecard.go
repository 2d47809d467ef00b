// Package scorecard judges an operator by what its scenarios show: which of the seven habits of successful operators it
// has, and which phases of the capability model it reaches. A scenario says in its annotations what it is evidence of;
// what no scenario shows is said to be not shown, and never taken for granted.
package scorecard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// Verdict is what the evidence says.
type Verdict string

// The verdicts.
const (
	// Held: there is evidence, and all of it passed.
	Held Verdict = "held"
	// NotHeld: some of the evidence failed.
	NotHeld Verdict = "not held"
	// NotShown: there is no evidence either way.
	NotShown Verdict = "not shown"
)

// Evidence is one scenario and what came of it.
type Evidence struct {
	// Scenario by its name, such as z-08-kiyoshi-deleted.
	Scenario string `json:"scenario"`
	// Description is what it shows.
	Description string `json:"description,omitempty"`
	// Finding that it is about, such as Z-08; empty if none.
	Finding string `json:"finding,omitempty"`
	// Runs of it: one for each row of its matrix, as far as it came.
	Runs int `json:"runs"`
	// Failed is the first run that did, by the name that it has as a row of its matrix; empty if all passed.
	Failed string `json:"failed,omitempty"`
	// Why that one failed, in one line.
	Why string `json:"why,omitempty"`
	// Journal of that one.
	Journal string `json:"journal,omitempty"`
}

// Row is one habit or one phase.
type Row struct {
	Number   int        `json:"number"`
	Title    string     `json:"title"`
	Verdict  Verdict    `json:"verdict"`
	Evidence []Evidence `json:"evidence,omitempty"`
}

// Card says where an operator stands.
type Card struct {
	Operator string `json:"operator"`
	Variant  string `json:"variant"`
	// Seed of everything random in the runs.
	Seed int64 `json:"seed"`
	// Habits and Phases that were looked at.
	Habits []Row `json:"habits,omitempty"`
	Phases []Row `json:"phases,omitempty"`
	// Capability is the highest phase that is reached; nil unless all phases were looked at.
	Capability *int `json:"capability,omitempty"`
	// Summary is one sentence.
	Summary string `json:"summary"`
}

// Scope is which operator is looked at, and how closely.
type Scope struct {
	// Operator and its variant.
	Operator, Variant string
	// Habits and Phases to look at, in order. Default of both: all of them.
	Habits, Phases []int
	// Language of titles and of the summary: en or ja. Default: en.
	Language string
	// phasesAsked: the phases are looked at because somebody named them.
	phasesAsked bool
}

// New returns the scope for an operator. Without numbers it has all habits and phases, else only those.
func New(operator, variant, language string, habits, phases []int) Scope {
	s := Scope{Operator: operator, Variant: variant, Language: language, Habits: sorted(habits), Phases: sorted(phases), phasesAsked: len(phases) > 0}
	if len(habits) == 0 && len(phases) == 0 {
		s.Habits, s.Phases = upTo(format.Habits), upTo(format.Phases)
	}
	return s
}

func sorted(numbers []int) []int { return slices.Compact(slices.Sorted(slices.Values(numbers))) }

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// Tag is what a scenario is evidence of.
type Tag struct {
	// Name of the scenario, and its operator.
	Name     string `json:"scenario"`
	Operator string `json:"operator"`
	// Description is what it shows.
	Description string `json:"description,omitempty"`
	// Finding that it is about, such as Z-08; empty if none.
	Finding string `json:"finding,omitempty"`
	// Habits and Phases that it is evidence of, as far as they are in scope.
	Habits []int `json:"habits,omitempty"`
	Phases []int `json:"phases,omitempty"`
}

// TagOf returns what a scenario of the operator is evidence of within the scope; it reports false if that is nothing. A
// scenario that names its variant is about that one, and says nothing of the others.
func (s Scope) TagOf(test *format.Test) (Tag, bool) {
	lab, err := format.ReadLab(test)
	if err != nil || !slices.Contains(lab.Operators, s.Operator) || cmp.Or(lab.Variant, s.Variant) != s.Variant {
		return Tag{}, false
	}
	t := Tag{
		Name: test.Name, Operator: s.Operator, Description: strings.Join(strings.Fields(test.Spec.Description), " "), Finding: lab.Finding,
		Habits: within(lab.Habits, s.Habits), Phases: within(lab.Phases, s.Phases),
	}
	return t, len(t.Habits)+len(t.Phases) > 0
}

func within(some, scope []int) []int {
	return sorted(slices.DeleteFunc(slices.Clone(some), func(n int) bool { return !slices.Contains(scope, n) }))
}

// Result is what a scenario is evidence of, and its runs.
type Result struct {
	Tag
	Runs []*report.Test
}

// Judge makes the card of results. The error is for runs that did not come to an end: they show nothing.
func (s Scope) Judge(results []Result) (Card, error) {
	c := Card{Operator: s.Operator, Variant: s.Variant}
	found := map[string]Evidence{}
	for _, r := range results {
		e, err := r.evidence()
		if err != nil {
			return Card{}, err
		}
		found[r.Name] = e
	}
	words := wordsOf(s.Language)
	for _, n := range s.Habits {
		c.Habits = append(c.Habits, row(n, words.habits[n-1], results, found, func(t Tag) []int { return t.Habits }))
	}
	for _, n := range s.Phases {
		c.Phases = append(c.Phases, row(n, phases[n-1], results, found, func(t Tag) []int { return t.Phases }))
	}
	if len(c.Phases) == format.Phases {
		c.Capability = new(capability(c.Phases))
	}
	c.Summary = words.summary(c)
	return c, nil
}

// row judges by those results that are about its number.
func row(n int, title string, results []Result, found map[string]Evidence, about func(Tag) []int) Row {
	r := Row{Number: n, Title: title, Verdict: NotShown}
	for _, result := range results {
		e := found[result.Name]
		if e.Runs == 0 || !slices.Contains(about(result.Tag), n) {
			continue
		}
		r.Evidence = append(r.Evidence, e)
		switch {
		case e.Failed != "":
			r.Verdict = NotHeld
		case r.Verdict == NotShown:
			r.Verdict = Held
		}
	}
	return r
}

// capability is the number of the last phase before the first one that is not held.
func capability(rows []Row) int {
	for i, r := range rows {
		if r.Verdict != Held {
			return i
		}
	}
	return len(rows)
}

// evidence sums up the runs. One that was skipped counts for nothing.
func (r Result) evidence() (Evidence, error) {
	e := Evidence{Scenario: r.Name, Description: r.Description, Finding: r.Finding}
	for _, run := range r.Runs {
		switch run.Status() {
		case report.Skipped:
			continue
		case report.NotRun:
			return Evidence{}, fmt.Errorf("%s did not come to an end", run.Name)
		case report.Failed:
			if e.Failed == "" {
				e.Failed, e.Why, e.Journal = run.Name, why(run), run.Journal
			}
		}
		e.Runs++
	}
	return e, nil
}

// why a run failed, in one line: the first operation that did, else what an oracle saw.
func why(run *report.Test) string {
	for _, step := range run.Steps {
		for _, op := range step.Operations {
			if op.Failure != nil {
				return step.Name + ": " + sentence(op)
			}
		}
	}
	for _, f := range run.Findings {
		return "oracle " + f.Oracle + ": " + oneLine(f.Message)
	}
	return ""
}

// sentence is what is wrong with what an operation is about.
func sentence(op *report.Operation) string {
	subject := strings.TrimSpace(op.Type + " " + op.Name)
	if len(op.Failure.Differences) > 0 {
		d := op.Failure.Differences[0]
		return oneLine(subject + ": " + d.Path + ": " + d.Message)
	}
	return oneLine(subject + ": " + op.Failure.Message)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Lacks reports whether a habit that was looked at is not held, or a phase that was asked for. A phase that nobody asked for
// may lack: not every operator has to have all of them.
func (s Scope) Lacks(c Card) bool {
	return count(c.Habits, NotHeld) > 0 || s.phasesAsked && count(c.Phases, NotHeld) > 0
}
