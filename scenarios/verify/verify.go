// Package verify explores what faults do to an operator. It plays a scenario a few times without faults to learn what
// the operator writes, what it watches and where the cluster settles; then once for each plan, which is one fault at
// one write or watch event. Where the cluster settles differently, the scenario fails or an oracle finds something,
// the plan is played again, and what happens each time is a finding.
//
// Plans are played side by side in one cluster: each in a namespace of its own with an operator of its own, which is
// shown that namespace only.
package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/scenarios"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// Options are the options of [Run].
type Options struct {
	// Lab are the options of the labs that play; their Cluster is shown to each operator without other namespaces.
	Lab lab.Options
	// Test is the scenario.
	Test *format.Loaded
	// Selection chooses the operator, its variant and its parameters.
	Selection scenarios.Selection
	// Runner are the options to play the scenario with. Tests, Hooks and Sink are set here.
	Runner runner.Options
	// Client reads the cluster without a cache, and makes drift.
	Client client.Client
	// Workers is how many plans are played side by side. Default: 8.
	Workers int
	// Patience is how long an assertion of the scenario may take to become true in a play with a fault; at least three
	// times what the scenario took without. Default: 5 s.
	Patience time.Duration
	// Budget ends the exploration; what was not played by then is counted as skipped. Default: none.
	Budget time.Duration
	// Only are the names of the faults to explore; see [FaultNames]. Default: all.
	Only []string
	// Progress is told what has been done so far. Calls do not overlap. Default: nobody is told.
	Progress func(Progress)
}

// Progress says how far an exploration is.
type Progress struct {
	// Plans is how many there are, Played how many of them were played.
	Plans, Played int
	// Findings is how many plans went wrong at their first play.
	Findings int
	// Elapsed is the time since the first plan.
	Elapsed time.Duration
}

const (
	defaultWorkers  = 8
	defaultPatience = 5 * time.Second
	// references is how often the scenario is played without faults.
	references = 3
	// confirmations is how often a plan has to go wrong to be a finding.
	confirmations = 3
)

// Run explores. Without a report there is no result: the scenario fails without faults, or the cluster is gone. When the
// context ends, the report has what was found until then, beside the context's error.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if err := playable(o.Test); err != nil {
		return nil, err
	}
	v := &verifier{Options: o}
	defer v.close()
	if err := v.open(ctx); err != nil {
		return nil, err
	}
	return v.run(ctx)
}

// playable returns why a scenario cannot be explored.
func playable(loaded *format.Loaded) error {
	if len(loaded.Test.Spec.Scenarios) > 0 {
		return &sandbox.Problem{
			Err: fmt.Errorf("scenario %s has a matrix, and verify plays one row", loaded.Test.Name), Hint: "choose a scenario without spec.scenarios",
		}
	}
	return nil
}

// verifier is one exploration.
type verifier struct {
	Options
	players []*player
	free    chan *player
}

func (v *verifier) open(ctx context.Context) error {
	namespaced, err := namespacedResources(v.Lab.Cluster.Config())
	if err != nil {
		return fmt.Errorf("ask the API server for its resources: %w", err)
	}
	v.free = make(chan *player, v.Workers)
	connection := runner.Connect(v.Lab.Cluster.Config(), v.Runner.Kubeconfig)
	for range v.Workers {
		p, err := newPlayer(ctx, v.Options, connection, namespaced)
		if err != nil {
			return err
		}
		v.players = append(v.players, p)
		v.free <- p
	}
	return nil
}

func (v *verifier) close() {
	var all sync.WaitGroup
	for _, p := range v.players {
		all.Go(p.close)
	}
	all.Wait()
}

