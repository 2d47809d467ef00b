package expression

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// The limits of expressions. They are far beyond what a test needs.
const (
	// longest is the maximum length of an expression in bytes: the parser recurses for each parenthesis.
	longest = 64 << 10
	// largest is the maximum number of values in a template or a binding: a few bindings that repeat each other could
	// produce any number.
	largest = 1 << 20
	// longestText is the maximum length in bytes of a text that a function returns.
	longestText = 16 << 20
	// deepest is the maximum nesting of a template.
	deepest = 1000
)

// patience is the maximum duration of an evaluation.
const patience = 10 * time.Second

// ErrEndless is returned for an evaluation that took too long.
var ErrEndless = fmt.Errorf("the expression has not come to an end within %s", patience)

// Invalid is an error in an expression itself: it does not parse, or refers to something that does not exist. Other
// errors may disappear when the value changes. Err is the underlying error.
type Invalid struct{ Err error }

// Error returns the error's text.
func (e *Invalid) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *Invalid) Unwrap() error { return e.Err }

// evaluation is one evaluation of a template or an assertion tree.
type evaluation struct {
	ctx     context.Context // of this call only: the interpreters take no context
	invalid atomic.Pointer[Invalid]
}

// located is an error with the interpreters' description of its position, and with its cause, which they do not wrap.
type located struct{ where, cause error }

// Error returns the interpreters' text.
func (l located) Error() string { return l.where.Error() }

// Unwrap returns the cause.
func (l located) Unwrap() error { return l.cause }

// tick is called wherever the interpreters call this package, and returns an error when the evaluation must end.
func (e *evaluation) tick() error { return context.Cause(e.ctx) }

// wrong remembers an error of the expression itself, because the interpreters do not wrap errors.
func (e *evaluation) wrong(err error) error {
	e.invalid.CompareAndSwap(nil, &Invalid{err})
	return err
}

// evaluate runs an evaluation in its own goroutine. An evaluation that calls nothing of this package cannot be ended:
// after the time limit the goroutine is abandoned.
func evaluate[T any](ctx context.Context, s Scope, run func(bindings) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrEndless)
	defer cancel()
	e := &evaluation{ctx: ctx}
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				o.err = fmt.Errorf("the interpreter panicked: %v", p)
			}
			done <- o
		}()
		o.value, o.err = run(bindings{s.last, e})
	}()
	select {
	case o := <-done:
		if invalid := e.invalid.Load(); o.err != nil && invalid != nil {
			o.err = &Invalid{located{o.err, invalid.Err}}
		}
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

var errTooLarge = fmt.Errorf("the value has more than %d parts", largest)

// measure returns an error if a value has too many parts.
func measure(value any) error {
	if left := count(value, largest, 0); left < 0 {
		return errTooLarge
	}
	return nil
}

// count subtracts the number of a value's parts from left, and stops below zero.
func count(value any, left, depth int) int {
	left--
	if depth > deepest {
		return -1
	}
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if left < 0 {
				return left
			}
			left = count(inner, left, depth+1)
		}
	case []any:
		for _, inner := range v {
			if left < 0 {
				return left
			}
			left = count(inner, left, depth+1)
		}
	}
	return left
}

// checkLength returns an error if an expression is too long to parse.
func checkLength(statement string) error {
	if len(statement) > longest {
		return &Invalid{fmt.Errorf("the expression is %d bytes long; the limit is %d", len(statement), longest)}
	}
	return nil
}

// errBindings indicates a bug in this package.
var errBindings = errors.New("evaluated without a scope")
