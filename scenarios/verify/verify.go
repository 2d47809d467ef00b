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
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
	"github.com/operator-lab/operator-lab/scenarios/settle"
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
	// Programs returns the operators of one worker's lab, in place of those of Lab. Default: all labs have those.
	Programs func(worker int) []lab.Program
	// Patience is how long an assertion of the scenario may take to become true in a play with a fault; at least three
	// times what the scenario took without. Default: 5 s.
	Patience time.Duration
	// Budget ends the exploration, which begins with the plays without faults; what was not played by then is counted as skipped. One
	// that is over before the first fault is refused. Default: none.
	Budget time.Duration
	// Pairs is how many plans with two faults are played after all others; the seed of Lab chooses them. Default: none.
	Pairs int
	// Only are the names of the faults to explore; see [FaultNames]. Default: all.
	Only []string
	// Shard is which of the plans to play, and of the pairs how many. Default: all.
	Shard report.Shard
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
	// Confirming says that what went wrong is played again.
	Confirming bool
	// Report returns what is known by now: plans that were not played have no result, and findings that were not confirmed are
	// not steady. It must not be called after Progress has returned.
	Report func() *Report
}

const (
	defaultWorkers  = 8
	defaultPatience = 5 * time.Second
	// references is how often the scenario is played without faults.
	references = 3
	// confirmations is how often a plan has to go wrong to be a finding.
	confirmations = 3
	// plansToConfirm is how many of the plans that ended in the same way are played again at most, until one ends so each time: the
	// first may do so by chance.
	plansToConfirm = 3
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
	v.free, v.connection = make(chan *player, v.Workers*(1+waitingLane)), runner.Connect(v.Lab.Cluster.Config(), v.Runner.Kubeconfig)
	if err := v.open(ctx, v.Workers); err != nil {
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
	connection *runner.Connection
	players    []*player
	free       chan *player
	// hasLanes reports whether plays in which the operator mostly waits are played beside others: that costs next to nothing where no
	// programs and no pods have to be started for it.
	hasLanes bool
}

// open opens more players.
func (v *verifier) open(ctx context.Context, players int) error {
	for range players {
		o := v.Options
		if o.Programs != nil {
			o.Lab.Programs = o.Programs(len(v.players))
		}
		p, err := newPlayer(ctx, o, v.connection)
		if err != nil {
			return err
		}
		v.players = append(v.players, p)
		v.free <- p
	}
	return nil
}

// waitingLane is how many plays in which the operator mostly waits are played beside one in which it does not.
const waitingLane = 2

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
	began := time.Now()
	reference, unsteady, err := v.reference(ctx)
	if err != nil {
		return nil, err
	}
	r := &Report{Scenario: v.Test.Test.Name, File: v.Test.File, Shard: v.Shard, Writes: len(reference.writes), Kinds: reference.state.kinds(), Findings: []Finding{}}
	if len(unsteady) > 0 {
		r.Findings = []Finding{byItself(unsteady)}
		return r, nil
	}
	if !slices.ContainsFunc(reference.writes, func(e *trace.Event) bool { return e.Object.Namespace == reference.namespace }) {
		return nil, &sandbox.Problem{
			Err:  fmt.Errorf("there is nothing to explore: in scenario %s the operator writes nothing in the namespace of the scenario", v.Test.Test.Name),
			Hint: "choose a scenario with objects that the operator serves, and that are in the namespace of the scenario",
		}
	}
	e := &exploration{report: r, reference: reference, began: time.Now()}
	e.add(plansOf(reference, v.Only))
	playing := ctx
	if v.Budget > 0 {
		if took := time.Since(began); took >= v.Budget {
			return nil, &sandbox.Problem{
				Err:  fmt.Errorf("a budget of %v is too short: without faults alone the scenario took %v", v.Budget, took.Round(time.Second/10)),
				Hint: "give it minutes, as --budget 5m, or a shorter scenario with --scenario",
			}
		}
		var cancel context.CancelFunc
		playing, cancel = context.WithDeadline(ctx, began.Add(v.Budget))
		defer cancel()
	}
	v.playAll(playing, e, 0)
	if played := len(e.plans); v.Pairs > 0 {
		shards := max(v.Shard.Count, 1)
		e.add(pairsOf(e.plans, e.outcomes, (v.Pairs+shards-1)/shards, v.Lab.Seed))
		v.playAll(playing, e, played)
	}
	r.record(e.all, e.outcomes, PlanResult{Result: Skipped, Why: "it was not played to its end"})
	v.confirm(ctx, e)
	return r, ctx.Err()
}

// exploration is how far it has come.
type exploration struct {
	report    *Report // without plans and findings while plans are played
	reference *reference
	began     time.Time
	// all are the plans, plans those of them that are played, outcomes what came of these; nil for one that was not played to its
	// end.
	all, plans []*Plan
	outcomes   []*outcome
}

