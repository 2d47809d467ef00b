package lab

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/fault"
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

// over is a run of a program that has ended before it served, or afterwards.
type over struct {
	Run
	served bool
}

type exit struct{ error }

func (exit) RestartAfter() time.Duration { return time.Second }

func (o over) AwaitServing(context.Context) error {
	if o.served {
		return nil
	}
	return fmt.Errorf("it ended before it served: %w", o.Err())
}

func (over) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (over) Err() error { return exit{errors.New("status 4")} }

// TestRunThatEnds checks that a program that cannot be started fails, that one that could once is started again, also when it
// ends before it serves, and that one that a fault has killed is not said to have ended by itself.
func TestRunThatEnds(t *testing.T) {
	for name, c := range map[string]struct {
		served, killed bool // the life before has served; a fault kills this one
		run            over
		failed, told   bool
		again          time.Duration
	}{
		"the first one":               {failed: true},
		"a later one":                 {served: true, told: true, again: time.Second},
		"one that served":             {run: over{served: true}, told: true, again: time.Second},
		"the first one, killed":       {killed: true, again: 3 * time.Second},
		"one that served, and killed": {killed: true, run: over{served: true}, again: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			journal := trace.New(trace.Options{})
			sv := &supervisor{
				lab: &Lab{changed: make(chan struct{})}, taps: taps.New(journal, taps.Options{}), epoch: &epoch{journal: journal},
				program: Bundled(operators.Operator{Name: "zundoko"}), served: c.served, generation: 1, wake: make(chan struct{}),
			}
			injector := fault.NewFaults(fault.FaultsOptions{Journal: journal}).Injector("zundoko")
			if c.killed {
				injector.Die()
				time.AfterFunc(50*time.Millisecond, func() { sv.crash(3 * time.Second) }) // which may be later than the end of the process
			}
			err := sv.serve(t.Context(), c.run, sv.spec, injector)
			if failed := err != nil; failed != c.failed {
				t.Errorf("the error is %v", err)
			}
			_, _, crashed, _ := sv.now()
			if again := ptr.Deref(crashed, 0); again != c.again {
				t.Errorf("the next one begins after %v", again)
			}
			if told := journal.Stats().Last > 0; told != c.told {
				t.Errorf("the journal has a note: %t", told)
			}
		})
	}
}
