package tutor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/settle"
)

// startTask prepares the task and shows it to the learner.
func (t *Tutor) startTask(ctx context.Context) error {
	t.options.Say(t.textf("preparing the task", "タスクを準備しています"))
	if err := t.prepare(ctx); err != nil {
		return err
	}
	if t.options.Progress != nil {
		// The task goes on even if the learner's position cannot be saved.
		_ = t.options.Progress.SetLast(t.options.Lesson.ID, t.current().ID)
	}
	return t.look(ctx)
}

// prepare prepares the start of the task, saves it, so that an undo can restore it, and takes down the values for its checks.
func (t *Tutor) prepare(ctx context.Context) error {
	if err := t.setUp(ctx); err != nil {
		return err
	}
	if err := t.settle(ctx); err != nil {
		return err
	}
	return errors.Join(t.save(ctx), t.survey(ctx))
}

// save saves the start of the current task.
func (t *Tutor) save(ctx context.Context) error {
	t.mu.Lock()
	index := t.task
	t.mu.Unlock()
	checkpoint, err := t.options.Sandbox.Checkpoints().Save(ctx, fmt.Sprintf("task-%d", index+1))
	if err != nil {
		return fmt.Errorf("save how the task begins: %w", err)
	}
	begin := start{checkpoint: checkpoint, lab: t.options.Lab.State()}
	if w := t.options.Workshop; w != nil {
		if begin.own, err = w.Save(); err != nil {
			return fmt.Errorf("save the files that the task begins with: %w", err)
		}
	}
	t.mu.Lock()
	t.start, t.starts[index] = begin, begin
	t.mu.Unlock()
	return nil
}

// settle waits until the operators are idle and the workloads as they are to be, so that what happens next was done by the
// learner. It gives up after settlePatience, because a loop may never rest.
func (t *Tutor) settle(ctx context.Context) error {
	if len(t.options.Lesson.Operators) == 0 {
		return nil
	}
	reader, err := client.New(t.options.Sandbox.Config(), client.Options{})
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	workloads := settle.Workloads{Reader: reader, Patience: stuckAfter}
	for {
		rest, err := workloads.AtRest(limited)
		if err == nil {
			// Also what the operators make of the last change of a workload.
			err = operatorhost.AwaitStill(limited, t.options.Lab.Journal())
		}
		if rest && err == nil {
			return nil
		}
		select {
		case <-limited.Done():
			return ctx.Err()
		case <-time.After(lookPause):
		}
	}
}

// survey records the current objects, for the checks' values and to notice missing ones.
func (t *Tutor) survey(ctx context.Context) error {
	seen, err := inventoryOf(ctx, t.options.Sandbox.Config(), t.options.Lab.Operators())
	if err != nil {
		return fmt.Errorf("take down how the task begins: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.start.objects = seen
	t.start.values = map[string]any{
		"revision": float64(t.start.checkpoint.Revision()), "objects": seen.values(), "loops": t.loops(),
	}
	return nil
}

// loops returns the statuses of the Loops by name, for expressions.
func (t *Tutor) loops() map[string]any {
	out := map[string]any{}
	for _, loop := range t.options.Lab.Loops() {
		status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&loop.Status)
		if err == nil { // it consists of numbers and strings, so it always converts
			out[loop.Name] = asExpressionsSee(status)
		}
	}
	return out
}

// asExpressionsSee converts all integers to floats, as in a scenario.
func asExpressionsSee(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, each := range v {
			v[key] = asExpressionsSee(each)
		}
	case []any:
		for i, each := range v {
			v[i] = asExpressionsSee(each)
		}
	case int64:
		return float64(v)
	}
	return value
}

// values returns the value of $values in the steps of a task.
func (t *Tutor) values() map[string]any {
	answer := t.View().Answer
	t.mu.Lock()
	defer t.mu.Unlock()
	return map[string]any{"answer": valueOf(answer), "start": t.start.values}
}

// setUp prepares the start of the task.
func (t *Tutor) setUp(ctx context.Context) error {
	if err := t.parts.play(ctx, t.current().Setup()); err != nil {
		return fmt.Errorf("the start of the task %s could not be prepared: %w", t.current().ID, err)
	}
	return nil
}

// solve answers the question and carries out the solution.
func (t *Tutor) solve(ctx context.Context) error {
	task := t.current()
	t.show(func(v *View) { v.Answer = task.Answer })
	if err := t.parts.play(ctx, task.Solve()); err != nil {
		return fmt.Errorf("the solution of the task %s: %w", task.ID, err)
	}
	return nil
}

// valueOf returns an answer as a value for expressions: a number, a string, or nil if it is empty.
func valueOf(answer string) any {
	if answer == "" {
		return nil
	}
	if n, err := strconv.ParseFloat(answer, 64); err == nil {
		return n
	}
	return answer
}

// Undo restores the cluster and the manifests to the start of the task. The lab begins a new journal, which Undo
// returns.
func (t *Tutor) Undo(ctx context.Context) (*trace.Journal, error) {
	t.acting.Lock()
	defer t.acting.Unlock()
	return t.again(ctx, t.View().Index-1)
}

// Back does the same for the task before the current one, which is to be done again. It fails in the first task.
func (t *Tutor) Back(ctx context.Context) (*trace.Journal, error) {
	t.acting.Lock()
	defer t.acting.Unlock()
	index := t.View().Index - 2
	if index < 0 {
		return nil, problem(
			t.textf("this is the first task of the lesson", "これがレッスンの最初のタスクです"),
			t.textf("an undo brings back its start", "元に戻す操作で、このタスクの開始時点に戻せます"),
		)
	}
	return t.again(ctx, index)
}

// again restores the start of a task and turns to it.
func (t *Tutor) again(ctx context.Context, index int) (*trace.Journal, error) {
	t.mu.Lock()
	begin, same := t.starts[index], index == t.task
	t.mu.Unlock()
	journal, err := t.restore(ctx, begin)
	if err != nil {
		return nil, err
	}
	// From here on the cluster is back at the start, and the view shows that even if a later step fails.
	before := t.View()
	t.turnTo(index)
	t.mu.Lock()
	t.start = begin
	t.mu.Unlock()
	if same { // hints and solution stay revealed
		all := len(t.current().Hints(t.options.Language))
		t.show(func(v *View) { v.Hints, v.Solution, v.More = before.Hints, before.Solution, len(before.Hints) < all })
	}
	if err := errors.Join(t.settle(ctx), t.writeFiles(true), t.survey(ctx)); err != nil {
		return journal, err
	}
	return journal, t.look(ctx)
}

// restore restores the cluster and the operators. Operators are started again even if the cluster could not be
// restored.
func (t *Tutor) restore(ctx context.Context, begin start) (*trace.Journal, error) {
	w := t.options.Workshop
	if w != nil {
		defer w.Hold()()
	}
	t.options.Say(t.textf("stopping the operators", "オペレーターを停止しています"))
	if err := t.options.Lab.Suspend(); err != nil {
		return nil, err
	}
	t.options.Say(t.textf("putting back what the cluster held", "クラスターの内容を元に戻しています"))
	err := t.options.Sandbox.Checkpoints().Restore(ctx, begin.checkpoint)
	if w != nil {
		err = errors.Join(err, w.Restore(begin.own))
	}
	journal := t.options.Lab.NewJournal()
	t.options.Moved(journal)
	t.options.Say(t.textf("starting the operators", "オペレーターを起動しています"))
	return journal, errors.Join(err, t.options.Lab.Resume(ctx, begin.lab, journal))
}
