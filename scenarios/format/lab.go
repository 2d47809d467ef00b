package format

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// labPrefix is the prefix of the lab's annotations. Chainsaw ignores them.
const labPrefix = "operator-lab.dev/"

// Oracles are the names of the checks that run at the end of every test; a test can switch each off by name. The checks
// are in scenarios/oracle.
var Oracles = []string{"idempotent", "hot-loop", "panic", "leak", "live-delete", "observed-generation", "counts"}

// Lab holds the settings in the lab's annotations of a test.
type Lab struct {
	// Operators are the names of the operators that run during the test.
	Operators []string
	// Variant is the variant of the operators, unless the command line names one; empty: each operator's default.
	Variant string
	// Parameters are the parameters of the operators, in order. Their names are those of the operators' flags, without dashes.
	Parameters []Parameter
	// Off maps each oracle that is switched off to the reason.
	Off map[string]string
	// Stays maps the name of a step to the time for which its assertions must stay true.
	Stays map[string]time.Duration
	// GiveUp reports whether an assertion fails as soon as nothing can change any more, before its timeout.
	GiveUp bool
	// Counts is the total number of objects that the operators create and delete, such as "create Zundoko=5, create
	// Kiyoshi=1".
	Counts string
	// Japanese maps the name of a step to its description in Japanese.
	Japanese map[string]string
	// Habits are the habits of successful operators, 1 to 7, that the test demonstrates.
	Habits []int
	// Phases are the phases of the capability model, 1 to 5, that the test demonstrates.
	Phases []int
	// Lacks are the habits and phases of which no scenario of the operator can be evidence.
	Lacks []Lack
	// Writes is the name of the etcd cluster that is written to during the steps; empty: none is.
	Writes string
	// Toil maps the name of a step that waits until a store is whole again to the fault before it, one of [ToilFaults].
	Toil map[string]string
	// ByHand maps the name of a step that a person does to the time for which the next step of Toil may come true without it.
	ByHand map[string]time.Duration
	// Decisions maps the name of a step of ByHand that decides something to the reason why a person has to.
	Decisions map[string]string
	// Audience, Title and Finding are free text.
	Audience, Title, Finding string
}

// giveUpAtRest is the only value of the annotation give-up.
const giveUpAtRest = "at-rest"

// Habits and Phases are the numbers of habits and phases.
const (
	Habits = 7
	Phases = 5
)

// Parameter is one parameter of an operator.
type Parameter struct{ Name, Value string }

// ReadLab reads the annotations of a test. The error is Problems.
func ReadLab(t *Test) (Lab, error) {
	return readLab(&Loaded{Test: t})
}

// Lab reads the annotations of a test. The error is [Problems], with positions.
func (l *Loaded) Lab() (Lab, error) { return readLab(l) }

// readLab reads the annotations of a test.
func readLab(l *Loaded) (Lab, error) {
	r := &labReader{Loaded: l, lab: Lab{
		Off: map[string]string{}, Stays: map[string]time.Duration{}, Japanese: map[string]string{},
		Toil: map[string]string{}, ByHand: map[string]time.Duration{}, Decisions: map[string]string{},
	}}
	for _, key := range slices.Sorted(maps.Keys(l.Test.Annotations)) {
		if name, ok := strings.CutPrefix(key, labPrefix); ok {
			r.read(key, name, strings.TrimSpace(l.Test.Annotations[key]))
		}
	}
	r.checkToil()
	r.checkLacks()
	return r.lab, r.wrong.asError()
}

type labReader struct {
	*Loaded
	lab   Lab
	wrong Problems
}

func (r *labReader) problem(key, hint, message string, args ...any) {
	p := Problem{File: r.File, Line: r.Line, Message: "annotation " + key + ": " + fmt.Sprintf(message, args...), Hint: hint}
	if at, ok := r.annotations[key]; ok {
		p.File, p.Line, p.Column = at.File, at.Line, at.Column
	}
	r.wrong = append(r.wrong, p)
}

// read reads one annotation.
func (r *labReader) read(key, name, value string) {
	if value == "" {
		r.problem(key, "", "is empty")
		return
	}
	switch name {
	case "operator":
		r.operators(key, value)
	case "variant":
		r.lab.Variant = value
	case "parameters":
		r.parameters(key, value)
	case "counts":
		r.counts(key, value)
	case "give-up":
		if value != giveUpAtRest {
			r.problem(key, "write "+giveUpAtRest+", or leave it out", "%q is not when an assertion can give up", value)
		}
		r.lab.GiveUp = true
	case "habits":
		r.lab.Habits = r.numbers(key, value, "habit", Habits)
	case "phase":
		r.lab.Phases = r.numbers(key, value, "phase", Phases)
	case "writes":
		r.writes(key, value)
	case "audience":
		r.lab.Audience = value
	case "title":
		r.lab.Title = value
	case "finding":
		r.lab.Finding = value
	default:
		r.named(key, name, value)
	}
}

// counts checks and keeps the expected number of writes.
func (r *labReader) counts(key, value string) {
	if _, err := ParseCounts(value); err != nil {
		r.problem(key, `write verbs, kinds and numbers: "create Zundoko=5, create Kiyoshi=1"`, "%v", err)
		return
	}
	r.lab.Counts = value
}

// Count is the expected number of writes of one sort.
type Count struct {
	// What is a verb and a kind, such as "create Zundoko".
	What string
	// N is the number of writes.
	N int
}

// countedVerbs are the verbs that can be counted.
var countedVerbs = []string{"create", "update", "patch", "apply", "delete", "deletecollection"}

