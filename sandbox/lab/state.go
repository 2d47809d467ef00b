package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// State holds the data that a lab keeps outside of its cluster: which operators run, with which spec, and whose CRDs are installed.
// It belongs to a checkpoint of the sandbox that was made at the same time.
type State struct {
	operators map[string]v1alpha1.OperatorSpec
	served    map[string]bool // by operator: it can be started
	installed map[string]string
}

// State returns the current state. The spec of an operator that was paused with a key does not contain that.
func (l *Lab) State() State {
	s := State{operators: map[string]v1alpha1.OperatorSpec{}, served: map[string]bool{}}
	for _, sv := range l.supervisors() {
		spec, _, _, _ := sv.now()
		s.operators[sv.program.Name()] = *spec.DeepCopy()
		s.served[sv.program.Name()] = sv.hasServed()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.installed = maps.Clone(l.installed)
	return s
}

// Suspend ends the operators of the epoch and its faults, so that the sandbox can be restored. The API, once it is
// reachable again, goes on showing them until [Lab.Resume].
func (l *Lab) Suspend() error { return l.end() }

// Resume begins an epoch as [Lab.Begin] does, in a cluster that was restored to the time of the state, and loads the
// operators of that state. It returns when the lab's API is usable and the operators serve, or after half a minute if
// they do not.
func (l *Lab) Resume(ctx context.Context, s State, journal *trace.Journal) error {
	err := l.end()
	if renewed := l.server.Renew(ctx); renewed != nil {
		err = errors.Join(err, fmt.Errorf("serve the lab's own API again: %w", renewed))
	}
	l.mu.Lock()
	l.installed = maps.Clone(s.installed)
	l.mu.Unlock()
	err = errors.Join(err, l.Begin(ctx, journal))
	names := slices.Sorted(maps.Keys(s.operators))
	for _, name := range names { // whatever else went wrong, the operators should run
		err = errors.Join(err, l.apply(name, s.operators[name], s.served[name]))
	}
	limited, cancel := context.WithTimeout(ctx, awayPatience)
	defer cancel()
	for _, name := range names { // they start concurrently
		// An operator that does not serve now may not have served then either, and [Lab.Err] has the error. One that served
		// is started again.
		if sv := l.supervisor(name); sv != nil {
			_ = sv.awaitServing(limited)
		}
	}
	// Without this, the view misses what nobody changes from now on.
	return errors.Join(err, l.find(ctx), ctx.Err())
}

// Operators returns the operators of this epoch as the API shows them; UIDs and resource versions are set by the API.
func (l *Lab) Operators() []v1alpha1.Operator { return (*backend)(l).Operators() }

// Loops returns the loops seen in this epoch as the API shows them.
func (l *Lab) Loops() []v1alpha1.Loop { return (*backend)(l).Loops() }
