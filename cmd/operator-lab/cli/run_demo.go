package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/operators"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/members"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/sandbox/traffic"
)

// demoRun is one run of an operator's demo.
type demoRun struct {
	io       streams
	op       operators.Operator
	instance operators.Instance
	// spec of the operator, from the flags.
	spec    v1alpha1.OperatorSpec
	flags   runFlags
	journal *trace.Journal
	values  map[string]any
	// listener tells the lab what the sandbox reports.
	listener lab.Listener
}

// runningDemo is a running demo.
type runningDemo struct {
	*demoRun
	target *target
	lab    *lab.Lab
	loop   *taps.Taps
	demo   *demo
	// recordings end what records the demo's URL and its etcd cluster beside the demo.
	recordings []func()
	// you is the person at the keyboard, whose writes are in the journal too.
	you client.Client
}

// quietLibraries keeps what Kubernetes' libraries log of their own accord off the screen: leader election, reflectors,
// a manager that stops. What the operator logs is in the journal.
func quietLibraries() {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
}

// begin boots a sandbox, starts the operator in it and begins the demo's scenario.
func (p *demoRun) begin(ctx context.Context, progress func(sandbox.Step)) (_ *runningDemo, err error) {
	quietLibraries()
	s := &runningDemo{demoRun: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.end(ctx))
		}
	}()
	if s.target, err = p.boot(ctx, progress); err != nil {
		return nil, err
	}
	scheme, err := personScheme(p.op)
	if err != nil {
		return nil, err
	}
	if s.you, err = personIn(s.target, p.journal, scheme); err != nil {
		return nil, err
	}
	s.lab, err = lab.Open(ctx, lab.Options{
		Cluster: s.target, Kill: s.target.kill, Machines: s.target.machines, Journal: p.journal, Version: version(),
		Installed: map[string]string{p.op.Name: p.instance.Variant()},
	})
	if err != nil {
		return nil, err
	}
	p.listener.Set(s.lab)
	if s.loop, err = s.lab.Load(ctx, p.op.Name, p.spec); err != nil {
		return nil, err
	}
	s.sayWhatIsSimulated()
	if err := s.record(ctx); err != nil {
		return nil, err
	}
	s.demo, err = s.beginDemo(ctx)
	return s, err
}

// end stops the scenario and the operator, and leaves the sandbox.
func (s *runningDemo) end(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	if s.demo != nil {
		s.demo.stop()
	}
	for _, stop := range s.recordings {
		stop()
	}
	if s.lab != nil {
		errs = append(errs, s.lab.Close(ctx))
	}
	if s.target != nil {
		errs = append(errs, s.target.leave(ctx, false))
	}
	return errors.Join(errs...)
}

// record begins to record the answers of the demo's URL and the members of its etcd cluster, if it has them.
func (s *runningDemo) record(ctx context.Context) error {
	if demo, has := s.instance.Demo().(operators.Traffic); has && s.target.proxy != "" {
		stop, err := traffic.RecordThrough(ctx, s.target.proxy, s.journal, demo.Traffic())
		if err != nil {
			return err
		}
		s.recordings = append(s.recordings, stop)
	}
	if demo, has := s.instance.Demo().(operators.Store); has {
		var cluster types.NamespacedName
		cluster.Namespace, cluster.Name = demo.Store()
		stop, err := members.RecordAll(ctx, members.Options{Config: s.target.Config(), Dial: s.target.DialContext}, s.journal, cluster)
		if err != nil {
			return err
		}
		s.recordings = append(s.recordings, stop)
	}
	return nil
}

// boot starts a sandbox that is gone afterwards, or with --keep one that stays.
func (p *demoRun) boot(ctx context.Context, progress func(sandbox.Step)) (*target, error) {
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
	o.Name, o.Fresh, o.CRDs, o.Operators = p.flags.name, true, crds, []string{p.op.Name}
	o.Progress = progress
	if err := p.flags.nodes.use(&o); err != nil {
		return nil, err
	}
	p.listener.Listen(&o)
	return bootTarget(ctx, o)
}

// bootKept uses a sandbox in the background.
func (p *demoRun) bootKept(ctx context.Context, progress func(sandbox.Step)) (*target, error) {
	name := p.flags.name
	if name == "" {
		name = p.op.Name
	}
	record, err := startDetached(ctx, upFlags{name: name, fresh: true, nodes: p.flags.nodes, crdsOf: p.op.Name + "/" + p.instance.Variant()}, progress)
	if err != nil {
		return nil, err
	}
	t, err := recordTarget(record)
	if err != nil {
		return nil, err
	}
	t.leave = func(context.Context, bool) error {
		p.say("sandbox %s stays; use it with 'operator-lab kubectl --name %s …', stop it with 'operator-lab down --name %s'", name, name, name)
		return nil
	}
	return t, nil
}

// personScheme returns a scheme with Kubernetes' kinds, the lab's and those of operators.
func personScheme(ops ...operators.Operator) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	errs := []error{clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)}
	for _, op := range ops {
		errs = append(errs, op.AddToScheme(scheme))
	}
	return scheme, errors.Join(errs...)
}

// personIn returns a client whose calls are recorded in a journal as those of [lab.Person].
func personIn(cluster operatorhost.Cluster, journal *trace.Journal, scheme *runtime.Scheme) (client.Client, error) {
	config := cluster.Config()
	config.UserAgent = lab.Person
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return taps.New(journal, taps.Options{Operator: lab.Person}).Client(c), nil
}

// awaitEnd returns when the scenario is over and the operator has nothing left to do.
func (s *runningDemo) awaitEnd(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.target.done:
			return sandboxError(s.target.err())
		case <-s.demo.done:
			if s.demo.err != nil {
				return s.demo.err
			}
			return operatorhost.AwaitQuiet(ctx, s.journal)
		case <-s.lab.Failed(s.op.Name):
			return s.lab.Err(s.op.Name)
		}
	}
}

// summary prints what came of the demo.
func (s *runningDemo) summary(ctx context.Context) error {
	reader, err := client.New(s.target.Config(), client.Options{Scheme: s.you.Scheme()})
	if err != nil {
		return err
	}
	lines, err := s.instance.Demo().Summary(ctx, reader)
	for _, line := range lines {
		fmt.Fprintf(s.io.out, "%-10s %s\n", line[0], line[1])
	}
	return err
}