// ParseCounts parses a comma-separated list of verbs, kinds and numbers, such as "create Zundoko=5, create Kiyoshi=1".
func ParseCounts(text string) ([]Count, error) {
	var counts []Count
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		what, number, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(strings.TrimSpace(number))
		verb, kind, two := strings.Cut(strings.TrimSpace(what), " ")
		if kind = strings.TrimSpace(kind); err != nil || n < 0 || !two || kind == "" || !slices.Contains(countedVerbs, verb) {
			return nil, fmt.Errorf("%q is not like \"create Zundoko=5\"", part)
		}
		counts = append(counts, Count{verb + " " + kind, n})
	}
	return counts, nil
}

// numbers reads a comma-separated list of numbers from 1 to most.
func (r *labReader) numbers(key, value, what string, most int) []int {
	var numbers []int
	for part := range strings.SplitSeq(value, ",") {
		part = strings.TrimSpace(part)
		switch n, err := strconv.Atoi(part); {
		case err != nil || n < 1 || n > most:
			r.problem(key, fmt.Sprintf(`write numbers from 1 to %d with commas between them: "1, 2"`, most), "there is no %s %q", what, part)
		case slices.Contains(numbers, n):
			r.problem(key, "", "%s %d is there twice", what, n)
		default:
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// named reads an annotation that has a name in its key.
func (r *labReader) named(key, name, value string) {
	if oracle, ok := strings.CutPrefix(name, "oracle."); ok {
		r.oracle(key, oracle, value)
		return
	}
	if what, ok := strings.CutPrefix(strings.TrimPrefix(name, "ja."), "lacks."); ok {
		r.lacks(key, what, value)
		return
	}
	if step, ok := strings.CutPrefix(name, "ja."); ok {
		r.japanese(key, step, value)
		return
	}
	if step, ok := strings.CutPrefix(name, "stays."); ok {
		r.stays(key, step, value)
		return
	}
	if r.toil(key, name, value) {
		return
	}
	known := []string{
		"operator", "variant", "parameters", "counts", "give-up", "habits", "phase", "writes", "audience", "title", "finding",
		"lacks.<habit-N or phase-N>", "stays.<step>", "ja.<step>", "toil.<step>", "by-hand.<step>", "decision.<step>",
	}
	for _, o := range Oracles {
		known = append(known, "oracle."+o)
	}
	r.problem(key, suggest(name, known), "is not one of the lab's")
}

var operatorName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

func (r *labReader) operators(key, value string) {
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		if !operatorName.MatchString(name) {
			r.problem(key, "write names with commas between them", "%q is not the name of an operator", name)
			continue
		}
		r.lab.Operators = append(r.lab.Operators, name)
	}
}

func (r *labReader) parameters(key, value string) {
	for p := range strings.SplitSeq(value, ";") {
		if strings.TrimSpace(p) == "" {
			continue
		}
		name, v, ok := strings.Cut(p, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.HasPrefix(name, "-") {
			r.problem(key, "write name=value, without dashes before the name, and ; between them", "%q is not a parameter", strings.TrimSpace(p))
			continue
		}
		r.lab.Parameters = append(r.lab.Parameters, Parameter{Name: name, Value: strings.TrimSpace(v)})
	}
}

func (r *labReader) oracle(key, name, value string) {
	if !slices.Contains(Oracles, name) {
		r.problem(key, suggest(name, Oracles), "there is no oracle %q", name)
		return
	}
	reason, ok := strings.CutPrefix(value, "off")
	reason, colon := strings.CutPrefix(strings.TrimSpace(reason), ":")
	if reason = strings.TrimSpace(reason); !ok || !colon || reason == "" {
		r.problem(key, `write "off: " and why`, "an oracle is only switched off with a reason")
		return
	}
	r.lab.Off[name] = reason
}

func (r *labReader) stays(key, name, value string) {
	d, ok := r.duration(key, value)
	if !ok {
		return
	}
	if s, name := r.step(key, name); s != nil {
		r.lab.Stays[name] = d
		if !slices.ContainsFunc(s.Try, func(o Operation) bool { return o.Assert != nil || o.Error != nil }) {
			r.problem(key, "", "the step %q asserts nothing", s.Name)
		}
	}
}

// duration reads a duration that is more than nothing.
func (r *labReader) duration(key, value string) (d time.Duration, ok bool) {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		r.problem(key, "write it with its unit, such as 5s or 1m30s", "%q is not a duration", value)
		return 0, false
	}
	return d, true
}

// japanese reads the Japanese description of a step.
func (r *labReader) japanese(key, name, value string) {
	if s, name := r.step(key, name); s != nil {
		r.lab.Japanese[name] = value
	}
}

// step returns the step that the key of an annotation names, and its [StepName]; nil, and a problem, if there is none.
func (r *labReader) step(key, name string) (*TestStep, string) {
	var names []string
	for i := range r.Test.Spec.Steps {
		s := &r.Test.Spec.Steps[i]
		is := StepName(s, i)
		if is == name || StepKey(is) == StepKey(name) {
			return s, is
		}
		names = append(names, StepKey(is))
	}
	r.problem(key, suggest(name, names), "there is no step with the name %q", name)
	return nil, ""
}

// StepName returns the name of the step at an index of its test, as Chainsaw has it: "step #1" for a first one without a name.
func StepName(s *TestStep, i int) string { return cmp.Or(s.Name, fmt.Sprintf("step #%d", i+1)) }

var notInKey = regexp.MustCompile(`[^a-z0-9]+`)

// StepKey returns the form of a step's name in an annotation's key: "Sings to the end" is sings-to-the-end.
func StepKey(name string) string {
	return strings.Trim(notInKey.ReplaceAllString(strings.ToLower(name), "-"), "-")
}
