// Package scorecard rates an operator by its scenarios: which of the seven habits of successful operators it has, and
// which phases of the capability model it reaches. The annotations of a scenario say what it is evidence of; a habit or
// phase without evidence is reported as not shown, or as lacking where a scenario says why there can be none.
package scorecard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// Verdict is the result of the evidence for a habit or a phase.
type Verdict string

// The verdicts.
const (
	// Held: there is evidence, and all of it passed.
	Held Verdict = "held"
	// NotHeld: some of the evidence failed.
	NotHeld Verdict = "not held"
	// NotShown: there is no evidence either way.
	NotShown Verdict = "not shown"
	// Lacking: there can be no evidence, and somebody said why.
	Lacking Verdict = "lacking"
)

// Evidence is one scenario with its result.
type Evidence struct {
	// Scenario is the scenario's name, such as z-08-kiyoshi-deleted.
	Scenario string `json:"scenario"`
	// Description says what it shows.
	Description string `json:"description,omitempty"`
	// Finding is the finding that it shows, such as Z-08; empty if none.
	Finding string `json:"finding,omitempty"`
	// Runs is the number of its finished runs, one for each row of its matrix.
	Runs int `json:"runs"`
	// Failed is the name of the first failed run, including its row of the matrix; empty if all passed.
	Failed string `json:"failed,omitempty"`
	// Why is the reason of that failure in one line.
	Why string `json:"why,omitempty"`
	// Journal is the path of the journal of that run.
	Journal string `json:"journal,omitempty"`
}

// Row is one habit or one phase.
type Row struct {
	// Number is the number of the habit or the phase.
	Number int `json:"number"`
	// Title is its title.
	Title string `json:"title"`
	// Verdict is the result.
	Verdict Verdict `json:"verdict"`
	// Why is the reason, if the verdict is Lacking.
	Why string `json:"why,omitempty"`
	// Evidence lists the scenarios that the verdict is based on.
	Evidence []Evidence `json:"evidence,omitempty"`
}

// Card is the rating of an operator.
type Card struct {
	// Operator is the operator's name.
	Operator string `json:"operator"`
	// Variant is the operator's variant; empty for an operator of somebody's own.
	Variant string `json:"variant,omitempty"`
	// Seed is the seed of everything random in the runs.
	Seed int64 `json:"seed"`
	// Habits are the rated habits.
	Habits []Row `json:"habits,omitempty"`
	// Phases are the rated phases.
	Phases []Row `json:"phases,omitempty"`
	// Toil is what faults cost, by who looks after the store.
	Toil []Play `json:"toil,omitempty"`
	// Capability is the highest phase that is reached; nil unless all phases were rated.
	Capability *int `json:"capability,omitempty"`
	// Summary is one sentence.
	Summary string `json:"summary"`
}

// Scope selects the operator, habits and phases to rate.
type Scope struct {
	// Operator and Variant select the operator; one of somebody's own has no variant.
	Operator, Variant string
	// Habits and Phases are the numbers to rate, in order. Default: all.
	Habits, Phases []int
	// Toil reports whether what faults cost is measured; OtherVariants whether also of other variants.
	Toil, OtherVariants bool
	// Language is the language of titles and of the summary: en or ja. Default: en.
	Language string
	// phasesAsked reports that the user named the phases.
	phasesAsked bool
}

