package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/scenarios"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
	"github.com/operator-lab/operator-lab/scenarios/scorecard"
)

// scoring is one run of the scorecard command. It runs a suite and reports habits and phases instead of tests.
type scoring struct {
	*suite
	asked scorecardFlags
	// names of the operators, and the directory of one of the user's.
	names []string
	own   string
	// evidence and lacks by operator, in the order of the tests.
	evidence map[string][]*evidence
	lacks    map[string][]format.Lack
	// afterwards are errors of the clean-up, which change no result.
	afterwards error
}

// evidence is a scenario that shows a habit or a phase, with its results.
type evidence struct {
	folder string
	scorecard.Result
	// sampled says that it is made of samples: it may show nothing, and is run alone.
	sampled bool
}

func newScoring(io streams, f scorecardFlags, names []string, own string) *scoring {
	defaults := &cobra.Command{}
	t := &suite{io: io, flags: defaults.Flags(), configuration: format.DefaultConfiguration()}
	t.bind(defaults)
	t.given.variant = f.variant
	t.testFlags.seed = cmp.Or(f.seed, 1+rand.Int64N(999_999))
	return &scoring{suite: t, asked: f, names: names, own: own, evidence: map[string][]*evidence{}, lacks: map[string][]format.Lack{}}
}

// scope returns the habits and phases that are judged of an operator.
func (s *scoring) scope(name string) scorecard.Scope {
	variant := s.asked.variant
	if op, found := operators.Find(name); found {
		variant = cmp.Or(variant, op.New().Variant())
	}
	scope := scorecard.New(name, variant, string(s.asked.look.language()), s.asked.habits, s.asked.phases)
	if scope.OtherVariants = s.asked.variant == ""; s.asked.toil {
		scope.Toil = true
		if len(s.asked.habits)+len(s.asked.phases) == 0 {
			scope.Habits, scope.Phases = nil, nil
		}
	}
	return scope
}

func (s *scoring) run(ctx context.Context) error {
	defer s.given.close()
	if err := s.findOwn(ctx); err != nil {
		return err
	}
	if err := s.given.checkSpec(s.names, v1alpha1.OperatorSpec{Variant: s.asked.variant}); err != nil {
		return err
	}
	if err := s.load(); err != nil {
		return badFiles(s.io.err, err)
	}
	if err := s.checkToil(); err != nil {
		return err
	}
	if s.asked.list {
		return s.printTags()
	}
	if len(s.tests) > 0 { // what nothing shows needs no sandbox
		fmt.Fprintf(s.io.err, "seed %d\n", s.seed)
		err, left := s.inTarget(ctx, func(ctx context.Context, target *target) (failed bool, err error) {
			return false, s.runIn(ctx, target)
		})
		s.afterwards = errors.Join(s.afterwards, left)
		if err != nil {
			return errors.Join(err, s.afterwards)
		}
	}
	return s.conclude()
}

// load reads the scenarios of the operators that show one of the judged habits or phases, or what faults cost.
func (s *scoring) load() error {
	if s.own != "" {
		return s.loadOwn()
	}
	bundled, err := unpackBundled(scenarios.Bundled())
	if err != nil { // nobody's file is wrong: the state directory is, which a sandbox needs too
		return sandboxError(fmt.Errorf("unpack the bundled scenarios: %w", err))
	}
	for _, name := range s.names {
		found, err := format.Discover(discoveryOf(s.configuration, []string{filepath.Join(bundled, name)}))
		if err != nil {
			return err
		}
		for _, loaded := range found {
			if loaded.Err != nil {
				return loaded.Err
			}
			s.take(s.scope(name), loaded, false)
		}
		if err := s.loadSampled(name); err != nil {
			return err
		}
	}
	return nil
}

// checkToil returns an error if --toil asks for what no scenario measures.
func (s *scoring) checkToil() error {
	for _, name := range s.names {
		measures := slices.ContainsFunc(s.evidence[name], func(e *evidence) bool { return e.Keeper != "" })
		if s.asked.toil && !measures && !s.asked.all {
			return usageError("such as 'operator-lab scorecard etcd --toil'", "no scenario measures what faults cost of %s", name)
		}
	}
	return nil
}

