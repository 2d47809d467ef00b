package expression

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/jmespath-community/go-jmespath/pkg/binding"
	"github.com/kyverno/kyverno-json/pkg/core/compilers"

	"github.com/operator-lab/operator-lab/scenarios/format"
)

// Scope holds what expressions see: values by name, and the default compiler. It is immutable: With returns a new one.
// The zero value has no names, and its compiler is JMESPath.
type Scope struct {
	compiler format.Compiler
	last     *bound
}

// bound is a bound name with its value, linked to the binding before it.
type bound struct {
	name   string
	value  any
	before *bound
}

// With binds a value to a name, written without its dollar sign. It hides an earlier value of that name.
func (s Scope) With(name string, value any) Scope {
	s.last = &bound{name, value, s.last}
	return s
}

// WithCompiler sets the compiler of expressions that name none; nil keeps the current one.
func (s Scope) WithCompiler(c *format.Compiler) Scope {
	if c != nil {
		s.compiler = *c
	}
	return s
}

// Lookup returns the value of a name, and whether it has one.
func (s Scope) Lookup(name string) (any, bool) {
	return s.last.lookup(name)
}

func (b *bound) lookup(name string) (any, bool) {
	for ; b != nil; b = b.before {
		if b.name == name {
			return b.value, true
		}
	}
	return nil, false
}

func (s Scope) compilers() compilers.Compilers {
	c := compilers.Compilers{Jp: jmespath{}, Cel: celCompiler{}}
	if s.compiler == format.CompilerCEL {
		return c.WithDefaultCompiler(compilers.CompilerCEL)
	}
	return c.WithDefaultCompiler(compilers.CompilerJP)
}

// bindings implements the interpreters' binding.Bindings on a scope, for one evaluation.
type bindings struct {
	last *bound
	of   *evaluation
}

// Get returns the value of a name, which includes its dollar sign.
func (b bindings) Get(name string) (binding.Binding, error) {
	if err := b.of.tick(); err != nil {
		return nil, err
	}
	value, ok := b.last.lookup(strings.TrimPrefix(name, "$"))
	if !ok {
		return nil, b.of.wrong(fmt.Errorf("variable not defined: %s", name))
	}
	return binding.NewBinding(value), nil
}

// Register binds a value for the rest of the expression.
func (b bindings) Register(name string, v binding.Binding) binding.Bindings {
	value, err := v.Value()
	if err != nil {
		return b // values of NewBinding have no error
	}
	return bindings{&bound{strings.TrimPrefix(name, "$"), value, b.last}, b.of}
}

var nameOfBinding = regexp.MustCompile(`^\w+$`)

// Bind evaluates a binding and returns its name and value. Expressions in it see input as @.
func (s Scope) Bind(ctx context.Context, b format.Binding, input any) (string, any, error) {
	name, err := s.String(ctx, string(b.Name))
	if err != nil {
		return "", nil, fmt.Errorf("name of the binding %s: %w", b.Name, err)
	}
	if !nameOfBinding.MatchString(name) {
		return "", nil, &Invalid{fmt.Errorf("invalid binding name %s", name)}
	}
	value, err := s.WithCompiler(b.Compiler).Template(ctx, floats(b.Value), input)
	if err != nil {
		return "", nil, fmt.Errorf("binding %s: %w", name, err)
	}
	return name, value, nil
}

// floats converts every whole number in a value to the number type that JMESPath's functions take.
func floats(value any) any {
	switch v := value.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = floats(inner)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			out[key] = floats(inner)
		}
		return out
	}
	return value
}

// BindAll evaluates bindings one after the other; each sees those before it.
func (s Scope) BindAll(ctx context.Context, all []format.Binding) (Scope, error) {
	for _, b := range all {
		name, value, err := s.Bind(ctx, b, nil)
		if err != nil {
			return s, err
		}
		s = s.With(name, value)
	}
	return s, nil
}
