package tutor

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// Time limits of the steps of a lesson. They are generous because members of etcd start one after the other.
const (
	actPatience  = 30 * time.Second
	waitPatience = 2 * time.Minute
)

// configuration returns the runner's configuration for lessons: the namespace default, without cleanup.
func configuration() *format.Configuration {
	c := format.DefaultConfiguration()
	c.Spec.Namespace.Name = metav1.NamespaceDefault
	c.Spec.Cleanup.SkipDelete = true
	c.Spec.Timeouts.Assert.Duration = waitPatience
	c.Spec.Timeouts.Error.Duration = waitPatience
	c.Spec.Timeouts.Delete.Duration = actPatience
	c.Spec.Timeouts.Apply.Duration = actPatience
	c.Spec.Timeouts.Exec.Duration = waitPatience
	return c
}

// runs returns the options to run parts of the task.
func (t *Tutor) runs(tests ...*format.Loaded) runner.Options {
	return runner.Options{
		Configuration: configuration(), Tests: tests, Connection: t.connection, Kubectl: t.options.Room.Kubectl,
		Environment: t.options.Room.Environment, Values: t.values(), Seed: 1, Name: t.options.Lesson.ID,
	}
}

// values returns the bindings that the steps of a task see.
func (t *Tutor) values() map[string]any {
	t.mu.Lock()
	defer t.mu.Unlock()
	return map[string]any{"answer": valueOf(t.view.Answer), "start": t.start.values}
}

// play runs a part of a task to its end. The error is its first failure.
func (t *Tutor) play(ctx context.Context, part *format.Loaded) error {
	if len(part.Test.Spec.Steps) == 0 {
		return nil
	}
	run, err := runner.Run(ctx, t.runs(part))
	if err != nil {
		return err
	}
	if failures := failuresOf(run.Tests[0]); len(failures) > 0 {
		return failures[0]
	}
	return nil
}

// looks runs parts of a task once each, without retries, and returns the failures of each part.
func (t *Tutor) looks(ctx context.Context, parts ...*format.Loaded) ([][]*Failure, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	o := t.runs(parts...)
	o.Once = true
	run, err := runner.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	out := make([][]*Failure, len(parts))
	for i, test := range run.Tests {
		out[i] = failuresOf(test)
	}
	return out, nil
}

// Failure is a failed operation of a scenario step.
type Failure struct {
	// Step is the name of the step.
	Step, Operation string
	report.Failure
}

// Error names the step and the operation, and says why it failed.
func (f *Failure) Error() string {
	return fmt.Sprintf("step %s: %s: %s", f.Step, f.Operation, f.Message)
}

// Hint says what can be done about the failure; may be empty.
func (f *Failure) Hint() string { return f.Failure.Hint }

// failuresOf returns the failed operations in order.
func failuresOf(test *report.Test) []*Failure {
	var out []*Failure
	for _, step := range test.Steps {
		for _, op := range step.Operations {
			if op.Failure != nil {
				out = append(out, &Failure{Step: step.Name, Operation: op.Type + " " + op.Name, Failure: *op.Failure})
			}
		}
	}
	return out
}

// setUp prepares the start of the task.
func (t *Tutor) setUp(ctx context.Context) error {
	if err := t.play(ctx, t.current().Setup()); err != nil {
		return fmt.Errorf("the start of the task %s could not be prepared: %w", t.current().ID, err)
	}
	return nil
}

// solve answers the question and carries out the solution.
func (t *Tutor) solve(ctx context.Context) error {
	task := t.current()
	t.show(func(v *View) { v.Answer = task.Answer })
	if err := t.play(ctx, task.Solve()); err != nil {
		return fmt.Errorf("the solution of the task %s: %w", task.ID, err)
	}
	return nil
}

// ErrNotDone is returned if checks do not hold although the solution was carried out.
var ErrNotDone = errors.New("the checks do not hold")

// awaitDone returns when all checks of the task hold at the same time.
func (t *Tutor) awaitDone(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, waitPatience)
	defer cancel()
	var failed []*Failure
	for {
		var err error
		if failed, err = t.failing(limited, t.current().Checks()); err == nil && len(failed) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limited.Done():
			if len(failed) == 0 {
				return errors.Join(ErrNotDone, err)
			}
			return fmt.Errorf("%w after %s: %w", ErrNotDone, waitPatience, failed[0])
		case <-time.After(lookPause):
		}
	}
}

// failing returns the first failure of each check that does not hold now.
func (t *Tutor) failing(ctx context.Context, checks []book.Check) ([]*Failure, error) {
	parts := make([]*format.Loaded, len(checks))
	for i, c := range checks {
		parts[i] = c.Test
	}
	all, err := t.looks(ctx, parts...)
	var out []*Failure
	for _, failures := range all {
		if len(failures) > 0 {
			out = append(out, failures[0])
		}
	}
	return out, err
}
