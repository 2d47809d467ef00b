package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// playing is the running scenario of a demo.
type playing struct {
	cancel context.CancelFunc
	// done is closed when it is over; err then says what failed.
	done chan struct{}
	err  error
}

// play starts the operator's scenario named demo.
func (d *demo) play(ctx context.Context, s *liveOperator) (*playing, error) {
	found, err := format.Discover(format.Discovery{FS: scenarios.Bundled(), Paths: []string{d.op.Name + "/demo"}})
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
	config.UserAgent = trace.Demo
	kubeconfig, err := demoKubeconfig(s.target)
	if err != nil {
		return nil, err
	}
	p := &playing{done: make(chan struct{})}
	// The person may take as long as they like to look at it: it ends when they quit.
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	options := runner.Options{
		Configuration: demoConfiguration(), Tests: found, Values: d.values, Name: d.op.Name, Seed: 1,
		Config:     taps.New(s.journal, taps.Options{Operator: trace.Demo}).RESTConfig(config),
		Kubeconfig: kubeconfig, Kubectl: kubectl, Environment: s.target.environment(),
	}
	steps := &stepRecorder{journal: s.journal, japanese: says.Japanese, lang: s.flags.look.language(), deeds: map[string]bool{}}
	for _, step := range found[0].Test.Spec.Steps {
		steps.deeds[step.Name] = isDeed(step)
	}
	d.pace = &pace{unasked: d.auto || !s.screen.Load()}
	steps.await = func(text string) { d.pace.await(ctx, text) }
	steps.first = found[0].Test.Spec.Steps[0].Name
	steps.open = func() {
		d.pace.open(ctx, s.journal, s.loop, s.flags.look.language().Choose("The loop, paused after one reconcile, goes on.",
			"最初の reconcile のあとで止めたループを再開します。"))
	}
	options.Sink = steps
	go func() {
		defer close(p.done)
		again := s.flags.look.language().Choose("The demo begins again: what it has made is deleted first.",
			"デモを最初から繰り返します。デモが作ったものは先に削除します。")
		for {
			run, err := runner.Run(ctx, options)
			if p.err = errors.Join(err, failures(run)); p.err != nil || !d.pace.again(ctx, again) {
				return
			}
			if p.err = clearAway(ctx, s); p.err != nil {
				return
			}
		}
	}()
	return p, nil
}

// goneEvery is how often an object that was deleted is looked for.
const goneEvery = 50 * time.Millisecond

// clearAway deletes what the demo has made by the journal, the newest first, and returns when it is gone, with what belongs to it.
// What it only changed stays.
func clearAway(ctx context.Context, s *liveOperator) error {
	reader, err := client.New(s.target.Config(), client.Options{}) // what it looks at is not in the journal
	if err != nil {
		return err
	}
	demo, err := clientOf(trace.Demo, s.target, s.journal, s.you.Scheme())
	if err != nil {
		return err
	}
	timeline := trace.NewTimeline(s.journal)
	for _, e := range slices.Backward(s.journal.Since(0)) {
		made := e.Verb == trace.VerbCreate || e.Verb == trace.VerbApply && len(e.Before) == 0
		if e.Kind != trace.KindCall || e.Actor != trace.Demo || !made || e.Error != "" || e.NoOp || e.Object.Subresource != "" {
			continue
		}
		err := demo.Delete(ctx, unstructuredOf(e.Object), client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err == nil {
			err = wait.PollUntilContextCancel(ctx, goneEvery, true, func(ctx context.Context) (bool, error) {
				timeline.Update()
				return areGone(ctx, reader, belongings(timeline.Tip(), e.Object))
			})
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("clear %s away: %w", e.Object, err)
		}
	}
	return nil
}

// belongings returns an object and what belongs to it, and to that in turn, as far as it is known.
func belongings(s *trace.State, of trace.Ref) []trace.Ref {
	all, owners := []trace.Ref{of}, map[string]bool{of.UID: true}
	for found := true; found; {
		found = false
		for _, o := range s.Objects() {
			owned := slices.ContainsFunc(o.Meta().Owners, func(owner trace.Owner) bool { return owners[owner.UID] })
			if owned && !owners[o.Ref.UID] {
				all, owners[o.Ref.UID], found = append(all, o.Ref), true, true
			}
		}
	}
	return all
}

// areGone reports whether none of the objects is there; another one of the same name does not count.
func areGone(ctx context.Context, reader client.Reader, objects []trace.Ref) (bool, error) {
	for _, ref := range objects {
		object := unstructuredOf(ref)
		err := reader.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil && (ref.UID == "" || string(object.GetUID()) == ref.UID) || client.IgnoreNotFound(err) != nil {
			return false, err
		}
	}
	return true, nil
}

func unstructuredOf(ref trace.Ref) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	object.SetNamespace(ref.Namespace)
	object.SetName(ref.Name)
	return object
}

// demoKubeconfig writes a kubeconfig for the demo's scripts into the sandbox's directory, and returns its path: it acts as
// [trace.Demo] with all rights, so that the audit log tells its kubectl from the person's.
func demoKubeconfig(t *target) (string, error) {
	config, err := clientcmd.LoadFromFile(t.kubeconfig)
	if err != nil {
		return "", err
	}
	for _, user := range config.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = trace.Demo, []string{"system:masters"}
	}
	path := filepath.Join(t.dir, "demo.kubeconfig")
	return path, clientcmd.WriteToFile(*config, path) // 0600
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

func (p *playing) stop() {
	p.cancel()
	<-p.done
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
	deeds    map[string]bool // by step: whether it does something
	await    func(deed string)
	first    string // the step with the first deed, which is done at once
	open     func()
}

// scenario is the actor of those notes.
const scenario = "scenario"

// BeginStep tells what the step shows.
func (n *stepRecorder) BeginStep(_ *report.Test, step *report.Step) {
	text := step.Description
	if ja := n.japanese[step.Name]; n.lang == trace.Japanese && ja != "" {
		text = ja
	}
	switch {
	case step.Name == n.first:
		n.open()
	case n.deeds[step.Name]:
		n.await(cmp.Or(text, step.Name))
	}
	if text != "" {
		n.journal.Append(trace.Event{Kind: trace.KindNote, Actor: scenario, Message: text})
	}
}
