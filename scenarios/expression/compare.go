package expression

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/jmespath-community/go-jmespath/pkg/binding"
	"github.com/kyverno/kyverno-json/pkg/core/compilers"
	"github.com/kyverno/kyverno-json/pkg/core/matching"
	"github.com/kyverno/kyverno-json/pkg/core/projection"
)

// Compare returns the values that an assertion tree requires, with its expressions evaluated, and the corresponding
// values that were found, so that people can compare them. Fields that satisfy the assertion are the same in both;
// fields that are not asserted are in neither.
func (s Scope) Compare(ctx context.Context, tree, value any) (asserted, found any, err error) {
	type both struct{ asserted, found any }
	out, err := evaluate(ctx, s, func(b bindings) (both, error) {
		asserted, found := comparer{s.compilers()}.compare(tree, value, b)
		return both{asserted, found}, nil
	})
	return out.asserted, out.found, err
}

type comparer struct{ compilers compilers.Compilers }

func (c comparer) compare(tree, value any, b binding.Bindings) (asserted, found any) {
	switch t := tree.(type) {
	case map[string]any:
		return c.object(t, value, b)
	case []any:
		return c.list(t, value, b)
	}
	handler, wrong := projection.ParseScalar(nil, tree, c.compilers)
	if wrong != nil {
		return tree, value
	}
	wanted, err := handler(value, b)
	if err != nil {
		return tree, value
	}
	if ok, err := matching.Match(wanted, value); err == nil && ok {
		return wanted, wanted
	}
	return wanted, value
}

func (c comparer) object(tree map[string]any, value any, b binding.Bindings) (asserted, found any) {
	if value == nil {
		return c.alone(tree, b), nil
	}
	wanted, got := make(map[string]any, len(tree)), make(map[string]any, len(tree))
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		p, wrong := projection.ParseMapKey(nil, key, c.compilers)
		if wrong != nil {
			wanted[key], got[key] = tree[key], wrong.Error()
			continue
		}
		inner, ok, err := p.Handler(value, b)
		switch {
		case err != nil:
			wanted[key], got[key] = tree[key], fmt.Sprintf("<%v>", err)
			continue
		case !ok:
			wanted[key] = c.alone(tree[key], b)
			continue
		}
		if p.Binding != "" {
			b = b.Register("$"+p.Binding, binding.NewBinding(inner))
		}
		if p.Foreach {
			wanted[key], got[key] = c.each(p, tree[key], inner, b)
		} else {
			wanted[key], got[key] = c.compare(tree[key], inner, b)
		}
	}
	return wanted, got
}

// alone returns the required value where nothing was found.
func (c comparer) alone(tree any, b binding.Bindings) any {
	switch t := tree.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for key, inner := range t {
			out[key] = c.alone(inner, b)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, inner := range t {
			out[i] = c.alone(inner, b)
		}
		return out
	}
	wanted, _ := c.compare(tree, nil, b)
	return wanted
}

// each compares all elements with the same tree. If all satisfy it, the tree stands for them.
func (c comparer) each(p *projection.Projection, tree, value any, b binding.Bindings) (asserted, found any) {
	elements, ok := value.([]any)
	if !ok {
		return tree, value
	}
	wanted, got := make([]any, len(elements)), make([]any, len(elements))
	same := true
	for i, element := range elements {
		inner := b
		if p.ForeachName != "" {
			inner = b.Register("$"+p.ForeachName, binding.NewBinding(i))
		}
		wanted[i], got[i] = c.compare(tree, element, inner)
		same = same && reflect.DeepEqual(wanted[i], got[i])
	}
	if same {
		return tree, tree
	}
	return wanted, got
}

func (c comparer) list(tree []any, value any, b binding.Bindings) (asserted, found any) {
	elements, ok := value.([]any)
	if !ok {
		return c.alone(tree, b), value
	}
	wanted, got := make([]any, len(tree)), make([]any, len(elements))
	copy(got, elements)
	for i, inner := range tree {
		if i < len(elements) {
			wanted[i], got[i] = c.compare(inner, elements[i], b)
		} else {
			wanted[i] = c.alone(inner, b)
		}
	}
	return wanted, got
}
