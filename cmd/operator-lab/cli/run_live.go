package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/packages"
	"github.com/operator-lab/operator-lab/sandbox/process"
	"github.com/operator-lab/operator-lab/sandbox/taps"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// liveRun is a run of an operator that a person watches, on the screen or printed.
type liveRun struct {
	io    streams
	flags runFlags
	// name is the operator's name, title what the screen says of it.
	name, title string
	// spec of the operator, from the flags.
	spec    v1alpha1.OperatorSpec
	subject liveSubject
	journal *trace.Journal
	// source returns a file of the operator's source, see tui.Options.Code. Default: those of the bundled ones.
	source func(operator, file string) (text string, changed bool, err error)
	// step shows a step of the boot, where there is a screen. While that is up, nothing is printed.
	step   func(tui.Step)
	screen atomic.Bool
	// cluster is that of the user's where it runs; nil: it runs in a sandbox.
	cluster *userCluster
	// listener tells the lab what the sandbox reports.
	listener lab.Listener
}

// liveSubject is what is run: the demo of a bundled operator, or an operator of the user's.
type liveSubject interface {
	// addToScheme adds the operator's types to the scheme of the person's client.
	addToScheme(*runtime.Scheme) error
	// caption describes an object to people; empty if there is nothing to say.
	caption(kind string, object json.RawMessage) string
	// sandbox completes the options of the sandbox, and kept those of one that stays.
	sandbox(*sandbox.Options) error
	kept(*upFlags)
	// lab completes the options of the lab, once the sandbox is there.
	lab(ctx context.Context, t *target, o *lab.Options) error
	// begin is called when the operator serves. end is called before it is stopped, whether it began or not.
	begin(context.Context, *liveOperator) error
	end() error
	// awaitEnd returns when there is nothing more to see; summary prints what came of it.
	awaitEnd(context.Context, *liveOperator) error
	summary(context.Context, *liveOperator) error
	// paced is a demo that waits for the person at the screen; nil if there is none.
	paced() tui.Demo
	// samples are what the screen offers to apply.
	samples(*liveOperator) []tui.Sample
}

// liveOperator is a run whose operator serves.
type liveOperator struct {
	*liveRun
	target *target
	lab    *lab.Lab
	pods   *process.Pods // the operators in pods; nil in a cluster of the user's
	loop   lab.Taps
	// stopPackages ends the recording of OLM's packages; nil without OLM.
	stopPackages func()
	// you is the person at the keyboard, whose writes are in the journal too.
	you client.Client
}

// quietLibraries keeps what Kubernetes' libraries log of their own accord off the screen: leader election, reflectors,
// a manager that stops. What the operator logs is in the journal.
func quietLibraries() {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
}

// begin boots a sandbox, starts the operator in it and begins what there is to see.
func (p *liveRun) begin(ctx context.Context, progress func(sandbox.Step)) (_ *liveOperator, err error) {
	quietLibraries()
	s := &liveOperator{liveRun: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.end(ctx))
		}
	}()
	if s.target, err = p.boot(ctx, progress); err != nil {
		return nil, err
	}
	scheme, err := personScheme(p.subject.addToScheme)
	if err != nil {
		return nil, err
	}
	if s.you, err = personIn(s.target, p.journal, scheme); err != nil {
		return nil, err
	}
	options := lab.Options{
		Cluster: s.target, Private: p.cluster != nil, Kill: s.target.kill, Machines: s.target.machines, Journal: p.journal, Version: version(),
		InPods: slices.Concat(p.flags.nodes.operators(), p.flags.nodes.olmOperators()), Dir: s.target.files(),
	}
	if err := p.subject.lab(ctx, s.target, &options); err != nil {
		return nil, err
	}
	if s.lab, err = lab.Open(ctx, options); err != nil {
		return nil, err
	}
	p.listener.Set(s.lab)
	if p.flags.nodes.olm || p.flags.nodes.catalog != "" {
		s.stopPackages = packages.Record(ctx, s.target.Config(), s.journal)
	}
	if p.cluster == nil {
		if s.pods, err = process.OpenPods(s.lab, s.target.dir); err != nil {
			return nil, err
		}
	}
	if err := s.awaitOLM(ctx); err != nil {
		return nil, err
	}
	p.step(tui.Step{Name: p.name})
	if pod, is := p.subject.(*inPod); is {
		var stop func()
		if ctx, stop, err = pod.install(ctx, s); err != nil {
			return nil, err
		}
		defer stop()
	}
	if s.loop, err = s.lab.Load(ctx, p.name, p.spec); err != nil {
		return nil, err
	}
	s.sayWhatIsSimulated()
	return s, p.subject.begin(ctx, s)
}

