package format

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Lack is a habit or a phase that an operator does not have by design, so that no scenario can be evidence of it.
type Lack struct {
	// Habit or Phase is its number; the other one is 0.
	Habit, Phase int
	// Variant is the only variant that lacks it; empty: all do.
	Variant string
	// Why says why; Japanese is the same in Japanese, and may be empty. They have no full stop.
	Why, Japanese string
}

// key returns the annotation of a lack.
func (l *Lack) key() string {
	what := fmt.Sprintf("habit-%d", l.Habit)
	if l.Phase > 0 {
		what = fmt.Sprintf("phase-%d", l.Phase)
	}
	return strings.TrimSuffix(labPrefix+"lacks."+what+"."+l.Variant, ".")
}

// lacks reads why the operator, or one variant of it, lacks what is named: habit-5, phase-3 or habit-5.classic.
func (r *labReader) lacks(key, what, value string) {
	level, variant, _ := strings.Cut(what, ".")
	kind, number, _ := strings.Cut(level, "-")
	n, err := strconv.Atoi(number)
	l := Lack{Variant: variant}
	switch {
	case err == nil && kind == "habit" && n >= 1 && n <= Habits:
		l.Habit = n
	case err == nil && kind == "phase" && n >= 1 && n <= Phases:
		l.Phase = n
	default:
		r.problem(key, fmt.Sprintf("write habit-1 to habit-%d, or phase-1 to phase-%d", Habits, Phases), "%q is neither a habit nor a phase", level)
		return
	}
	i := slices.IndexFunc(r.lab.Lacks, func(o Lack) bool { return o.Habit == l.Habit && o.Phase == l.Phase && o.Variant == l.Variant })
	if i < 0 {
		i = len(r.lab.Lacks)
		r.lab.Lacks = append(r.lab.Lacks, l)
	}
	if strings.HasPrefix(key, labPrefix+"ja.") {
		r.lab.Lacks[i].Japanese = value
	} else {
		r.lab.Lacks[i].Why = value
	}
}

// checkLacks checks that what is lacking has a reason, and that the test is no evidence of it.
func (r *labReader) checkLacks() {
	for _, l := range r.lab.Lacks {
		if l.Why == "" {
			r.problem(strings.Replace(l.key(), labPrefix, labPrefix+"ja.", 1), "add "+l.key(), "there is no reason in English")
		}
		if slices.Contains(r.lab.Habits, l.Habit) || slices.Contains(r.lab.Phases, l.Phase) {
			r.problem(l.key(), "", "the test is evidence of it")
		}
	}
}
