package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

// checkOperators checks, before a sandbox is booted, the operators of the tests with their variants and parameters. In
// another cluster the lab runs no operators.
func (t *suite) checkOperators() error {
	if t.foreign() || t.noCluster {
		return nil
	}
	if err := t.checkGiven(t.operators); err != nil {
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
		setup, err := t.operatorFlags().Setup(loaded.Test)
		if err != nil {
			continue // it is said where the test was read
		}
		if err := checkParameters(setup.Operators, setup.Spec); err != nil {
			wrong = append(wrong, format.Problem{
				File: loaded.File, Line: loaded.Line, Message: err.Error(), Hint: sandbox.HintOf(err),
			})
		}
	}
	return wrong
}

// checkGiven checks that operators have the variant and the parameters that flags give them.
func (t *suite) checkGiven(names []string) error {
	f := t.operatorFlags()
	return checkParameters(names, v1alpha1.OperatorSpec{Variant: f.Variant, Parameters: f.Parameters})
}

// checkParameters checks that operators have the variant and the parameters of a spec, and that the values are valid.
func checkParameters(names []string, spec v1alpha1.OperatorSpec) error {
	given := maps.Clone(spec.Parameters)
	if spec.Variant != "" {
		given["variant"] = spec.Variant
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
