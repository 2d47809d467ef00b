package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/scenarios"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
	"github.com/operator-lab/operator-lab/scenarios/scorecard"
)

// scoring is one run of the command: a run of tests, of which not the tests are told but what they are evidence of.
type scoring struct {
	*testRun
	asked scorecardFlags
	// names of the operators.
	names []string
	// evidence is what the tests show, by operator and in the order of the tests.
	evidence map[string][]*exhibit
	// untidy is what went wrong after the last test, when all was known.
	untidy error
}

// exhibit is a scenario that is evidence of something.
type exhibit struct {
	folder string
	scorecard.Result
}

func newScoring(io streams, f scorecardFlags, names []string) *scoring {
	defaults := &cobra.Command{}
	t := &testRun{io: io, flags: defaults.Flags(), configuration: format.DefaultConfiguration()}
	t.bind(defaults)
	t.testFlags.variant = f.variant
	t.testFlags.seed = cmp.Or(f.seed, 1+rand.Int64N(999_999))
	return &scoring{testRun: t, asked: f, names: names, evidence: map[string][]*exhibit{}}
}

// scope is what is looked at of an operator.
func (s *scoring) scope(name string) scorecard.Scope {
	variant := s.asked.variant
	if op, found := operators.Find(name); found {
		variant = cmp.Or(variant, op.New().Variant())
	}
	return scorecard.New(name, variant, string(s.asked.look.language()), s.asked.habits, s.asked.phases)
}

func (s *scoring) run(ctx context.Context) error {
	if err := s.checkFlagsOf(s.names, format.Lab{}); err != nil {
		return err
	}
	if err := s.load(); err != nil {
		return badFiles(s.io.err, err)
	}
	if s.asked.list {
		return s.printTags()
	}
	if len(s.tests) > 0 { // what nothing shows needs no sandbox
		fmt.Fprintf(s.io.err, "seed %d\n", s.seed)
		if err := s.play(ctx); err != nil {
			return errors.Join(err, s.untidy)
		}
	}
	return s.conclude()
}

// load reads the bundled scenarios of the operators, and leaves those that are evidence of something.
func (s *scoring) load() error {
	bundled, err := unpackBundled(scenarios.Bundled())
	if err != nil { // nobody's file is wrong: the state directory is, which a sandbox needs too
		return sandboxError(fmt.Errorf("unpack the bundled scenarios: %w", err))
	}
	for _, name := range s.names {
		scope := s.scope(name)
		found, err := format.Discover(discoveryOf(s.configuration, []string{filepath.Join(bundled, name)}))
		if err != nil {
			return err
		}
		for _, loaded := range found {
			if loaded.Err != nil {
				return loaded.Err
			}
			if tag, is := scope.TagOf(loaded.Test); is {
				s.tests = append(s.tests, loaded)
				s.evidence[name] = append(s.evidence[name], &exhibit{loaded.Folder, scorecard.Result{Tag: tag}})
			}
		}
	}
	return nil
}

// play runs the scenarios, and collects what came of them.
func (s *scoring) play(ctx context.Context) error {
	quietLibraries()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ground, err := s.openGround(ctx)
	if err != nil {
		return err
	}
	defer func() {
		s.untidy = errors.Join(s.untidy, sandboxError(ground.leave(context.WithoutCancel(ctx), false)))
	}()
	go func() {
		select {
		case <-ground.done:
			cancel(sandboxError(ground.err()))
		case <-ctx.Done():
		}
	}()
	err = s.playIn(ctx, ground)
	if err == nil {
		return nil
	}
	if cause, ok := errors.AsType[*exitError](context.Cause(ctx)); ok {
		s.untidy = nil // the sandbox did not stay up: the rest follows from it
		return cause
	}
	return err
}

// playIn runs the scenarios in a sandbox. Of one with a matrix the first row that fails is the last: what it is evidence of
// is known then, and each further row might wait for what never comes.
func (s *scoring) playIn(ctx context.Context, ground *ground) error {
	lab, err := openTestLab(ctx, s.testRun, ground)
	if err != nil {
		return err
	}
	defer func() { s.untidy = errors.Join(s.untidy, sandboxError(lab.Close(context.WithoutCancel(ctx)))) }()
	single, matrices := s.byMatrix()
	progress := scorecard.NewProgress(s.io.err, s.tests)
	for _, tests := range append([][]*format.Loaded{single}, matrices...) {
		run, err := runner.Run(ctx, runner.Options{
			Configuration: oneByOne(s.configuration, len(tests) == 1), Tests: tests, Seed: s.seed, Sink: progress, Hooks: lab,
			Config: ground.config, Kubeconfig: ground.kubeconfig, Kubectl: ground.kubectl, Environment: ground.environment,
		})
		if err != nil {
			return err
		}
		s.collect(run)
	}
	return nil
}

// byMatrix returns the scenarios that have no matrix, together, and each of those that have one alone.
func (s *scoring) byMatrix() (single []*format.Loaded, matrices [][]*format.Loaded) {
	for _, loaded := range s.tests {
		if len(loaded.Test.Spec.Scenarios) == 0 {
			single = append(single, loaded)
			continue
		}
		matrices = append(matrices, []*format.Loaded{loaded})
	}
	return single, matrices
}

// oneByOne is a configuration that begins no test before the last one has passed, if that is wanted.
func oneByOne(c *format.Configuration, wanted bool) *format.Configuration {
	if !wanted {
		return c
	}
	changed := *c
	changed.Spec.Execution.FailFast, changed.Spec.Execution.Parallel = true, new(1)
	return &changed
}

// collect sorts the runs by what they are evidence of.
func (s *scoring) collect(run *report.Run) {
	exhibits := map[string]*exhibit{}
	for _, all := range s.evidence {
		for _, e := range all {
			exhibits[e.folder] = e
		}
	}
	for _, test := range run.Tests {
		e := exhibits[test.Folder]
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
		return s.printAsJSON(tags)
	}
	return scorecard.WriteTags(s.io.out, tags)
}

// conclude prints where each operator stands. What went wrong afterwards changes nothing about that, and is told below it.
func (s *scoring) conclude() error {
	cards, err := s.judge()
	if err == nil {
		err = s.write(cards)
	}
	if err = errors.Join(err, s.untidy); err != nil {
		return err
	}
	if s.asked.fail && slices.ContainsFunc(cards, s.lacks) {
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
		card, err := s.scope(name).Judge(results)
		if err != nil {
			return nil, err
		}
		card.Seed = s.seed
		cards = append(cards, card)
	}
	return cards, nil
}

func (s *scoring) lacks(c scorecard.Card) bool { return s.scope(c.Operator).Lacks(c) }

func (s *scoring) write(cards []scorecard.Card) error {
	if s.asked.output == "json" {
		return s.printAsJSON(cards)
	}
	return scorecard.Write(s.io.out, string(s.asked.look.language()), cards...)
}

func (s *scoring) printAsJSON(value any) error {
	e := json.NewEncoder(s.io.out)
	e.SetIndent("", "  ")
	return e.Encode(value)
}
