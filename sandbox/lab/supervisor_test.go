package lab

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// held are taps that tell when they are closed.
type held struct {
	*taps.Taps
	close func()
}

func (h held) Close() { h.close() }

// TestStopHoldsUntilTheEnd checks that what is paused is let go after the operator has ended: a worker that is let go before
// takes one more key.
func TestStopHoldsUntilTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done, order := make(chan struct{}), make(chan string, 2)
	sv := &supervisor{cancel: cancel, done: done, taps: held{close: func() { order <- "let go" }}}
	go func() {
		<-ctx.Done()
		order <- "ended"
		close(done)
	}()
	if err := sv.stop(); err != nil {
		t.Fatal(err)
	}
	if first, then := <-order, <-order; first != "ended" || then != "let go" {
		t.Errorf("it was %s, and then %s", first, then)
	}
}

// TestOldRunDoesNotServe checks that the status does not say that the operator runs from when another run is wanted,
// and that the old run serves the newest spec if the spec is changed back before it noticed.
func TestOldRunDoesNotServe(t *testing.T) {
	old, other := v1alpha1.OperatorSpec{Variant: "hardened"}, v1alpha1.OperatorSpec{Variant: "classic"}
	sv := &supervisor{
		lab: &Lab{changed: make(chan struct{})}, taps: taps.New(trace.New(trace.Options{}), taps.Options{}),
		spec: old, generation: 1, wake: make(chan struct{}),
	}
	is := func(state v1alpha1.OperatorState, observed int64) {
		t.Helper()
		if sv.status.State != state || sv.status.ObservedGeneration != observed {
			t.Errorf("generation %d, status %+v; want %s, %d", sv.generation, sv.status, state, observed)
		}
	}
	sv.serves(old)
	is(v1alpha1.OperatorRunning, 1)
	sv.change(other)
	is(v1alpha1.OperatorStarting, 1)
	sv.serves(old)
	is(v1alpha1.OperatorStarting, 1)
	sv.change(old)
	sv.serves(old)
	is(v1alpha1.OperatorRunning, 3)
	sv.state(v1alpha1.OperatorCrashed, "")
	sv.change(other)
	is(v1alpha1.OperatorCrashed, 3) // until its restart delay is over
}

// over is a run of a program that ends before it serves.
type over struct{ Run }

func (over) AwaitServing(context.Context) error {
	return fmt.Errorf("it ended before it served: %w", exit{errors.New("status 4")})
}

type exit struct{ error }

func (exit) RestartAfter() time.Duration { return time.Second }

// TestEndsBeforeItServes checks that a program that cannot be started fails, and that one that could once is started again.
func TestEndsBeforeItServes(t *testing.T) {
	journal := trace.New(trace.Options{})
	sv := &supervisor{
		lab: &Lab{changed: make(chan struct{})}, taps: taps.New(journal, taps.Options{}), epoch: &epoch{journal: journal},
		program: Bundled(operators.Operator{Name: "zundoko"}), generation: 1, wake: make(chan struct{}),
	}
	if err := sv.serve(t.Context(), over{}, sv.spec); err == nil || sv.crashed != nil {
		t.Errorf("the first run: error %v, the next one after %v", err, sv.crashed)
	}
	sv.serves(sv.spec)
	if err := sv.serve(t.Context(), over{}, sv.spec); err != nil || sv.crashed == nil || *sv.crashed != time.Second {
		t.Errorf("a later run: error %v, the next one after %v", err, sv.crashed)
	}
}
