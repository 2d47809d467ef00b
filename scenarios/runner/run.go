package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/guard"
	"github.com/operator-lab/operator-lab/scenarios/expression"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// suite is one run of all tests.
type suite struct {
	Options
	report *report.Run
	plan   []*planned
	// temp creates the directory for files of programs, once; it is removed at the end.
	temp func() (string, error)
	// beginning is cancelled when no more tests may begin: when the run ends, or when a test fails and the run fails
	// fast.
	beginning   context.Context
	beginNoMore context.CancelFunc
	names       names
	guard       *guard.Guard
	made        string // the directory that temp created
}

// planned is one planned run of a test.
type planned struct {
	loaded   *format.Loaded
	report   *report.Test
	id       int // from 1, as $test.id
	scenario int // from 1, as $test.scenarioId; 0 without a matrix
	repeat   int // from 1
	// seed differs for each planned run, and does not depend on which others are selected.
	seed uint64
}

// newRun returns a suite with all planned tests.
func newRun(o Options) *suite {
	s := &suite{Options: o, report: &report.Run{Name: o.Name, Seed: o.Seed}}
	s.temp = sync.OnceValues(s.makeTemp)
	s.guard = guard.New(guard.Options{Temp: s.temp})
	s.names.taken = map[string]bool{}
	repeats := 1
	if n := o.Configuration.Spec.Execution.RepeatCount; n != nil {
		repeats = *n
	}
	for repeat := 1; repeat <= repeats; repeat++ {
		for i, loaded := range o.Tests {
			scenarios := loaded.Test.Spec.Scenarios
			if loaded.Err != nil || len(scenarios) == 0 {
				s.add(planned{loaded: loaded, id: i + 1, repeat: repeat}, repeats)
				continue
			}
			for k := range scenarios {
				s.add(planned{loaded: loaded, id: i + 1, scenario: k + 1, repeat: repeat}, repeats)
			}
		}
	}
	return s
}

// add plans a test with its repetitions, if it is selected.
func (s *suite) add(p planned, repeats int) {
	l := p.loaded
	name := l.Name(s.Configuration.Spec.Discovery.FullName)
	id := l.Folder + "[" + l.Test.Name + "]"
	if l.Test.Name == "" {
		name, id = l.File, l.File
	}
	p.report = &report.Test{
		Folder: l.Folder, File: l.File, Line: l.Line,
		Description: l.Test.Spec.Description, Concurrent: l.Test.Spec.Concurrent,
	}
	if p.scenario > 0 {
		scenario := l.Test.Spec.Scenarios[p.scenario-1].Name
		if scenario == "" {
			scenario = fmt.Sprintf("scenario #%d", p.scenario)
		}
		p.report.Scenario = scenario
		name += "/" + scenario
		id += "/" + scenario
	}
	if repeats > 1 {
		name += fmt.Sprintf(" (%d of %d)", p.repeat, repeats)
	}
	p.report.Name, p.report.ID = name, id
	if s.Selected != nil && !s.Selected(p.report) {
		return
	}
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s %d", id, p.repeat)
	p.seed = hash.Sum64()
	s.plan = append(s.plan, &p)
	s.report.Tests = append(s.report.Tests, p.report)
}

func (s *suite) close() {
	s.guard.Close()
	if s.made != "" {
		_ = os.RemoveAll(s.made)
	}
}

// makeTemp creates the directory. It is called only when needed, because the disk may not be writable.
func (s *suite) makeTemp() (string, error) {
	dir, err := os.MkdirTemp("", "operator-lab-test-") // mode 0700
	if err != nil {
		return "", fmt.Errorf("make a directory for files of the tests: %w", err)
	}
	s.made = dir
	return dir, nil
}

// run runs all tests: for each repetition first those that must run alone, in order, and then the others concurrently,
// as Chainsaw does.
func (s *suite) run(ctx context.Context) {
	s.report.Started = time.Now()
	s.Sink.BeginRun(s.report)
	defer func() {
		s.report.Ended = time.Now()
		s.Sink.EndRun(s.report)
	}()
	s.beginning, s.beginNoMore = context.WithCancel(ctx)
	defer s.beginNoMore()
	base, end := s.begin(ctx)
	defer end()
	for first := 0; first < len(s.plan); {
		last := first
		for last < len(s.plan) && s.plan[last].repeat == s.plan[first].repeat {
			last++
		}
		s.runAll(ctx, base, s.plan[first:last])
		first = last
	}
}

