package runner

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// lastPatience limits the clean-up of a test after the run was interrupted.
const lastPatience = 30 * time.Second

// testRun is a running test.
type testRun struct {
	*suite
	planned *planned
	test    *format.Test
	report  *report.Test
	// says holds the lab's annotations of the test.
	says format.Lab
	// sink is told of the steps.
	sink report.Sink
	// toil measures what faults cost; nil if the test does not ask for it.
	toil *toil
	// over is closed when the run is interrupted.
	over <-chan struct{}
	// failed reports whether something has failed so far.
	failed bool
	// cleanups run at the end, the last first.
	cleanups []func(context.Context)
	// removeNamespace runs after them, and after the hooks have looked: what is removed with a namespace was not
	// cleaned up by the operator. It is nil if there is no namespace to remove.
	removeNamespace func(context.Context)
	// programs are the programs that scripts left running.
	programs leftovers
	// folder is the test's folder on disk, if it was copied; see [testRun.workFolder].
	folder string
	// files are kubeconfigs; they stay until the end, because programs that scripts leave running may need them.
	files []string
}

// runTest runs one test, or skips it.
func (s *suite) runTest(ctx context.Context, base start, p *planned) {
	r := p.report
	r.Started = time.Now()
	t := &testRun{suite: s, planned: p, test: p.loaded.Test, report: r, over: ctx.Done(), sink: s.Sink}
	switch {
	case p.loaded.Err != nil:
		t.sink.BeginTest(r)
		t.refuse()
	case t.test.Spec.Skip != nil && *t.test.Spec.Skip:
		r.Skipped, r.SkipReason = true, "its file says so"
		t.sink.BeginTest(r)
	default:
		t.run(ctx, base)
	}
	r.Ended = time.Now()
	t.tellFailed()
	t.sink.EndTest(r)
}

// tellFailed stops further tests if the test has failed and the run fails fast.
func (t *testRun) tellFailed() {
	if t.Configuration.Spec.Execution.FailFast && t.report.Failed() {
		t.beginNoMore()
	}
}

// leave marks a test that has not begun as left out if the run has ended, and reports whether it did.
func (t *testRun) leave() bool {
	switch {
	case done(t.over):
		t.report.Unfinished = true
	case t.beginning.Err() != nil:
		t.report.Skipped, t.report.Unfinished = true, true
		t.report.SkipReason = "another test failed, and the run is to fail fast"
	default:
		return false
	}
	t.sink.BeginTest(t.report)
	return true
}

