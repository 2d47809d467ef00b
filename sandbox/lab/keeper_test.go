package lab

import (
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestOldLifeDoesNotServe checks that the status does not say that the operator runs from when another run is wanted,
// and that the old run serves the newest spec if the spec is changed back before it noticed.
func TestOldLifeDoesNotServe(t *testing.T) {
	old, other := v1alpha1.OperatorSpec{Variant: "hardened"}, v1alpha1.OperatorSpec{Variant: "classic"}
	k := &keeper{
		lab: &Lab{changed: make(chan struct{})}, taps: taps.New(trace.New(trace.Options{}), taps.Options{}),
		spec: old, generation: 1, wake: make(chan struct{}),
	}
	is := func(state v1alpha1.OperatorState, observed int64) {
		t.Helper()
		if k.status.State != state || k.status.ObservedGeneration != observed {
			t.Errorf("generation %d, status %+v; want %s, %d", k.generation, k.status, state, observed)
		}
	}
	k.serves(old)
	is(v1alpha1.OperatorRunning, 1)
	k.change(other)
	is(v1alpha1.OperatorStarting, 1)
	k.serves(old)
	is(v1alpha1.OperatorStarting, 1)
	k.change(old)
	k.serves(old)
	is(v1alpha1.OperatorRunning, 3)
	k.state(v1alpha1.OperatorCrashed, "")
	k.change(other)
	is(v1alpha1.OperatorCrashed, 3) // until its restart delay is over
}
