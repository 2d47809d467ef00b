package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/host"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// play is one run of an operator's demo.
type play struct {
	io       streams
	op       operators.Operator
	instance operators.Instance
	flags    runFlags
	journal  *trace.Journal
	objects  []client.Object
}

// show is a play under way.
type show struct {
	*play
	stage    *stage
	operator *host.Host
	// you is the person at the keyboard, whose writes are in the journal too.
	you client.Client
}

// stage is the sandbox the demo is played in.
type stage struct {
	host.Cluster
	kubeconfig string
	// done is closed when the sandbox is over; err then says why.
	done <-chan struct{}
	err  func() error
	// leave is called at the end.
	leave func() error
}

// quietLibraries keeps what Kubernetes' libraries log of their own accord off the screen: leader election, reflectors,
// a manager that stops. What the operator logs is in the journal.
func quietLibraries() {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
}

// begin boots a sandbox, starts the operator in it and applies the demo's objects.
func (p *play) begin(ctx context.Context, progress func(sandbox.Step)) (_ *show, err error) {
	quietLibraries()
	s := &show{play: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.end())
		}
	}()
	if s.stage, err = p.boot(ctx, progress); err != nil {
		return nil, err
	}
	scheme, err := host.Scheme(p.op)
	if err != nil {
		return nil, err
	}
	if s.you, err = s.person(scheme); err != nil {
		return nil, err
	}
	// The operator outlives the boot.
	if s.operator, err = host.Start(context.WithoutCancel(ctx), s.stage, p.op, p.instance, p.journal); err != nil {
		return nil, err
	}
	return s, s.apply(ctx, scheme)
}

// end stops the operator and leaves the sandbox.
func (s *show) end() error {
	var errs []error
	if s.operator != nil {
		errs = append(errs, s.operator.Stop())
	}
	if s.stage != nil {
		errs = append(errs, s.stage.leave())
	}
	return errors.Join(errs...)
}

// boot starts a sandbox that is gone afterwards, or with --keep one that stays.
func (p *play) boot(ctx context.Context, progress func(sandbox.Step)) (*stage, error) {
	crds, err := p.instance.CRDs()
	if err != nil {
		return nil, err
	}
	if p.flags.keep {
		return p.bootKept(ctx, progress)
	}
	o, err := sandboxOptions(p.io.err, true)
	if err != nil {
		return nil, err
	}
	o.Name, o.Fresh, o.Ephemeral, o.CRDs, o.Operators = p.flags.name, true, true, crds, []string{p.op.Name}
	o.Progress = progress
	o.OnExit = p.noteExit
	o.OnAudit = host.NewOthers(p.journal, p.op.Name, person, "operator-lab").Note
	lab, err := sandbox.Start(ctx, o)
	if err != nil {
		return nil, sandboxError(err)
	}
	return &stage{Cluster: lab, kubeconfig: lab.Kubeconfig(), done: lab.Done(), err: lab.Err, leave: lab.Stop}, nil
}

// noteExit writes the death of a program into the journal, where every reader of the run sees it.
func (p *play) noteExit(e sandbox.Exit) {
	p.journal.Append(trace.Event{
		Kind: trace.KindNote, Actor: e.Program,
		Message: fmt.Sprintf("%s died; restarted: %v. The end of its log: %s", e.Program, e.Restarted, e.LogEnd),
	})
}

// bootKept uses a sandbox in the background.
func (p *play) bootKept(ctx context.Context, progress func(sandbox.Step)) (*stage, error) {
	name := p.flags.name
	if name == "" {
		name = p.op.Name
	}
	record, err := startDetached(ctx, upFlags{name: name, fresh: true, crdsOf: p.op.Name + "/" + p.instance.Variant()}, progress)
	if err != nil {
		return nil, err
	}
	lab, err := record.Open()
	if err != nil {
		return nil, sandboxError(err)
	}
	return &stage{
		Cluster: lab, kubeconfig: lab.Kubeconfig(), err: func() error { return nil },
		leave: func() error {
			p.say("sandbox %s stays; use it with 'operator-lab kubectl --name %s …', stop it with 'operator-lab down --name %s'", name, name, name)
			return nil
		},
	}, nil
}

// person is a client whose calls are in the journal as those of the person at the keyboard.
func (s *show) person(scheme *runtime.Scheme) (client.Client, error) {
	config := s.stage.Config()
	config.UserAgent = person
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return taps.New(s.journal, taps.Options{Operator: person}).Client(c), nil
}

// person is the actor of what is done by hand.
const person = "you"

// apply applies the demo's objects as a person would, with server-side apply.
func (s *show) apply(ctx context.Context, scheme *runtime.Scheme) error {
	for _, o := range s.objects {
		u, err := toApply(scheme, o)
		if err != nil {
			return err
		}
		if err := host.Apply(ctx, s.you, u); err != nil {
			return err
		}
	}
	return nil
}

// toApply is an object with its kind and without what the server fills in.
func toApply(scheme *runtime.Scheme, o client.Object) (*unstructured.Unstructured, error) {
	kind, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	delete(fields, "status")
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// awaitEnd returns when the demo is over and the operator has nothing left to do. It looks whenever the journal has
// grown.
func (s *show) awaitEnd(ctx context.Context) error {
	changed, cancel := s.journal.Subscribe()
	defer cancel()
	// What the lab itself looks at is nobody's doing: not in the journal.
	reader, err := client.New(s.stage.Config(), client.Options{Scheme: s.you.Scheme()})
	if err != nil {
		return err
	}
	for {
		over, err := s.instance.Demo().Over(ctx, reader)
		if err != nil {
			return err
		}
		if over {
			return s.operator.AwaitQuiet(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.stage.done:
			return sandboxError(s.stage.err())
		case <-s.operator.Done():
			return fmt.Errorf("the operator ended by itself: %w", s.operator.Err())
		case <-changed:
		}
	}
}

// summary prints what came of the demo.
func (s *show) summary(ctx context.Context) error {
	reader, err := client.New(s.stage.Config(), client.Options{Scheme: s.you.Scheme()})
	if err != nil {
		return err
	}
	lines, err := s.instance.Demo().Summary(ctx, reader)
	for _, line := range lines {
		fmt.Fprintf(s.io.out, "%-10s %s\n", line[0], line[1])
	}
	return err
}
