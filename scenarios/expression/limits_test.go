package expression_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/scenarios/expression"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

func TestBindingsThatRepeatEachOtherAreRefused(t *testing.T) {
	scope := expression.Scope{}
	var err error
	for range 30 {
		scope, err = scope.BindAll(t.Context(), []format.Binding{{Name: "a", Value: []any{"($a || 'x')", "($a || 'x')"}}})
		if err != nil {
			break
		}
		if _, ok := scope.Lookup("a"); !ok {
			t.Fatal("a is not bound")
		}
	}
	// The first $a is not defined, and an expression cannot test for that.
	if err == nil || !strings.Contains(err.Error(), "variable not defined") {
		t.Fatalf("the error is %v", err)
	}
	scope = expression.Scope{}.With("a", "x")
	for range 30 {
		if scope, err = scope.BindAll(t.Context(), []format.Binding{{Name: "a", Value: []any{"($a)", "($a)"}}}); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "parts") {
		t.Errorf("the error is %v", err)
	}
}

func TestLongExpressionsAreRefused(t *testing.T) {
	deep := "(" + strings.Repeat("(", 1<<17) + "a" + strings.Repeat(")", 1<<17) + ")"
	for _, prefix := range []string{"", "cel;"} {
		_, err := expression.Scope{}.String(t.Context(), "("+prefix+deep+")")
		if !errors.As(err, new(*expression.Invalid)) {
			t.Errorf("the error is %.100v", err)
		}
	}
}

func TestTextsThatGrowAreRefused(t *testing.T) {
	for _, in := range []string{
		"(pad_left('x', `10000000000`))",
		"(" + strings.Repeat("replace_all(", 30) + "'aaaa'" + strings.Repeat(",'a','aaaaaaaa')", 30) + ")",
	} {
		_, err := expression.Scope{}.String(t.Context(), in)
		if err == nil || !strings.Contains(err.Error(), "the limit is") {
			t.Errorf("%.60s gives the error %.200v", in, err)
		}
	}
}

// TestAnEvaluationEndsWithItsContext checks an evaluation in which the interpreter calls nothing that could be told to
// end.
func TestAnEvaluationEndsWithItsContext(t *testing.T) {
	many := make([]any, 3000)
	for i := range many {
		many[i] = "x"
	}
	scope := expression.Scope{}.With("m", many)
	reason := errors.New("enough")
	for _, in := range []string{
		"($m[].[$m[].[$m[].[$m[].[$m[]]]]])",
		`(cel; dyn(bindings.resolve("m")).all(a, dyn(bindings.resolve("m")).all(b, dyn(bindings.resolve("m")).all(c, a == b || b == c || true))))`,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Millisecond, func() { cancel(reason) }) // it would take minutes
		if _, err := scope.Template(ctx, in, nil); !errors.Is(err, reason) {
			t.Errorf("%s gives the error %v", in, err)
		}
	}
}