// play plays a plan when a player is free; nil: without a fault.
func (v *verifier) play(ctx context.Context, plan *Plan) (*outcome, error) {
	select {
	case p := <-v.free:
		defer func() { v.free <- p }()
		return p.play(ctx, plan)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (v *verifier) run(ctx context.Context) (*Report, error) {
	reference, unsteady, err := v.reference(ctx)
	if err != nil {
		return nil, err
	}
	r := &Report{Scenario: v.Test.Test.Name, Writes: len(reference.writes), Kinds: reference.state.kinds()}
	if len(unsteady) > 0 {
		r.Findings = []Finding{byItself(unsteady)}
		return r, nil
	}
	all := plansOf(reference, v.Only)
	plans := slices.DeleteFunc(slices.Clone(all), func(p *Plan) bool { return p.Needless != "" })
	began := time.Now()
	playing := ctx
	if v.Budget > 0 {
		var cancel context.CancelFunc
		playing, cancel = context.WithTimeout(ctx, v.Budget)
		defer cancel()
	}
	outcomes := v.playAll(playing, reference, plans, began)
	r.record(all, outcomes)
	v.confirm(ctx, r, reference, outcomes)
	return r, ctx.Err()
}

// reference plays the scenario without faults, and returns what is the same each time, and what is not there each time.
func (v *verifier) reference(ctx context.Context) (*reference, []Difference, error) {
	began := time.Now()
	outcomes := make([]*outcome, references)
	errs := make([]error, references)
	var all sync.WaitGroup
	for i := range outcomes {
		all.Go(func() { outcomes[i], errs[i] = v.play(ctx, nil) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	for _, o := range outcomes {
		if len(o.wrong) > 0 {
			return nil, nil, &sandbox.Problem{
				Err:  fmt.Errorf("without any fault, scenario %s goes wrong: %s", v.Test.Test.Name, o.wrong[0]),
				Hint: "mend that first: 'operator-lab test' plays it and shows the loop",
			}
		}
	}
	v.Patience = max(v.Patience, (3 * time.Since(began)).Round(time.Second))
	v.Runner.Configuration = impatient(v.Runner.Configuration, v.Patience)
	r, unsteady := newReference(outcomes)
	for _, p := range v.players {
		p.options.Runner.Configuration, p.options.Patience, p.reference = v.Runner.Configuration, v.Patience, r
	}
	return r, unsteady, nil
}

// operator returns the name of the operator, for sentences.
func (v *verifier) operator() string {
	setup, err := v.Selection.Setup(v.Test.Test)
	if err != nil || len(setup.Operators) == 0 {
		return "the operator"
	}
	return setup.Operators[0]
}

// playAll plays all plans, and returns their outcomes in the order of the plans; nil for one that was not played to its
// end.
func (v *verifier) playAll(ctx context.Context, reference *reference, plans []*Plan, began time.Time) []*outcome {
	outcomes := make([]*outcome, len(plans))
	var mu sync.Mutex
	progress := Progress{Plans: len(plans)}
	next := make(chan int)
	var all sync.WaitGroup
	for range v.Workers {
		all.Go(func() {
			for i := range next {
				o, err := v.play(ctx, plans[i])
				if err != nil {
					continue
				}
				o.judge(reference)
				if len(o.wrong) == 0 {
					o.state, o.journal = nil, nil // memory must not grow with the plans
				}
				mu.Lock()
				outcomes[i] = o
				progress.Played++
				if len(o.wrong) > 0 {
					progress.Findings++
				}
				progress.Elapsed = time.Since(began)
				v.Progress(progress)
				mu.Unlock()
			}
		})
	}
	for i := range plans {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
	return outcomes
}

// confirm plays again what went wrong, and adds to the report what goes wrong each time in the same way. Plans with the
// same result are one finding.
func (v *verifier) confirm(ctx context.Context, r *Report, reference *reference, outcomes []*outcome) {
	for _, group := range groups(outcomes) {
		f := newFinding(v.operator(), group)
		for f.Times = 1; f.Times < confirmations; f.Times++ {
			again, err := v.play(ctx, group[0].plan)
			if err != nil {
				break // it was interrupted: the report has it as not confirmed
			}
			again.judge(reference)
			if again.signature() != group[0].signature() {
				break
			}
		}
		f.Steady = f.Times == confirmations
		r.Findings = append(r.Findings, f)
	}
}

// impatient returns a configuration in which assertions may take as long as patience.
func impatient(c *format.Configuration, patience time.Duration) *format.Configuration {
	changed := *c
	changed.Spec.Timeouts.Assert.Duration, changed.Spec.Timeouts.Error.Duration = patience, patience
	return &changed
}
