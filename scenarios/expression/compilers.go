package expression

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/jmespath-community/go-jmespath/pkg/binding"
	"github.com/jmespath-community/go-jmespath/pkg/interpreter"
	"github.com/jmespath-community/go-jmespath/pkg/parsing"
	"github.com/kyverno/kyverno-json/pkg/core/compilers"
	kyvernocel "github.com/kyverno/kyverno-json/pkg/core/compilers/cel"
	"github.com/kyverno/kyverno-json/pkg/core/compilers/jp"
	"k8s.io/apiserver/pkg/cel/library"
)

// cache keeps compiled expressions by their text, because an assert evaluates the same expressions again and again.
type cache[T any] struct {
	mu    sync.Mutex
	items map[string]T
}

// cacheSize is larger than the number of expressions in a large suite.
const cacheSize = 4096

func (c *cache[T]) get(text string, compile func() (T, error)) (T, error) {
	c.mu.Lock()
	item, ok := c.items[text]
	c.mu.Unlock()
	if ok {
		return item, nil
	}
	item, err := compile()
	if err != nil {
		return item, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.items == nil || len(c.items) >= cacheSize {
		c.items = map[string]T{}
	}
	c.items[text] = item
	return item, nil
}

var (
	parsed   cache[parsing.ASTNode]
	programs cache[cel.Program]
)

// jmespath is the compiler of JMESPath.
type jmespath struct{}

// Options returns no options; kyverno-json requires the method.
func (jmespath) Options() []jp.Option { return nil }

// Compile parses an expression.
func (jmespath) Compile(statement string) (compilers.Program, error) {
	if err := checkLength(statement); err != nil {
		return nil, err
	}
	ast, err := parsed.get(statement, func() (parsing.ASTNode, error) { return parsing.NewParser().Parse(statement) })
	if err != nil {
		return nil, &Invalid{fmt.Errorf("%s: %w", short(statement), err)}
	}
	return func(value any, b binding.Bindings) (any, error) {
		ours, ok := b.(bindings)
		if !ok {
			return nil, errBindings
		}
		vm := interpreter.NewInterpreter(nil, b)
		return vm.Execute(ast, value, interpreter.WithFunctionCaller(caller{ours.of}))
	}, nil
}

// celCompiler is the compiler of CEL.
type celCompiler struct{}

// celCost is a hundred times the cost that the API server allows for one expression.
const celCost = 1_000_000_000

// Compile checks an expression.
func (celCompiler) Compile(statement string) (compilers.Program, error) {
	if err := checkLength(statement); err != nil {
		return nil, err
	}
	program, err := programs.get(statement, func() (cel.Program, error) { return compileCEL(statement) })
	if err != nil {
		return nil, &Invalid{fmt.Errorf("%s: %w", short(statement), err)}
	}
	return func(value any, b binding.Bindings) (any, error) {
		ours, ok := b.(bindings)
		if !ok {
			return nil, errBindings
		}
		out, _, err := program.ContextEval(ours.of.ctx, map[string]any{
			"object":   value,
			"bindings": kyvernocel.NewVal(b, kyvernocel.BindingsType),
		})
		if err != nil {
			return nil, err
		}
		return native(out.Value()), nil
	}, nil
}

func compileCEL(statement string) (cel.Program, error) {
	env, err := celEnvironment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(statement)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	return env.Program(ast, cel.CostLimit(celCost), cel.InterruptCheckFrequency(100))
}

// celEnvironment returns the environment with kyverno-json's functions and the API server's functions that Chainsaw
// has.
var celEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	env, err := kyvernocel.DefaultEnv()
	if err != nil {
		return nil, err
	}
	return env.Extend(
		library.URLs(), library.Regex(), library.Lists(), library.Authz(), library.Quantity(),
		library.IP(), library.CIDR(), library.Format(), library.AuthzSelectors(),
	)
})

// native converts CEL's lists and maps to those of JSON.
func native(value any) any {
	switch v := value.(type) {
	case []ref.Val:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = native(inner.Value())
		}
		return out
	case map[ref.Val]ref.Val:
		out := make(map[string]any, len(v))
		for key, inner := range v {
			out[fmt.Sprint(key.Value())] = native(inner.Value())
		}
		return out
	}
	return value
}