// New returns the scope for an operator. With numbers, only these habits and phases are rated; without any, all are, and toil is
// measured.
func New(operator, variant, language string, habits, phases []int) Scope {
	s := Scope{Operator: operator, Variant: variant, Language: language, Habits: sorted(habits), Phases: sorted(phases), phasesAsked: len(phases) > 0}
	if len(habits) == 0 && len(phases) == 0 {
		s.Habits, s.Phases, s.Toil = upTo(format.Habits), upTo(format.Phases), true
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

// Tag says what a scenario is evidence of.
type Tag struct {
	// Name is the name of the scenario.
	Name string `json:"scenario"`
	// Operator is the scenario's operator.
	Operator string `json:"operator"`
	// Description says what it shows.
	Description string `json:"description,omitempty"`
	// Finding is the finding that it shows, such as Z-08; empty if none.
	Finding string `json:"finding,omitempty"`
	// Habits are the habits in scope that it is evidence of.
	Habits []int `json:"habits,omitempty"`
	// Phases are the phases in scope that it is evidence of.
	Phases []int `json:"phases,omitempty"`
	// Keeper is who looks after the store in a scenario that measures toil, as in [Play].
	Keeper string `json:"keeper,omitempty"`
}

// TagOf returns what a scenario of the operator is evidence of within the scope; false if that is nothing. A scenario
// that names its variant is evidence for that variant only. Without a variant the operator is somebody's own, and a
// scenario that names no operator is about it.
func (s Scope) TagOf(test *format.Test) (Tag, bool) {
	lab, err := format.ReadLab(test)
	if err != nil {
		return Tag{}, false
	}
	keeper := s.keeperOf(&lab)
	named := s.isAbout(&lab) || len(lab.Operators) == 0 && keeper == NoOperator
	t := Tag{
		Name: test.Name, Operator: s.Operator, Description: strings.Join(strings.Fields(test.Spec.Description), " "), Finding: lab.Finding,
		Keeper: keeper,
	}
	if cmp.Or(lab.Variant, s.Variant) == s.Variant {
		t.Habits, t.Phases = within(lab.Habits, s.Habits), within(lab.Phases, s.Phases)
	}
	return t, named && (keeper != "" || len(t.Habits)+len(t.Phases) > 0)
}

// isAbout reports whether a scenario is about the operator.
func (s Scope) isAbout(lab *format.Lab) bool {
	return slices.Contains(lab.Operators, s.Operator) || len(lab.Operators) == 0 && s.Variant == ""
}

// LacksOf returns what a scenario says that the operator lacks.
func (s Scope) LacksOf(test *format.Test) []format.Lack {
	lab, err := format.ReadLab(test)
	if err != nil || !s.isAbout(&lab) {
		return nil
	}
	return slices.DeleteFunc(lab.Lacks, func(l format.Lack) bool { return cmp.Or(l.Variant, s.Variant) != s.Variant })
}

// Without returns a scope of the habits and phases that neither scenarios nor reasons speak of, and no toil.
func (s Scope) Without(tags []Tag, lacks []format.Lack) Scope {
	tags = slices.Clone(tags)
	for _, l := range lacks {
		tags = append(tags, Tag{Habits: []int{l.Habit}, Phases: []int{l.Phase}})
	}
	s.Habits, s.Phases, s.Toil = slices.Clone(s.Habits), slices.Clone(s.Phases), false
	for _, t := range tags {
		s.Habits = slices.DeleteFunc(s.Habits, func(n int) bool { return slices.Contains(t.Habits, n) })
		s.Phases = slices.DeleteFunc(s.Phases, func(n int) bool { return slices.Contains(t.Phases, n) })
	}
	return s
}

func within(some, scope []int) []int {
	return sorted(slices.DeleteFunc(slices.Clone(some), func(n int) bool { return !slices.Contains(scope, n) }))
}

// Result is a scenario's tag with its runs.
type Result struct {
	Tag
	// Runs are the runs of the scenario.
	Runs []*report.Test
}

// Judge returns the card for results. What none of them shows and is among lacks is lacking. It returns an error if a run was not
// finished, because that shows nothing.
func (s Scope) Judge(results []Result, lacks ...format.Lack) (Card, error) {
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
	for _, l := range lacks {
		why := l.Why
		if s.Language == "ja" {
			why = cmp.Or(l.Japanese, why)
		}
		lack(c.Habits, l.Habit, why)
		lack(c.Phases, l.Phase, why)
	}
	c.Toil = plays(results, found)
	if len(c.Phases) == format.Phases {
		c.Capability = new(capability(c.Phases))
	}
	c.Summary = words.summary(c)
	return c, nil
}

// row rates a habit or phase by the results that are evidence of its number.
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

// lack notes that the row of a number is lacking, unless a scenario shows something of it.
func lack(rows []Row, number int, why string) {
	for i := range rows {
		if rows[i].Number == number && rows[i].Verdict == NotShown {
			rows[i].Verdict, rows[i].Why = Lacking, why
		}
	}
}

// capability returns the number of the last phase before the first one that is not held.
func capability(rows []Row) int {
	for i, r := range rows {
		if r.Verdict != Held {
			return i
		}
	}
	return len(rows)
}

// evidence summarizes the runs. Skipped runs do not count.
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

// why returns the reason of a failed run in one line: the first failed operation, or else the first finding.
func why(run *report.Test) string {
	for step, op := range run.FailedOperations() {
		return step.Name + ": " + sentence(op)
	}
	for _, f := range run.Findings {
		return "oracle " + f.Oracle + ": " + oneLine(f.Message)
	}
	return ""
}

// sentence describes the failure of an operation.
func sentence(op *report.Operation) string {
	subject := strings.TrimSpace(op.Type + " " + op.Name)
	if len(op.Failure.Differences) > 0 {
		d := op.Failure.Differences[0]
		return oneLine(subject + ": " + d.Path + ": " + d.Message)
	}
	return oneLine(subject + ": " + op.Failure.Message)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Fails reports whether a rated habit, or a phase that the user named, is not held. Other phases may be not held: an
// operator need not have all of them. What is lacking for a reason, or not shown, is no failure.
func (s Scope) Fails(c Card) bool {
	return count(c.Habits, NotHeld) > 0 || s.phasesAsked && count(c.Phases, NotHeld) > 0
}