func (s *suite) runAll(ctx context.Context, base start, tests []*planned) {
	var together []*planned
	for _, p := range tests {
		if c := p.loaded.Test.Spec.Concurrent; c != nil && !*c {
			s.runTest(ctx, base, p)
		} else {
			together = append(together, p)
		}
	}
	parallel := DefaultParallel
	if n := s.Configuration.Spec.Execution.Parallel; n != nil {
		parallel = max(*n, 1)
	}
	if parallel > 1 {
		// Tests that are known to sleep start first, so that the others run meanwhile.
		slices.SortStableFunc(together, func(a, b *planned) int { return cmp.Compare(b.sleeps(), a.sleeps()) })
	}
	var wg sync.WaitGroup
	next := make(chan *planned)
	for range min(parallel, len(together)) {
		wg.Go(func() {
			for p := range next {
				s.runTest(ctx, base, p)
			}
		})
	}
	for _, p := range together {
		next <- p
	}
	close(next)
	wg.Wait()
}

// sleeps returns the minimum time that a test sleeps.
func (p *planned) sleeps() (all time.Duration) {
	for _, step := range p.loaded.Test.Spec.Steps {
		for _, op := range step.Try {
			if op.Sleep != nil {
				all += op.Sleep.Duration.Duration
			}
		}
	}
	return all
}

// start is the initial state of every test.
type start struct {
	inherited inherited
	err       error
}

// begin prepares what all tests share: what they inherit from the configuration, and its namespace if it names one. The returned
// function removes that again.
func (s *suite) begin(ctx context.Context) (start, func()) {
	base, err := s.inherited(ctx)
	if err != nil {
		return start{base, err}, func() {}
	}
	options := s.Configuration.Spec.Namespace
	if options.Name == "" {
		return start{base, nil}, func() {}
	}
	// A failure here fails every test: the report has no other place for it.
	remove := &cleaner{timeout: base.timeouts.cleanup, propagation: base.propagation, wait: !options.FastDelete}
	base, err = s.namespace(ctx, base, namespaceOptions{
		name: options.Name, template: options.Template, compiler: options.Compiler,
	}, remove)
	return start{base, err}, func() {
		if base.skipDelete {
			return
		}
		ctx, cancel := outlive(ctx, lastPatience)
		defer cancel()
		for _, e := range remove.reversed() {
			if err := e.remove(ctx); err != nil && len(s.report.Tests) > 0 {
				last := s.report.Tests[len(s.report.Tests)-1]
				last.Notes = append(last.Notes, fmt.Sprintf("the namespace of all tests is left: %v", err))
			}
		}
	}
}

// inherited returns what tests inherit from the configuration.
func (s *suite) inherited(ctx context.Context) (inherited, error) {
	c := &s.Configuration.Spec
	base := inherited{
		clusters:    map[string]*cluster{},
		allows:      s.Hooks.Object,
		catch:       c.Error.Catch,
		propagation: c.Deletion.Propagation,
		skipDelete:  c.Cleanup.SkipDelete,
		templating:  c.Templating.Enabled,
		scope:       expression.Scope{}.WithCompiler(c.Templating.Compiler),
		timeouts:    timeouts{scale: cmp.Or(s.TimeoutScale, 1)},
	}
	base.timeouts.set(format.Timeouts{
		Apply: &c.Timeouts.Apply, Assert: &c.Timeouts.Assert, Cleanup: &c.Timeouts.Cleanup,
		Delete: &c.Timeouts.Delete, Error: &c.Timeouts.Error, Exec: &c.Timeouts.Exec,
	})
	base.scope = base.scope.With("timeouts", base.timeouts.values()).With("values", s.values())
	var here *string
	switch {
	case s.Connection != nil:
		here = new(string)
		base.clusters[*here] = s.Connection.cluster
	case s.Config != nil:
		here = new(string)
		base.clusters[*here] = s.clusterFromConfig(s.Config, s.Kubeconfig)
	}
	return base.with(ctx, settings{
		clusters: c.Clusters, cluster: here,
		delay: c.Cleanup.DelayBeforeCleanup, grace: c.Execution.ForceTerminationGracePeriod,
	})
}

// values returns the value of $values; without any it is null.
func (s *suite) values() any {
	if s.Values == nil {
		return nil
	}
	return s.Values
}

// tempFile writes a file for a program, readable only by this user.
func (s *suite) tempFile(pattern string, content []byte) (path string, err error) {
	dir, err := s.temp()
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(content)
	return filepath.Clean(f.Name()), err
}
