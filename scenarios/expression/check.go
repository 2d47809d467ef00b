package expression

import (
	"context"
	"errors"
	"fmt"

	"github.com/kyverno/kyverno-json/pkg/core/assertion"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// Check compares a value with an assertion tree and returns the differences. The error says that the comparison was not
// possible; it is an [*Invalid] if the tree itself is wrong, whatever the value.
func (s Scope) Check(ctx context.Context, tree, value any) (field.ErrorList, error) {
	if tree == nil {
		return nil, &Invalid{errors.New("check value is null")}
	}
	return evaluate(ctx, s, func(b bindings) (field.ErrorList, error) {
		// The variable has the type of the interface: a nil *field.Error in an error is not nil.
		parsed, wrong := assertion.Parse(nil, tree, s.compilers())
		if wrong != nil {
			return nil, b.of.wrong(wrong)
		}
		return parsed.Assert(nil, value, b)
	})
}

// Expect checks an object against the expectations that match it. It reports whether there was one; if so, the error is
// their result, else nil.
func (s Scope) Expect(ctx context.Context, object any, expect []format.Expectation) (bool, error) {
	matched := false
	var all field.ErrorList
	for _, e := range expect {
		meant, err := s.matches(ctx, e.Match, object)
		if err != nil {
			return true, err
		}
		if !meant {
			continue
		}
		matched = true
		different, err := s.Check(ctx, e.Check, object)
		if err != nil {
			return true, err
		}
		all = append(all, different...)
	}
	if len(all) > 0 {
		return matched, &Unexpected{all}
	}
	return matched, nil
}

// Unexpected is an error for a value that differs from the expectation. Fields are the differences.
type Unexpected struct{ Fields field.ErrorList }

// Error lists all fields in one line.
func (e *Unexpected) Error() string { return e.Fields.ToAggregate().Error() }

func (s Scope) matches(ctx context.Context, match, value any) (bool, error) {
	if match == nil {
		return true, nil
	}
	different, err := s.Check(ctx, match, value)
	if err != nil {
		return false, fmt.Errorf("match: %w", err)
	}
	return len(different) == 0, nil
}

// Named is a value with a name.
type Named struct {
	// Name is the name, without a dollar sign.
	Name string
	// Value is the value.
	Value any
}

// Outputs evaluates the outputs whose match succeeds, in order: each sees those before it.
func (s Scope) Outputs(ctx context.Context, input any, outputs []format.Output) ([]Named, error) {
	var all []Named
	for _, o := range outputs {
		meant, err := s.matches(ctx, o.Match, input)
		if err != nil {
			return nil, fmt.Errorf("output %s: %w", o.Name, err)
		}
		if !meant {
			continue
		}
		name, value, err := s.Bind(ctx, o.Binding, input)
		if err != nil {
			return nil, fmt.Errorf("output: %w", err)
		}
		s = s.With(name, value)
		all = append(all, Named{name, value})
	}
	return all, nil
}
