package format

import (
	"slices"
	"strings"
)

// ToilFaults are the faults whose toil is measured, in the order in which they are shown.
var ToilFaults = []string{"kill-member", "kill-operator", "lose-node", "fill-quota", "lose-quorum", "upgrade"}

// writes reads the name of the store that is written to.
func (r *labReader) writes(key, value string) {
	if !operatorName.MatchString(value) {
		r.problem(key, "write the name of an EtcdCluster, such as example", "%q is not the name of an object", value)
		return
	}
	r.lab.Writes = value
}

// toil reads the annotations about what a person does and what is measured meanwhile. It returns false if it is another one.
func (r *labReader) toil(key, name, value string) bool {
	what, step, _ := strings.Cut(name, ".")
	switch what {
	case "toil":
		r.fault(key, step, value)
	case "by-hand":
		if d, ok := r.duration(key, value); ok {
			if s, name := r.step(key, step); s != nil {
				r.lab.ByHand[name] = d
			}
		}
	case "decision":
		if s, name := r.step(key, step); s != nil {
			r.lab.Decisions[name] = value
		}
	default:
		return false
	}
	return true
}

// fault reads which fault a step waits for the end of.
func (r *labReader) fault(key, step, value string) {
	if !slices.Contains(ToilFaults, value) {
		r.problem(key, suggest(value, ToilFaults), "there is no fault %q", value)
		return
	}
	for other, fault := range r.lab.Toil {
		if fault == value {
			r.problem(key, "", "the fault %s is that of the step %q already", value, other)
			return
		}
	}
	if s, name := r.step(key, step); s != nil {
		r.lab.Toil[name] = value
	}
}

// checkToil checks that the annotations about toil fit each other.
func (r *labReader) checkToil() {
	for name := range r.lab.Toil {
		if r.lab.Writes == "" {
			r.problem(labPrefix+"toil."+StepKey(name), "add "+labPrefix+"writes with the name of an EtcdCluster", "nothing is written that could be measured")
		}
		if _, both := r.lab.ByHand[name]; both {
			r.problem(labPrefix+"by-hand."+StepKey(name), "", "the step %q is measured: it cannot be done by hand too", name)
		}
	}
	for name := range r.lab.ByHand {
		if i := r.index(name); r.lab.NextToil(r.Test, i) < 0 {
			r.problem(labPrefix+"by-hand."+StepKey(name), "annotate one with "+labPrefix+"toil.<step>", "no step that is measured comes after the step %q", name)
		}
	}
	for name := range r.lab.Decisions {
		if _, is := r.lab.ByHand[name]; !is {
			r.problem(labPrefix+"decision."+StepKey(name), "add "+labPrefix+"by-hand."+StepKey(name), "the step %q is not done by hand", name)
		}
	}
}

// index returns the place of the step with a name.
func (r *labReader) index(name string) int {
	for i := range r.Test.Spec.Steps {
		if StepName(&r.Test.Spec.Steps[i], i) == name {
			return i
		}
	}
	return -1
}

// NextToil returns the index of the first step of Toil after a step; -1 if there is none.
func (l *Lab) NextToil(t *Test, after int) int {
	for i := after + 1; i < len(t.Spec.Steps); i++ {
		if _, is := l.Toil[StepName(&t.Spec.Steps[i], i)]; is {
			return i
		}
	}
	return -1
}
