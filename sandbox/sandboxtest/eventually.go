package sandboxtest

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Patience is how long Eventually waits, on a machine that is busy with other things. It only matters in tests that fail.
const Patience = 60 * time.Second

// Eventually looks at first every 5 ms, later less often: a server that is asked all the time has less time to work.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// Condition is a function that Eventually calls until it holds: returns true, or a nil error. The context ends when the
// time is up.
type Condition interface {
	func() bool | func() error | func(context.Context) error
}

// Eventually waits until a condition holds. It fails the test with the last error after Patience, or when the test ends.
func Eventually[C Condition](tb testing.TB, what string, condition C) {
	tb.Helper()
	EventuallyWithin(tb, Patience, what, condition)
}

// EventuallyWithin is Eventually with another patience.
func EventuallyWithin[C Condition](tb testing.TB, patience time.Duration, what string, condition C) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	holds := asCheck(condition)
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := holds(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("%s: not after %v: %v", what, time.Since(began).Round(time.Millisecond), err)
		case <-time.After(pause):
		}
	}
}

var errFalse = errors.New("it is false")

func asCheck(condition any) func(context.Context) error {
	switch condition := condition.(type) {
	case func() bool:
		return func(context.Context) error {
			if condition() {
				return nil
			}
			return errFalse
		}
	case func() error:
		return func(context.Context) error { return condition() }
	default:
		return condition.(func(context.Context) error)
	}
}

// NoLeaks fails the test if goroutines that were started during it are still there when it has ended, after Patience. It
// is for tests that run alone: goroutines of a parallel test are somebody else's leaks.
func NoLeaks(tb testing.TB) {
	tb.Helper()
	before := goroutines()
	tb.Cleanup(func() {
		deadline := time.Now().Add(Patience)
		for {
			left := goroutines()
			for id := range before {
				delete(left, id)
			}
			if len(left) == 0 {
				return
			}
			if time.Now().After(deadline) {
				for _, stack := range left {
					tb.Errorf("a goroutine is left:\n%s", stack)
				}
				return
			}
			<-time.After(lastPause)
		}
	})
}

// goroutines returns the stacks of all goroutines but the caller's and the testing package's, by "goroutine <number>".
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	for n := runtime.Stack(buf, true); n == len(buf); n = runtime.Stack(buf, true) {
		buf = make([]byte, 2*len(buf))
	}
	all := map[string]string{}
	own := true // the caller's comes first
	for stack := range strings.SplitSeq(strings.TrimRight(string(buf), "\x00\n"), "\n\n") {
		id, _, found := strings.Cut(stack, " [")
		if found && !own && !strings.Contains(stack, "testing.(*T).Run") && !strings.Contains(stack, "testing.runTests") {
			all[id] = stack
		}
		own = false
	}
	return all
}
