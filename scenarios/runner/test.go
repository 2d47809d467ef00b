package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// lastPatience is how long the clean-up of a test may go on after the run was interrupted.
const lastPatience = 30 * time.Second

// testRun is a test while it is run.
type testRun struct {
	*suite
	planned *planned
	test    *format.Test
	report  *report.Test
	// failed says that something failed so far.
	failed bool
	// cleanups are done at the end, the last first.
	cleanups []func(context.Context)
	// removeNamespace is done after them, and after the lab has had its look: what a namespace takes along has not been
	// cleaned up by anybody. It is nil when there is none to remove.
	removeNamespace func(context.Context)
	// programs are those that scripts left running.
	programs leftovers
	// folder on the disk, where the test's own is elsewhere; see [testRun.workFolder].
	folder string
	// files are kubeconfigs, which programs that scripts leave running may need too.
	files []string
}

// runTest runs one test, or skips it.
func (s *suite) runTest(ctx context.Context, base start, p *planned) {
	r := p.report
	r.Started = time.Now()
	s.Sink.BeginTest(r)
	defer func() {
		r.Ended = time.Now()
		if r.Failed() {
			s.failed.Store(true)
		}
		s.Sink.EndTest(r)
	}()
	t := &testRun{suite: s, planned: p, test: p.loaded.Test, report: r}
	switch {
	case p.loaded.Err != nil:
		t.refuse(ctx)
	case t.test.Spec.Skip != nil && *t.test.Spec.Skip:
		r.Skipped, r.SkipReason = true, "its file says so"
	case ctx.Err() != nil:
		r.Skipped, r.SkipReason = true, "the run was interrupted"
	case s.failed.Load() && s.Configuration.Spec.Execution.FailFast:
		r.Skipped, r.SkipReason = true, "another test failed, and the run is to fail fast"
	default:
		t.run(ctx, base)
	}
}

// refuse fails a test that could not be loaded, with all that is wrong with it.
func (t *testRun) refuse(ctx context.Context) {
	step := t.beginStep("@load", "")
	defer t.endStep(step)
	var problems format.Problems
	if !errors.As(t.planned.loaded.Err, &problems) {
		t.fail(ctx, step, "load", t.planned.loaded.Err)
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
	begun := t.steps(ctx, base)
	last, cancel := outlive(ctx, lastPatience)
	defer cancel()
	if begun {
		t.report.Findings = append(t.report.Findings, t.Hooks.Settled(last, t.test, t.report, !t.failed)...)
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
	if begun {
		t.report.Findings = append(t.report.Findings, t.Hooks.Cleaned(last, t.test, t.report, !t.failed)...)
	}
	if t.removeNamespace != nil {
		t.removeNamespace(last)
	}
}

// steps sets the test up and runs its steps. It reports whether the lab has begun with it.
func (t *testRun) steps(ctx context.Context, base start) (begun bool) {
	in, begun, ok := t.setUp(ctx, base)
	if !ok {
		return begun
	}
	for i := range t.test.Spec.Steps {
		in := in
		in.scope = in.scope.With("step", map[string]any{"id": float64(i + 1)})
		if !t.runStep(ctx, in, &t.test.Spec.Steps[i], i) {
			break
		}
	}
	return begun
}

// setUp makes the scene of the test and its namespace. What fails is in the report.
func (t *testRun) setUp(ctx context.Context, base start) (in scene, begun, ok bool) {
	step := t.beginStep("@setup", "")
	defer t.endStep(step)
	if base.err != nil {
		t.fail(ctx, step, "configuration", base.err)
		return in, false, false
	}
	in, err := t.scene(ctx, base.scene)
	if err != nil {
		t.fail(ctx, step, "bindings", err)
		return in, false, false
	}
	if err := t.Hooks.Begin(ctx, t.test, t.report); err != nil {
		t.fail(ctx, step, "begin", err)
		return in, false, false
	}
	if in, err = t.makeNamespace(ctx, in, step); err != nil {
		return in, true, false
	}
	t.report.Namespace = in.namespace
	scope, err := in.scope.BindAll(ctx, t.test.Spec.Bindings)
	if err != nil {
		t.fail(ctx, step, "bindings", err)
		return in, true, false
	}
	in.scope = scope
	return in, true, true
}

// scene is what the test says.
func (t *testRun) scene(ctx context.Context, in scene) (scene, error) {
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

// metadataOf is the metadata of a test as expressions see it.
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

// makeNamespace makes the namespace that the test is to run in, if the configuration has not named one for all.
func (t *testRun) makeNamespace(ctx context.Context, in scene, step *report.Step) (scene, error) {
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
	if o.name == "" {
		if o.name, err = t.freeName(limited, in, t.planned); err != nil {
			t.endOperation(step, op, err)
			return in, err
		}
	}
	fast := shared.FastDelete
	set(&fast, spec.FastNamespaceDeletion)
	remove := &cleaner{timeout: in.timeouts.cleanup, propagation: in.propagation, wait: !fast}
	in, err = t.namespace(limited, in, o, remove)
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

// clean removes what a cleaner knows.
func (t *testRun) clean(ctx context.Context, step *report.Step, c *cleaner) {
	for _, e := range c.reversed() {
		op := t.beginOperation(step, report.Operation{Type: "delete", Phase: report.Cleanup, Name: nameOf(e.object)})
		t.endOperation(step, op, e.remove(ctx))
	}
}

func (t *testRun) beginStep(name, description string) *report.Step {
	step := &report.Step{Name: name, Description: description, Started: time.Now()}
	t.report.Steps = append(t.report.Steps, step)
	t.Sink.BeginStep(t.report, step)
	return step
}

func (t *testRun) endStep(step *report.Step) {
	step.Ended = time.Now()
	t.Sink.EndStep(t.report, step)
}

func (t *testRun) beginOperation(step *report.Step, o report.Operation) *report.Operation {
	o.Started = time.Now()
	step.Operations = append(step.Operations, &o)
	t.Sink.BeginOperation(t.report, step, &o)
	return &o
}

func (t *testRun) endOperation(step *report.Step, op *report.Operation, err error) {
	op.Ended = time.Now()
	if err != nil {
		op.Failure = failureOf(err)
		t.failed = true
	}
	t.Sink.EndOperation(t.report, step, op)
}

// fail reports an error that belongs to no operation of the file.
func (t *testRun) fail(ctx context.Context, step *report.Step, what string, err error) {
	if ctx.Err() != nil {
		err = fmt.Errorf("interrupted: %w", err)
	}
	op := t.beginOperation(step, report.Operation{Type: what, Phase: report.Try, File: t.report.File, Line: t.report.Line})
	t.endOperation(step, op, err)
}