func (e *exploration) add(plans []*Plan) {
	e.all = append(e.all, plans...)
	for _, p := range plans {
		if p.Needless == "" && p.isOf(e.report.Shard) {
			e.plans = append(e.plans, p)
		}
	}
	e.outcomes = append(e.outcomes, make([]*outcome, len(e.plans)-len(e.outcomes))...)
}

// progress says how far it is; report makes the report of by now.
func (e *exploration) progress(report func() *Report) Progress {
	p := Progress{Plans: len(e.plans), Elapsed: time.Since(e.began), Report: report}
	for _, o := range e.outcomes {
		if o != nil {
			p.Played++
			p.Findings += min(len(o.wrong), 1)
		}
	}
	return p
}

// with returns a report with what went wrong in some plays as findings that were not confirmed.
func (r *Report) with(operator string, wrong [][]*outcome) *Report {
	now := *r
	now.Findings = slices.Clone(r.Findings)
	for _, group := range wrong {
		now.Findings = append(now.Findings, newFinding(operator, group))
	}
	return &now
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
	v.hasLanes = v.Programs == nil && v.Workers > 1 && !settle.HasWorkloads(outcomes[0].journal, outcomes[0].namespace)
	if v.hasLanes {
		if err := v.open(ctx, v.Workers*waitingLane); err != nil {
			return nil, nil, err
		}
	}
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

// playAll plays the plans from one on.
func (v *verifier) playAll(ctx context.Context, e *exploration, from int) {
	var mu sync.Mutex
	tell := func() {
		v.Progress(e.progress(func() *Report {
			now := *e.report
			now.record(e.all, e.outcomes, PlanResult{})
			return now.with(v.operator(), groups(e.outcomes))
		}))
	}
	tell()
	var all sync.WaitGroup
	play := func(lane <-chan int) {
		for i := range lane {
			o, err := v.play(ctx, e.plans[i])
			if err != nil {
				continue
			}
			o.judge(e.reference)
			if len(o.wrong) == 0 {
				o.objects, o.state, o.journal = nil, nil, nil // memory must not grow with the plans
			}
			mu.Lock()
			e.outcomes[i] = o
			tell()
			mu.Unlock()
		}
	}
	busy, waiting := v.lanes(e.plans, from)
	for range v.Workers {
		all.Go(func() {
			play(busy)
			play(waiting)
		})
	}
	if v.hasLanes {
		for range v.Workers * waitingLane {
			all.Go(func() { play(waiting) })
		}
	}
	all.Wait()
}

// lanes returns which plans from one on are still to be played: those in which the operator is busy, and those in which it mostly waits.
func (v *verifier) lanes(plans []*Plan, from int) (busy, waiting <-chan int) {
	work, wait := make(chan int, len(plans)), make(chan int, len(plans))
	defer close(work)
	defer close(wait)
	for i := from; i < len(plans); i++ {
		if v.hasLanes && plans[i].waits() {
			wait <- i
		} else {
			work <- i
		}
	}
	return work, wait
}

// confirm plays again what went wrong, and adds to the report what goes wrong each time in the same way. Plans with the
// same result are one finding.
func (v *verifier) confirm(ctx context.Context, e *exploration) {
	all := groups(e.outcomes)
	for i, group := range all {
		progress := e.progress(func() *Report { return e.report.with(v.operator(), all[i:]) })
		progress.Confirming = true
		v.Progress(progress)
		f := v.again(ctx, e.reference, group)
		for n := 1; !f.Steady && f.Then != nil && n < min(len(group), plansToConfirm); n++ {
			swapped := slices.Clone(group) // what has been told may still be read
			swapped[0], swapped[n] = group[n], group[0]
			if other := v.again(ctx, e.reference, swapped); other.Steady {
				f = other
			}
		}
		e.report.Findings = append(e.report.Findings, f)
	}
}

// again plays the first plan of a group until it ended in the same way often enough, or in another one.
func (v *verifier) again(ctx context.Context, reference *reference, group []*outcome) Finding {
	f := newFinding(v.operator(), group)
	for f.Times = 1; f.Times < confirmations; f.Times++ {
		again, err := v.play(ctx, group[0].plan)
		if err != nil {
			return f // it was interrupted: the report has it as not confirmed
		}
		again.judge(reference)
		if again.signature() != group[0].signature() {
			f.Then, f.then = again.lines(), again
			return f
		}
	}
	f.Steady = true
	return f
}

// impatient returns a configuration in which assertions may take as long as patience.
func impatient(c *format.Configuration, patience time.Duration) *format.Configuration {
	changed := *c
	changed.Spec.Timeouts.Assert.Duration, changed.Spec.Timeouts.Error.Duration = patience, patience
	return &changed
}