// done reports whether a channel is closed.
func done(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// refuse fails a test that could not be loaded, with all its problems.
func (t *testRun) refuse() {
	step := t.beginStep("@load", "")
	defer t.endStep(step)
	var problems format.Problems
	if !errors.As(t.planned.loaded.Err, &problems) {
		t.fail(step, "load", t.planned.loaded.Err)
		return
	}
	for _, p := range problems {
		op := t.beginOperation(step, report.Operation{
			Type: "load", Phase: report.Try, Name: t.report.File, File: p.File, Line: p.Line,
		})
		t.endOperation(step, op, problemf(p.Hint, "%s", p.Message))
	}
}

// run runs the test.
func (t *testRun) run(ctx context.Context, base start) {
	if t.leave() {
		return
	}
	in, what, err := t.begin(ctx, base)
	// A test that is still waiting for the hooks has not begun when the run ends.
	begun := err == nil
	if !begun && t.leave() {
		return
	}
	t.sink.BeginTest(t.report)
	t.steps(ctx, in, what, err)
	last, cancel := outlive(ctx, lastPatience)
	defer cancel()
	if begun {
		t.found(t.Hooks.Settled(last, t.test, t.report, !t.failed))
	}
	if t.PauseOnFailure != nil && ctx.Err() == nil && t.report.Failed() {
		t.PauseOnFailure(ctx, t.report)
	}
	for _, clean := range slices.Backward(t.cleanups) {
		clean(last)
	}
	t.programs.end()
	for _, file := range t.files {
		_ = os.Remove(file)
	}
	t.tellFailed() // before the hooks let the next test begin
	if begun {
		t.found(t.Hooks.Cleaned(last, t.test, t.report, !t.failed))
	}
	if t.removeNamespace != nil {
		t.removeNamespace(last)
	}
}

// found adds the findings of the hooks. An interrupted test gets none, because it is incomplete.
func (t *testRun) found(findings []report.Finding) {
	if !t.report.Unfinished {
		t.report.Findings = append(t.report.Findings, findings...)
	}
}

// begin prepares what the steps inherit and calls the hook Begin, which may wait for other tests. With an error it also
// returns what failed.
func (t *testRun) begin(ctx context.Context, base start) (in inherited, what string, err error) {
	if base.err != nil {
		return in, "configuration", base.err
	}
	if in, err = t.inherited(ctx, base.inherited); err != nil {
		return in, "bindings", err
	}
	if t.says, err = format.ReadLab(t.test); err != nil {
		return in, "annotations", err
	}
	return in, "begin", t.Hooks.Begin(t.beginning, t.test, t.report)
}

// steps sets the test up, unless it could not begin, and runs its steps.
func (t *testRun) steps(ctx context.Context, in inherited, what string, err error) {
	in, ok := t.setUp(ctx, in, what, err)
	if !ok {
		return
	}
	stop, ok := t.measure(ctx, in)
	if !ok {
		return
	}
	defer stop()
	for i := range t.test.Spec.Steps {
		if ctx.Err() != nil {
			t.report.Unfinished = true
			return
		}
		if t.heals(ctx, in, i) {
			continue
		}
		if !t.runStep(ctx, in.step(i), &t.test.Spec.Steps[i], i) {
			return
		}
	}
}

// setUp creates the namespace of the test. It reports failures, including an error of begin.
func (t *testRun) setUp(ctx context.Context, in inherited, what string, err error) (inherited, bool) {
	step := t.beginStep("@setup", "")
	defer t.endStep(step)
	if err != nil {
		t.fail(step, what, err)
		return in, false
	}
	if in, err = t.makeNamespace(ctx, in, step); err != nil {
		return in, false
	}
	t.report.Namespace = in.namespace
	scope, err := in.scope.BindAll(ctx, t.test.Spec.Bindings)
	if err != nil {
		t.fail(step, "bindings", err)
		return in, false
	}
	in.scope = scope
	return in, true
}

// inherited returns what the steps of the test inherit.
func (t *testRun) inherited(ctx context.Context, in inherited) (inherited, error) {
	spec := &t.test.Spec
	in.folder = t.planned.loaded.Folder
	in.scope = in.scope.With("test", map[string]any{
		"id": float64(t.planned.id), "scenarioId": float64(t.planned.scenario), "metadata": metadataOf(&t.test.ObjectMeta),
	})
	if t.planned.scenario > 0 {
		scope, err := in.scope.BindAll(ctx, spec.Scenarios[t.planned.scenario-1].Bindings)
		if err != nil {
			return in, err
		}
		in.scope = scope
	}
	in, err := in.with(ctx, settings{
		catch: spec.Catch, cluster: spec.Cluster, clusters: spec.Clusters, delay: spec.DelayBeforeCleanup,
		grace: spec.ForceTerminationGracePeriod, propagation: spec.DeletionPropagationPolicy,
		skipDelete: spec.SkipDelete, templating: spec.Template, timeouts: spec.Timeouts,
	})
	in.scope = in.scope.WithCompiler(spec.Compiler)
	return in, err
}

// metadataOf returns a test's metadata for expressions.
func metadataOf(m *metav1.ObjectMeta) map[string]any {
	texts := func(in map[string]string) any {
		if in == nil {
			return nil
		}
		out := make(map[string]any, len(in))
		for key, value := range in {
			out[key] = value
		}
		return out
	}
	return map[string]any{
		"name": m.Name, "namespace": m.Namespace, "labels": texts(m.Labels), "annotations": texts(m.Annotations),
	}
}

// makeNamespace creates the test's namespace, unless the configuration names one for all tests.
func (t *testRun) makeNamespace(ctx context.Context, in inherited, step *report.Step) (inherited, error) {
	spec, shared := &t.test.Spec, t.Configuration.Spec.Namespace
	o := namespaceOptions{name: spec.Namespace, template: shared.Template, compiler: shared.Compiler}
	if spec.NamespaceTemplate != nil {
		o.template, o.compiler = spec.NamespaceTemplate, spec.NamespaceTemplateCompiler
	}
	if o.name == "" && in.namespace != "" || in.cluster == nil {
		return in, nil
	}
	op := t.beginOperation(step, report.Operation{Type: "create", Phase: report.Try, Name: "Namespace", File: t.report.File, Line: t.report.Line})
	limited, cancel := context.WithTimeout(ctx, namespacePatience)
	defer cancel()
	var err error
	fast := shared.FastDelete
	set(&fast, spec.FastNamespaceDeletion)
	remove := &cleaner{timeout: in.timeouts.cleanup, propagation: in.propagation, wait: !fast}
	if o.name != "" {
		in, err = t.namespace(limited, in, o, remove)
	} else {
		in, o.name, err = t.ownNamespace(limited, in, o, remove)
	}
	op.Name = "Namespace " + o.name
	t.endOperation(step, op, err)
	if in.skipDelete {
		return in, err
	}
	t.removeNamespace = func(ctx context.Context) {
		if len(remove.reversed()) == 0 {
			return
		}
		step := t.beginStep("@cleanup", "")
		defer t.endStep(step)
		t.clean(ctx, step, remove)
	}
	return in, err
}

// ownNamespace creates a namespace with a unique name. If another run on the same cluster takes the name first, it
// tries another one.
func (t *testRun) ownNamespace(ctx context.Context, in inherited, o namespaceOptions, remove *cleaner) (inherited, string, error) {
	for {
		name, err := t.freeName(ctx, in, t.planned)
		if err != nil {
			return in, name, err
		}
		o.name = name
		made, err := t.namespace(ctx, in, o, remove)
		if !apierrors.IsAlreadyExists(err) {
			return made, name, err
		}
	}
}

// clean removes the objects of a cleaner.
func (t *testRun) clean(ctx context.Context, step *report.Step, c *cleaner) {
	for _, e := range c.reversed() {
		op := t.beginOperation(step, report.Operation{Type: "delete", Phase: report.Cleanup, Name: nameOf(e.object)})
		t.endOperation(step, op, e.remove(ctx))
	}
}

func (t *testRun) beginStep(name, description string) *report.Step {
	step := &report.Step{Name: name, Description: description, Started: time.Now()}
	t.report.Steps = append(t.report.Steps, step)
	t.sink.BeginStep(t.report, step)
	return step
}

func (t *testRun) endStep(step *report.Step) {
	step.Ended = time.Now()
	t.sink.EndStep(t.report, step)
}

func (t *testRun) beginOperation(step *report.Step, o report.Operation) *report.Operation {
	o.Started = time.Now()
	step.Operations = append(step.Operations, &o)
	t.sink.BeginOperation(t.report, step, &o)
	return &o
}

// endOperation reports the end of an operation. A failure after an interrupt is not reported as one, because it says
// nothing about what is tested; in the clean-up it is, because objects may be left.
func (t *testRun) endOperation(step *report.Step, op *report.Operation, err error) {
	op.Ended = time.Now()
	switch {
	case err == nil:
	case op.Phase != report.Cleanup && done(t.over):
		op.Interrupted, t.report.Unfinished, t.failed = true, true, true
	default:
		op.Failure = failureOf(err)
		t.failed = true
	}
	t.sink.EndOperation(t.report, step, op)
}

// fail reports an error that belongs to no operation of the file.
func (t *testRun) fail(step *report.Step, what string, err error) {
	op := t.beginOperation(step, report.Operation{Type: what, Phase: report.Try, File: t.report.File, Line: t.report.Line})
	t.endOperation(step, op, err)
}
