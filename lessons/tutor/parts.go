package tutor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/lessons/book"
	"github.com/operator-lab/operator-lab/lessons/workshop"
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

// parts runs parts of a task's scenario file on the lesson's cluster.
type parts struct {
	options runner.Options // without Tests and Values
	// values returns the value of $values.
	values func() map[string]any
	// workshop runs the operators that a script may have written; nil if there are none.
	workshop *workshop.Workshop
}

func (p *parts) run(ctx context.Context, o runner.Options, tests ...*format.Loaded) (*report.Run, error) {
	o.Tests, o.Values = tests, p.values()
	return runner.Run(ctx, o)
}

// play runs a part of a task to its end. The error is its first failure. A script may save an operator whose build takes minutes:
// the operation after it, and so the time limit of that, begins when the operator runs.
func (p *parts) play(ctx context.Context, part *format.Loaded) error {
	if len(part.Test.Spec.Steps) == 0 {
		return nil
	}
	o := p.options
	if p.workshop != nil {
		o.Sink = afterEach{then: func() { p.workshop.Refresh(ctx) }}
	}
	run, err := p.run(ctx, o, part)
	if err != nil {
		return err
	}
	if failures := failuresOf(run.Tests[0]); len(failures) > 0 {
		return failures[0]
	}
	return nil
}

// afterEach is a sink that does something after each operation, before the next one begins.
type afterEach struct {
	report.Nothing
	then func()
}

// EndOperation does it.
func (a afterEach) EndOperation(*report.Test, *report.Step, *report.Operation) { a.then() }

// look runs tests once each, without retries, and returns the failures of each.
func (p *parts) look(ctx context.Context, tests ...*format.Loaded) ([][]*Failure, error) {
	if len(tests) == 0 {
		return nil, nil
	}
	o := p.options
	o.Once = true
	run, err := p.run(ctx, o, tests...)
	if err != nil {
		return nil, err
	}
	out := make([][]*Failure, len(tests))
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

// Error names the step and the operation, and says why it failed: what differs, and what the loop of the object did last.
func (f *Failure) Error() string {
	all := []string{fmt.Sprintf("step %s: %s: %s", f.Step, f.Operation, f.Message)}
	for _, d := range f.Differences {
		all = append(all, strings.TrimPrefix(d.Path+": "+d.Message, ": "))
	}
	return strings.Join(append(all, f.Loop...), "; ")
}

// Hint says what can be done about the failure; may be empty.
func (f *Failure) Hint() string { return f.Failure.Hint }

// failuresOf returns the failed operations in order.
func failuresOf(test *report.Test) []*Failure {
	var out []*Failure
	for step, op := range test.FailedOperations() {
		out = append(out, &Failure{Step: step.Name, Operation: op.Type + " " + op.Name, Failure: *op.Failure})
	}
	return out
}

// ErrNotDone is returned if checks do not hold although the solution was carried out.
var ErrNotDone = errors.New("the checks do not hold")

// awaitAll returns when all checks hold at the same time.
func (p *parts) awaitAll(ctx context.Context, checks []book.Check) error {
	limited, cancel := context.WithTimeout(ctx, waitPatience)
	defer cancel()
	var failed []*Failure
	for {
		var err error
		if failed, err = p.failing(limited, checks); err == nil && len(failed) == 0 {
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
func (p *parts) failing(ctx context.Context, checks []book.Check) ([]*Failure, error) {
	all, err := p.look(ctx, testsOf(checks)...)
	var out []*Failure
	for _, failures := range all {
		if len(failures) > 0 {
			out = append(out, failures[0])
		}
	}
	return out, err
}

// testsOf returns the test of each check.
func testsOf(checks []book.Check) []*format.Loaded {
	out := make([]*format.Loaded, len(checks))
	for i, c := range checks {
		out[i] = c.Test
	}
	return out
}
