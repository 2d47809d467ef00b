package runner

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// toil measures what the faults of a test cost.
type toil struct {
	meter Meter
	// actions and decisions are the commands that a person gave since the last fault.
	actions, decisions int
}

// measure begins to write to the store that the test names, if it names one.
func (t *testRun) measure(ctx context.Context, in inherited) (stop func(), ok bool) {
	if t.says.Writes == "" {
		return func() {}, true
	}
	if t.Meter == nil {
		step := t.beginStep("@setup", "")
		defer t.endStep(step)
		t.fail(step, "writes", problemf("leave --kubeconfig out to run in a sandbox", "the lab is to write to %s, and this cluster is not one", t.says.Writes))
		return nil, false
	}
	t.toil = &toil{meter: t.Meter(ctx, types.NamespacedName{Namespace: in.namespace, Name: t.says.Writes})}
	return t.toil.meter.Stop, true
}

// heals is called before a step. It reports whether that is one which a person does, and nobody has to: the next step that is
// measured comes true without it, within its time.
func (t *testRun) heals(ctx context.Context, in inherited, i int) bool {
	steps := t.test.Spec.Steps
	patience, byHand := t.says.ByHand[format.StepName(&steps[i], i)]
	if !byHand {
		return false
	}
	next := t.says.NextToil(t.test, i)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(float64(patience)*cmp.Or(t.TimeoutScale, 1)))
	defer cancel()
	// It is not reported: that the step does not hold yet is no failure.
	look := &testRun{suite: t.suite, planned: t.planned, test: t.test, report: &report.Test{}, over: t.over, sink: report.Nothing{}, folder: t.folder}
	holds := look.runStep(ctx, in.step(next), &steps[next], next)
	t.folder, t.files = look.folder, append(t.files, look.files...)
	t.cleanups = append(t.cleanups, look.cleanups...)
	look.programs.end()
	return holds && !look.failed
}

// step returns a copy for the step at an index.
func (s inherited) step(i int) inherited {
	s.scope = s.scope.With("step", map[string]any{"id": float64(i + 1)})
	return s
}

// beginFault forgets the commands and the writes before a fault. It is called at the beginning of every step.
func (s *stepRun) beginFault() {
	_, measured := s.says.Toil[s.report.Name]
	if _, byHand := s.says.ByHand[s.report.Name]; byHand || measured || s.toil == nil {
		return
	}
	s.toil.actions, s.toil.decisions = 0, 0
	s.toil.meter.Reset()
}

// typed counts an operation that a person carries out, when it is begun.
func (s *stepRun) typed(op *format.Operation) {
	if _, byHand := s.says.ByHand[s.report.Name]; !byHand || s.toil == nil || isAssertion(op) || op.Sleep != nil {
		return
	}
	if _, decides := s.says.Decisions[s.report.Name]; decides {
		s.toil.decisions++
		return
	}
	s.toil.actions++
}

// endFault reports what a fault has cost, if the step waited for its end. It fails if no write is acknowledged any more.
func (s *stepRun) endFault(ctx context.Context, in inherited) bool {
	fault, measured := s.says.Toil[s.report.Name]
	if !measured || s.toil == nil {
		return true
	}
	op := s.beginOperation(s.report, report.Operation{
		Type: "writes", Phase: report.Try, Name: "EtcdCluster " + s.says.Writes, File: s.step.Position.File, Line: s.step.Position.Line,
	})
	ctx, cancel := context.WithTimeout(ctx, in.timeouts.assert)
	defer cancel()
	outage, err := s.toil.meter.Lap(ctx)
	s.endOperation(s.report, op, err)
	if err != nil {
		return false
	}
	s.report.Toil = &report.Toil{Fault: fault, Actions: s.toil.actions, Decisions: s.toil.decisions, Outage: outage.Seconds()}
	s.toil.actions, s.toil.decisions = 0, 0
	return true
}
