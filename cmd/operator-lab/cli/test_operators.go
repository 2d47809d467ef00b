package cli

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/scenarios"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

// givenOperators are the operators that flags name, with the variant and the parameters that flags give to operators.
type givenOperators struct {
	// names are those of all, own those of the user's.
	names []string
	own   []*ownOperator
	// variant and parameters, by name, are for all operators; both may be empty.
	variant    string
	parameters map[string]string
	// cluster is that of the user's in which their operators run; nil: they run in a sandbox.
	cluster *userCluster
}

// findOperators takes from the flags what they say about operators, and finds those of the user's.
func (t *suite) findOperators(ctx context.Context) error {
	t.given = t.testFlags.given()
	t.given.cluster = t.cluster
	for _, name := range t.operators {
		if !isPath(name) {
			t.given.names = append(t.given.names, name)
			continue
		}
		if err := t.given.find(ctx, name, t.sayf); err != nil {
			return err
		}
		t.nodes.take(t.given.own[len(t.given.own)-1].project, t.flags)
	}
	return nil
}

// checkOperators checks, before a sandbox is booted, the operators of the tests with their variants and parameters. In
// another cluster the lab runs no operators.
func (t *suite) checkOperators() error {
	if t.foreign() || t.noCluster {
		return nil
	}
	if err := t.given.check(); err != nil {
		return err
	}
	if wrong := t.given.problems(t.tests); len(wrong) > 0 {
		return wrong
	}
	return nil
}

// given returns the variant and the parameters that flags set.
func (f *testFlags) given() givenOperators {
	g := givenOperators{variant: f.variant, parameters: map[string]string{}}
	for _, p := range f.parameters {
		name, value, _ := strings.Cut(p, "=")
		g.parameters[name] = value
	}
	return g
}

// find adds an operator of the user's.
func (g *givenOperators) find(ctx context.Context, dir string, say func(format string, args ...any)) error {
	own := &ownOperator{flags: &ownFlags{}, cluster: g.cluster, say: say, step: noStep}
	g.own = append(g.own, own)
	if err := own.find(ctx, dir); err != nil {
		return err
	}
	g.names = append(g.names, own.project.Name)
	return nil
}

// close ends what belongs to the user's operators.
func (g *givenOperators) close() {
	for _, own := range g.own {
		own.close()
	}
}

// selection returns the operators as the hooks of tests take them.
func (g *givenOperators) selection() scenarios.Selection {
	return scenarios.Selection{Operators: g.names, Variant: g.variant, Parameters: g.parameters}
}

// ofTests returns the bundled operators of tests with their specs. Tests with wrong annotations are left out: they fail by
// themselves.
func (g *givenOperators) ofTests(tests []*format.Loaded) iter.Seq2[operators.Operator, v1alpha1.OperatorSpec] {
	return func(yield func(operators.Operator, v1alpha1.OperatorSpec) bool) {
		for _, loaded := range tests {
			setup, err := g.selection().Setup(loaded.Test)
			if err != nil {
				continue
			}
			for _, name := range setup.Operators {
				if op, found := operators.Find(name); found && !yield(op, setup.Spec) {
					return
				}
			}
		}
	}
}

// problems returns what is wrong with the operators that tests ask for.
func (g *givenOperators) problems(tests []*format.Loaded) format.Problems {
	var wrong format.Problems
	for _, loaded := range tests {
		setup, err := g.selection().Setup(loaded.Test)
		if err != nil {
			continue // it is said where the test was read
		}
		if err := g.checkSpec(setup.Operators, setup.Spec); err != nil {
			wrong = append(wrong, format.Problem{
				File: loaded.File, Line: loaded.Line, Message: err.Error(), Hint: sandbox.HintOf(err),
			})
		}
	}
	return wrong
}

func (g *givenOperators) isOwn(name string) bool {
	return slices.ContainsFunc(g.own, func(o *ownOperator) bool { return o.project.Name == name })
}

// check checks that the operators have the variant and the parameters.
func (g *givenOperators) check() error {
	return g.checkSpec(g.names, v1alpha1.OperatorSpec{Variant: g.variant, Parameters: g.parameters})
}

// checkSpec checks that operators have the variant and the parameters of a spec, and that the values are valid.
func (g *givenOperators) checkSpec(names []string, spec v1alpha1.OperatorSpec) error {
	given := map[string]string{}
	maps.Copy(given, spec.Parameters)
	if spec.Variant != "" {
		given["variant"] = spec.Variant
	}
	for _, name := range names {
		if g.isOwn(name) {
			if len(given) > 0 {
				return usageError("a program has arguments: write them into lab.yaml", "operator %s is not a bundled one and has no variant and no parameters", name)
			}
			continue
		}
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
				return usageError(meant(parameter, flagNames(flags))+"it has: "+strings.Join(flagNames(flags), ", "), "operator %s has no parameter %q", name, parameter)
			}
			if err := f.Value.Set(value); err != nil {
				if takes := typeOf(f, err); takes != "" {
					return usageError(parameter+": "+f.Usage, "parameter %s of operator %s takes %s, got %q", parameter, name, takes, value)
				}
				return usageError(parameter+": "+f.Usage, "operator %s cannot have %s=%s: %w", name, parameter, value, err)
			}
		}
	}
	return nil
}

func flagNames(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}
