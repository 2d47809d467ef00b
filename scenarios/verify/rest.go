package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/settle"
)

// restart starts the operator again, and returns when the new one has started, or when the context ends.
func (h *playHooks) restart(ctx context.Context) error {
	since := h.outcome.journal.Stats().Last
	if err := h.Lab.Faults().Arm(planFault, h.outcome.plan.Fault); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, settlePatience, fmt.Errorf("the operator has not started again after %v", settlePatience))
	defer cancel()
	if !operatorhost.AwaitEvent(ctx, h.outcome.journal, since, func(e *trace.Event) bool { return e.Kind == trace.KindOperator && e.Verb == trace.VerbStart }) {
		return context.Cause(ctx)
	}
	return nil
}

// disturb lets happen what is to happen when all has settled, and returns when all has settled again. An operator that is only
// started again has nothing to write.
func (h *playHooks) disturb(ctx context.Context, test *format.Test) (found []report.Finding, err error) {
	o := h.outcome
	if o.plan.drift != nil {
		return nil, h.drift(ctx, test)
	}
	since := o.journal.Stats().Last
	if err := h.restart(ctx); err != nil {
		return nil, err
	}
	if err := h.settle(ctx, test, ""); err != nil {
		return nil, err
	}
	for _, e := range o.journal.Since(since) {
		if settle.IsChange(e) {
			found = append(found, report.Finding{Oracle: "rest", Message: "it wrote although nothing had changed: " + e.Verb + " " + e.Object.String()})
		}
	}
	return found, nil
}

// drift does what somebody does, until all is done or something is not as it is to be.
func (h *playHooks) drift(ctx context.Context, test *format.Test) error {
	o, c := h.outcome, h.player.options.Client
	if o.plan.hides() {
		if err := h.Lab.Faults().Arm(planFault, o.plan.Fault); err != nil {
			return err
		}
	}
	for _, d := range o.plan.drift.deeds {
		why, err := d.do(ctx, c, o)
		o.why, o.reached = why, why == ""
		if err != nil || why != "" {
			return err
		}
		o.done++
		if d.then == atOnce {
			continue
		}
		if o.plan.hides() {
			limited, cancel := context.WithTimeout(ctx, seenPatience) // it may not watch the kind
			h.awaitStale(limited)
			cancel()
			h.Lab.Faults().Release(planFault)
		}
		if err := errors.Join(awaitCollected(ctx, c, o), h.settle(ctx, test, "")); err != nil {
			return err
		}
		if d.then == remember {
			if o.remembered, err = h.lasting(ctx, test); err != nil {
				return err
			}
		}
		if d.then != compare && d.then != compareOthers {
			continue
		}
		if same, err := h.awaitSame(ctx, test); err != nil || !same {
			return errors.Join(err, h.cutShort(ctx))
		}
	}
	return nil
}

// lasting returns what is there when it has not changed for a while, as nobody asserts what is to be there.
func (h *playHooks) lasting(ctx context.Context, test *format.Test) (last state, err error) {
	err = wait.PollUntilContextCancel(ctx, lastingFor, true, func(ctx context.Context) (bool, error) {
		if err := h.settle(ctx, test, ""); err != nil {
			return false, err
		}
		all, err := objects(ctx, h.Reader, h.outcome.journal, h.outcome.namespace)
		now := h.outcome.names.stateOf(all)
		same := last != nil && h.outcome.isCollected(all) && len(h.player.reference.instead(last).differences(now)) == 0
		last = now
		return same && err == nil, err
	})
	return last, err
}

// cutShort takes what is there for the result, and then deletes what would have been deleted: else it would be told as left over.
func (h *playHooks) cutShort(ctx context.Context) error {
	o, c := h.outcome, h.player.options.Client
	left := o.plan.drift.deeds[o.done:]
	if len(left) == 0 {
		return nil
	}
	o.cut = true
	if err := o.look(ctx, h.Reader); err != nil {
		return err
	}
	for _, d := range left {
		if d.make == nil && len(d.path) == 0 {
			if _, err := d.do(ctx, c, o); err != nil {
				return err
			}
		}
	}
	return awaitCollected(ctx, c, o)
}

// lastingFor is how long what is there must not change.
const lastingFor = 5 * sameEvery

// sameEvery is how often the cluster is compared with what it was.
const sameEvery = 100 * time.Millisecond

// awaitSame returns true when all is as it is to be, or false after the time that an assertion of the scenario may take: nobody
// asserts what comes after a drift, and a key with a long timer counts as settled.
func (h *playHooks) awaitSame(ctx context.Context, test *format.Test) (same bool, err error) {
	err = wait.PollUntilContextTimeout(ctx, sameEvery, h.player.options.Patience, true, func(ctx context.Context) (bool, error) {
		all, err := objects(ctx, h.Reader, h.outcome.journal, h.outcome.namespace)
		// An operator that had not yet heard of a deletion may have made an object that Kubernetes still has to delete.
		same = err == nil && h.outcome.isCollected(all) && len(h.outcome.compare(h.player.reference, h.outcome.names.stateOf(all))) == 0
		return same, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = nil // it is seen in the end
	}
	return same, errors.Join(err, h.settle(ctx, test, ""))
}

// restPlans returns the plans of a fault that happens when all has settled.
func restPlans(r *reference, k kindOfFault) []*Plan {
	if k.drifts == nil {
		return []*Plan{{Name: k.name, At: "rest", Fault: k.fault, atRest: true}}
	}
	var plans []*Plan
	for _, d := range k.drifts(r) {
		p := &Plan{Name: k.name, At: d.at, Fault: k.fault, atRest: true, drift: &d, Needless: d.refused}
		if p.hides() {
			of := d.deeds[0].role
			p.Fault.Match = &v1alpha1.FaultMatch{Verbs: []string{trace.Deleted}, Kind: of.kind, Name: of.name}
		}
		plans = append(plans, p)
	}
	return plans
}
