package runner

import (
	"context"
	"time"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// stepRun is a running step.
type stepRun struct {
	*testRun
	step   *format.TestStep
	report *report.Step
	// made remembers what the step created.
	made *cleaner
	// stays is how long its asserts must stay true; 0 if there is no such requirement.
	stays time.Duration
	held  []held
}

// runStep runs a step and reports whether the test continues.
func (t *testRun) runStep(ctx context.Context, in inherited, step *format.TestStep, i int) bool {
	name := format.StepName(step, i)
	s := &stepRun{testRun: t, step: step, report: t.beginStep(name, step.Description)}
	defer t.endStep(s.report)
	s.beginFault()
	in.scope = in.scope.WithCompiler(step.Compiler)
	in, err := in.with(ctx, settings{
		catch: step.Catch, cluster: step.Cluster, clusters: step.Clusters, propagation: step.DeletionPropagationPolicy,
		skipDelete: step.SkipDelete, templating: step.Template, timeouts: step.Timeouts, bindings: step.Bindings,
	})
	if err != nil {
		t.fail(s.report, "bindings", err)
		return false
	}
	s.stays = t.says.Stays[name]
	s.made = &cleaner{timeout: in.timeouts.cleanup, propagation: in.propagation, wait: true}
	// Bindings made during the step are visible to the rest of it, including its clean-up at the end of the test.
	t.cleanups = append(t.cleanups, func(ctx context.Context) { s.cleanUp(ctx, &in) })
	goOn := s.try(ctx, &in)
	// As in Chainsaw, catch also runs for a failure of an earlier step that continued. After an interrupt it does not,
	// because the state is being torn down.
	if t.failed && ctx.Err() == nil {
		s.all(ctx, &in, report.Catch, in.catch)
	}
	if len(step.Finally) > 0 {
		last, cancel := outlive(ctx, lastPatience)
		defer cancel()
		s.all(last, &in, report.Finally, step.Finally)
	}
	return goOn
}

// try runs the operations of the step until one fails.
func (s *stepRun) try(ctx context.Context, in *inherited) bool {
	for i := range s.step.Try {
		op := &s.step.Try[i]
		if !isAssertion(op) {
			if !s.stay(ctx) {
				return false
			}
		}
		s.typed(op)
		out, goOn := s.operation(ctx, *in, report.Try, op, i)
		*in = out
		if !goOn {
			return false
		}
	}
	return s.stay(ctx) && s.endFault(ctx, *in)
}

// all runs the operations of catch, finally or cleanup, all of them even if one fails.
func (s *stepRun) all(ctx context.Context, in *inherited, phase report.Phase, operations []format.CatchFinally) {
	for i := range operations {
		*in, _ = s.operation(ctx, *in, phase, operations[i].Operation(), i)
	}
}

// cleanUp removes what the step created and then runs its cleanup operations.
func (s *stepRun) cleanUp(ctx context.Context, in *inherited) {
	made := len(s.made.reversed())
	if made > 0 && in.delay > 0 {
		_ = sleep(ctx, in.delay) // an interrupt ends the delay, not the clean-up
	}
	s.clean(ctx, s.report, s.made)
	s.all(ctx, in, report.Cleanup, s.step.Cleanup)
}
