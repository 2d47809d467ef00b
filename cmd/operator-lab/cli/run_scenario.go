package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// demo is the running scenario of a demo.
type demo struct {
	cancel context.CancelFunc
	// done is closed when it is over; err then says what failed.
	done chan struct{}
	err  error
}

// beginDemo starts the operator's scenario named demo.
func (s *runningDemo) beginDemo(ctx context.Context) (*demo, error) {
	found, err := format.Discover(format.Discovery{FS: scenarios.Bundled(), Paths: []string{s.op.Name + "/demo"}})
	if err != nil {
		return nil, err
	}
	says, err := format.ReadLab(found[0].Test)
	if err != nil {
		return nil, err
	}
	kubectl, err := ownKubectl() // and etcdctl beside it
	if err != nil {
		return nil, err
	}
	config := s.target.Config()
	config.UserAgent = lab.Person
	d := &demo{done: make(chan struct{})}
	// The person may take as long as they like to look at it: it ends when they quit.
	ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	options := runner.Options{
		Configuration: demoConfiguration(), Tests: found, Values: s.values, Name: s.op.Name, Seed: 1,
		Config:     taps.New(s.journal, taps.Options{Operator: lab.Person}).RESTConfig(config),
		Kubeconfig: s.target.kubeconfig, Kubectl: kubectl, Environment: s.target.environment(),
		Sink: &stepRecorder{journal: s.journal, japanese: says.Japanese, lang: s.flags.look.language()},
	}
	go func() {
		defer close(d.done)
		run, err := runner.Run(ctx, options)
		d.err = errors.Join(err, failures(run))
	}()
	return d, nil
}

// aWhile is the timeout of a demo's asserts: long enough for a person who pauses the demo for hours.
const aWhile = 24 * time.Hour

// demoConfiguration returns the runner's configuration for demos: it keeps the objects, and asserts wait very long.
func demoConfiguration() *format.Configuration {
	c := format.DefaultConfiguration()
	c.Spec.Namespace.Name = metav1.NamespaceDefault
	c.Spec.Cleanup.SkipDelete = true
	c.Spec.Timeouts.Assert = metav1.Duration{Duration: aWhile}
	return c
}

func (d *demo) stop() {
	d.cancel()
	<-d.done
}

// failures returns the failed operations as one error.
func failures(run *report.Run) error {
	if run == nil {
		return nil
	}
	var errs []error
	for _, test := range run.Tests {
		for step, op := range test.FailedOperations() {
			errs = append(errs, fmt.Errorf("the demo's step %q: %s %s: %s", step.Name, op.Type, op.Name, op.Failure.Message))
		}
	}
	return errors.Join(errs...)
}

// stepRecorder writes the description of each step of a scenario into the journal as a note.
type stepRecorder struct {
	report.Nothing
	journal  *trace.Journal
	japanese map[string]string // by step
	lang     trace.Language
}

// scenario is the actor of those notes.
const scenario = "scenario"

// BeginStep tells what the step shows.
func (n *stepRecorder) BeginStep(_ *report.Test, step *report.Step) {
	text := step.Description
	if ja := n.japanese[step.Name]; n.lang == trace.Japanese && ja != "" {
		text = ja
	}
	if text != "" {
		n.journal.Append(trace.Event{Kind: trace.KindNote, Actor: scenario, Message: text})
	}
}
