package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

// checkOperators finds out before a sandbox is booted whether there are the operators that tests ask for, with the variant
// and the parameters that they or flags want. In another cluster the lab runs no operators.
func (t *suite) checkOperators() error {
	if t.foreign() || t.noCluster {
		return nil
	}
	if err := t.checkFlagsOf(t.operators, format.Lab{}); err != nil {
		return err
	}
	if wrong := t.operatorProblems(); len(wrong) > 0 {
		return wrong
	}
	return nil
}

// operatorProblems returns what is wrong with the operators that the tests ask for.
func (t *suite) operatorProblems() format.Problems {
	var wrong format.Problems
	for _, loaded := range t.tests {
		lab, err := loaded.Lab()
		if err != nil {
			continue // it is said where the test was read
		}
		names := lab.Operators
		if len(t.operators) > 0 {
			names = t.operators
		}
		if err := t.checkFlagsOf(names, lab); err != nil {
			wrong = append(wrong, format.Problem{
				File: loaded.File, Line: loaded.Line, Message: err.Error(), Hint: sandbox.HintOf(err),
			})
		}
	}
	return wrong
}

// checkFlagsOf tries out what operators are given: a test's parameters, and those of flags over them.
func (t *suite) checkFlagsOf(names []string, lab format.Lab) error {
	given := map[string]string{}
	for _, p := range lab.Parameters {
		given[p.Name] = p.Value
	}
	if lab.Variant != "" {
		given["variant"] = lab.Variant
	}
	for _, p := range t.parameters {
		name, value, _ := strings.Cut(p, "=")
		given[name] = value
	}
	if t.variant != "" {
		given["variant"] = t.variant
	}
	for _, name := range names {
		op, ok := operators.Find(name)
		if !ok {
			return unknownOperator(name)
		}
		flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
		op.New().Flags(flags)
		for _, parameter := range slices.Sorted(maps.Keys(given)) {
			value := given[parameter]
			f := flags.Lookup(parameter)
			if f == nil {
				return usageError("it has: "+flagNames(flags), "operator %s has no parameter %q", name, parameter)
			}
			if err := f.Value.Set(value); err != nil {
				return usageError(parameter+": "+f.Usage, "operator %s cannot have %s=%s: %w", name, parameter, value, err)
			}
		}
	}
	return nil
}

func flagNames(flags *pflag.FlagSet) string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return strings.Join(names, ", ")
}