// take takes a scenario that shows a habit or phase in a scope, and what a scenario says that the operator lacks.
func (s *scoring) take(scope scorecard.Scope, loaded *format.Loaded, sampled bool) {
	name := scope.Operator
	s.lacks[name] = append(s.lacks[name], scope.LacksOf(loaded.Test)...)
	if tag, is := scope.TagOf(loaded.Test); is {
		s.tests = append(s.tests, loaded)
		s.evidence[name] = append(s.evidence[name], &evidence{loaded.Folder, scorecard.Result{Tag: tag}, sampled})
	}
}

// of returns the evidence that a scenario is; nil if it is none.
func (s *scoring) of(folder string) *evidence {
	for _, all := range s.evidence {
		for _, e := range all {
			if e.folder == folder {
				return e
			}
		}
	}
	return nil
}

// runIn runs the scenarios in a sandbox and collects their results. A scenario with a matrix ends with the first row that
// fails: its result is known then, and each further row might wait for something that never comes.
func (s *scoring) runIn(ctx context.Context, target *target) error {
	hooks, closeLab, err := openTestLab(ctx, s.suite, target)
	if err != nil {
		return err
	}
	defer func() { s.afterwards = errors.Join(s.afterwards, sandboxError(closeLab(context.WithoutCancel(ctx)))) }()
	single, matrices := s.byMatrix()
	progress := scorecard.NewProgress(s.io.err, s.tests)
	for _, tests := range append([][]*format.Loaded{single}, matrices...) {
		o := s.runnerOptions(target, hooks)
		o.Configuration, o.Tests, o.Sink = oneByOne(s.configuration, len(tests) == 1), tests, progress
		run, err := runner.Run(ctx, o)
		if err != nil {
			return err
		}
		s.collect(run, hooks)
	}
	return nil
}

// byMatrix returns the scenarios that have no matrix, together, and each of those that have one alone. Each of an operator of the
// user's is alone, and each that is made of samples.
func (s *scoring) byMatrix() (single []*format.Loaded, matrices [][]*format.Loaded) {
	for _, loaded := range s.tests {
		if len(loaded.Test.Spec.Scenarios) == 0 && s.own == "" && !s.of(loaded.Folder).sampled {
			single = append(single, loaded)
			continue
		}
		matrices = append(matrices, []*format.Loaded{loaded})
	}
	return single, matrices
}

// oneByOne returns a configuration that, if wanted, begins no test before the last one has passed.
func oneByOne(c *format.Configuration, wanted bool) *format.Configuration {
	if !wanted {
		return c
	}
	changed := *c
	changed.Spec.Execution.FailFast, changed.Spec.Execution.Parallel = true, new(1)
	return &changed
}

// collect adds the runs to the evidence, unless they show nothing.
func (s *scoring) collect(run *report.Run, hooks runner.Hooks) {
	for _, test := range run.Tests {
		e := s.of(test.Folder)
		if inLab, is := hooks.(*scenarios.LabHooks); is && e.sampled && !s.shows(e, inLab.Lab.Journal()) {
			continue
		}
		e.Runs = append(e.Runs, test)
	}
}

func (s *scoring) printTags() error {
	tags := []scorecard.Tag{} // not null in JSON
	for _, name := range s.names {
		for _, e := range s.evidence[name] {
			tags = append(tags, e.Tag)
		}
	}
	if s.asked.output == "json" {
		return printJSON(s.io.out, tags)
	}
	return scorecard.WriteTags(s.io.out, tags)
}

// conclude prints the card of each operator. Errors of the clean-up do not change it, and are returned.
func (s *scoring) conclude() error {
	cards, err := s.judge()
	if err == nil {
		err = s.write(cards)
	}
	if err = errors.Join(err, s.afterwards); err != nil {
		return err
	}
	if s.asked.fail && slices.ContainsFunc(cards, func(c scorecard.Card) bool { return s.scope(c.Operator).Fails(c) }) {
		return &exitError{code: exitFailed}
	}
	return nil
}

// judge makes the card of each operator.
func (s *scoring) judge() ([]scorecard.Card, error) {
	var cards []scorecard.Card
	for _, name := range s.names {
		var results []scorecard.Result
		for _, e := range s.evidence[name] {
			results = append(results, e.Result)
		}
		card, err := s.scope(name).Judge(results, s.lacks[name]...)
		if err != nil {
			return nil, err
		}
		card.Seed = s.seed
		cards = append(cards, card)
	}
	return cards, nil
}

func (s *scoring) write(cards []scorecard.Card) error {
	if s.asked.output == "json" {
		return printJSON(s.io.out, cards)
	}
	return scorecard.Write(s.io.out, string(s.asked.look.language()), cards...)
}