// olmPatience is how long OLM's operators may take to come behind the lab's gates.
const olmPatience = time.Minute

// awaitOLM returns when OLM's operators, if there are any, work behind gates of the lab.
func (s *liveOperator) awaitOLM(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, olmPatience, errors.New("OLM's operators do not come behind the lab's gates"))
	defer cancel()
	for _, name := range s.flags.nodes.olmOperators() {
		if _, err := s.lab.Load(ctx, name, v1alpha1.OperatorSpec{}); err != nil {
			return err
		}
	}
	return nil
}

// note puts a note into the journal.
func (s *liveOperator) note(text string) {
	s.journal.Append(trace.Event{Kind: trace.KindNote, Actor: "lab", Message: text})
}

// end stops the operator and leaves the sandbox.
func (s *liveOperator) end(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	errs = append(errs, s.subject.end())
	if s.stopPackages != nil {
		s.stopPackages()
	}
	if s.lab != nil {
		errs = append(errs, s.lab.Close(ctx))
	}
	if s.pods != nil {
		errs = append(errs, s.pods.Close())
	}
	if s.target != nil {
		errs = append(errs, s.target.leave(ctx, false))
	}
	return errors.Join(errs...)
}

// boot starts a sandbox that is gone afterwards, or with --keep one that stays.
func (p *liveRun) boot(ctx context.Context, progress func(sandbox.Step)) (*target, error) {
	if p.cluster != nil {
		return p.cluster.target(ctx)
	}
	if p.flags.keep {
		return p.bootKept(ctx, progress)
	}
	o, err := sandboxOptions(p.io.err, true)
	if err != nil {
		return nil, err
	}
	o.Name, o.Fresh, o.Operators = p.flags.name, true, []string{p.name}
	o.Progress = progress
	if err := p.subject.sandbox(&o); err != nil {
		return nil, err
	}
	if err := p.flags.nodes.use(&o); err != nil {
		return nil, err
	}
	p.listener.Listen(&o)
	return bootTarget(ctx, o)
}

// bootKept uses a sandbox in the background.
func (p *liveRun) bootKept(ctx context.Context, progress func(sandbox.Step)) (*target, error) {
	name := p.flags.name
	if name == "" {
		name = p.name
	}
	up := upFlags{name: name, fresh: true, nodes: p.flags.nodes, listener: &p.listener}
	p.subject.kept(&up)
	record, err := startDetached(ctx, up, progress)
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

// personScheme returns a scheme with Kubernetes' kinds, the lab's and those that are added.
func personScheme(add ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	errs := []error{clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)}
	for _, add := range add {
		errs = append(errs, add(scheme))
	}
	return scheme, errors.Join(errs...)
}

// personIn returns a client whose calls are recorded in a journal as those of [lab.Person].
func personIn(cluster operatorhost.Cluster, journal *trace.Journal, scheme *runtime.Scheme) (client.Client, error) {
	return clientOf(lab.Person, cluster, journal, scheme)
}

// clientOf returns a client whose calls are recorded in a journal as those of an actor, which does not run as a program.
func clientOf(actor string, cluster operatorhost.Cluster, journal *trace.Journal, scheme *runtime.Scheme) (client.Client, error) {
	config := cluster.Config()
	config.UserAgent = actor
	t := taps.New(journal, taps.Options{Operator: actor})
	c, err := client.New(t.RESTConfig(config), client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return t.Client(c), nil
}
