package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/operatorhost"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios"
	"github.com/operator-lab/operator-lab/scenarios/format"
	"github.com/operator-lab/operator-lab/scenarios/oracle"
	"github.com/operator-lab/operator-lab/scenarios/report"
	"github.com/operator-lab/operator-lab/scenarios/runner"
)

// namespaces numbers the namespaces of all plays of this process.
var namespaces atomic.Int64

// player plays the scenario, one time after the other, with a lab of its own.
type player struct {
	options    Options
	connection *runner.Connection
	lab        *lab.Lab
	view       *view
	namespace  string     // of the next play; empty: it needs a new one
	reference  *reference // what to compare with; nil in the plays that make it
}

func newPlayer(ctx context.Context, o Options, connection *runner.Connection) (*player, error) {
	p := &player{options: o, connection: connection, view: &view{mapper: o.Client.RESTMapper()}}
	options := o.Lab
	options.Cluster, options.Private, options.Unchanging = operatorhost.Through(o.Lab.Cluster, p.view.wrap), true, true
	var err error
	p.lab, err = lab.Open(ctx, options)
	return p, err
}

func (p *player) close() {
	// What a run says at its end is of no interest any more.
	_ = p.lab.Close(context.Background())
	p.leaveNamespace()
}

// leavePatience limits the request that deletes a namespace.
const leavePatience = 5 * time.Second

// leaveNamespace deletes the namespace, without waiting until it is gone.
func (p *player) leaveNamespace() {
	if p.namespace == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	// The next play has another one in any case.
	_ = p.options.Client.Delete(ctx, namespaceNamed(p.namespace))
	p.namespace = ""
}

// enterNamespace makes a namespace, unless there is one that the last play has left as it was: to delete one takes the cluster longer
// than a play.
func (p *player) enterNamespace(ctx context.Context) error {
	if p.namespace != "" {
		return nil
	}
	for {
		name := fmt.Sprintf("verify-%d", namespaces.Add(1))
		err := p.options.Client.Create(ctx, namespaceNamed(name))
		if apierrors.IsAlreadyExists(err) {
			continue // of another exploration in the same cluster
		}
		if err != nil {
			return fmt.Errorf("make a namespace: %w", err)
		}
		p.namespace = name
		p.view.namespace.Store(&name)
		return nil
	}
}

func namespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// isEmpty reports whether a play has left nothing in its namespace but what is in each.
func isEmpty(ctx context.Context, c client.Client, o *outcome) bool {
	if o.journal == nil {
		return false // it did not begin
	}
	all, err := objects(ctx, c, o.journal, o.namespace)
	return err == nil && !slices.ContainsFunc(all, func(object unstructured.Unstructured) bool {
		return !isOfKubernetes(object.GetKind(), object.GetName())
	})
}

// play plays a plan; nil: without a fault. An error means that it was not played to its end.
func (p *player) play(ctx context.Context, plan *Plan) (*outcome, error) {
	if err := p.enterNamespace(ctx); err != nil {
		return nil, err
	}
	test := *p.options.Test.Test
	test.Spec.Namespace = p.namespace
	hooks := &playHooks{
		LabHooks: scenarios.NewLabHooks(p.lab, p.options.Client, p.options.Selection), player: p,
		outcome: &outcome{plan: plan, namespace: test.Spec.Namespace}, kinds: map[schema.GroupVersionKind]bool{},
	}
	if p.reference != nil {
		hooks.outcome.names = p.reference.names
	}
	loaded := *p.options.Test
	loaded.Test = &test
	o := p.options.Runner
	o.Connection, o.Tests, o.Hooks, o.Sink = p.connection, []*format.Loaded{&loaded}, hooks, nil
	run, err := runner.Run(ctx, o)
	if hooks.lets != nil {
		hooks.stop()
		<-hooks.lets
	}
	if !isEmpty(ctx, p.options.Client, hooks.outcome) {
		p.leaveNamespace()
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	out := hooks.outcome
	for _, test := range run.Tests {
		if test.Unfinished {
			return nil, context.Canceled
		}
		for step, op := range test.FailedOperations() {
			if op.Phase == report.Catch {
				continue // it looks for the cause of a failure, and what it says is another thing each time
			}
			// The same in each namespace.
			message := strings.ReplaceAll(fmt.Sprintf("step %s: %s: %s", step.Name, strings.TrimSpace(op.Type+" "+op.Name), op.Failure.Message), out.namespace+"/", "")
			out.wrong = append(out.wrong, elapsed.ReplaceAllString(message, ""))
		}
		for _, f := range test.Findings {
			if out.cut && f.Oracle == oracle.Leak {
				continue
			}
			if plan != nil && plan.drift != nil && f.Oracle == oracle.LiveDelete {
				continue // what somebody else has changed may have to be made anew, and the oracle does not see who did
			}
			out.wrong = append(out.wrong, f.Oracle+": "+strings.ReplaceAll(f.Message, out.namespace, "<namespace>"))
		}
	}
	return out, nil
}

// elapsed is how long something took, at the end of a sentence: it differs each time.
var elapsed = regexp.MustCompile(` after [0-9.]+(ms|s)\b`)

// playHooks arm the fault of a plan when the operator serves, and look at what the cluster settled at.
type playHooks struct {
	*scenarios.LabHooks
	player  *player
	outcome *outcome

	// lets is closed when letGo has returned; stop ends it.
	lets chan struct{}
	stop context.CancelFunc

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]bool // of the objects of the scenario
}

// letGo lets a kind of which the operator is shown an older view be seen as it is, when the operator has no more to do with
// what it sees. It returns then, or when the context ends.
func (h *playHooks) letGo(ctx context.Context, test *format.Test) {
	if !h.awaitStale(ctx) {
		return
	}
	// An operator that is still at work has to see it, too.
	_ = h.settle(ctx, test, h.outcome.plan.Fault.Match.Kind)
	h.Lab.Faults().Release(planFault)
}

// awaitStale returns true when the operator is shown an older view, or false when the context ends.
func (h *playHooks) awaitStale(ctx context.Context) bool {
	faults, changed := h.Lab.Faults(), make(chan struct{}, 1)
	defer faults.Subscribe(func(string) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	for {
		if status, _ := faults.Status(planFault); status.Times > 0 {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// planFault is the name of the fault of a plan, secondFault that of the other one if there are two.
const planFault, secondFault = "plan", "second"

// Begin starts the operator, and arms the fault.
func (h *playHooks) Begin(ctx context.Context, test *format.Test, r *report.Test) error {
	if err := h.LabHooks.Begin(ctx, test, r); err != nil || h.outcome.plan == nil || h.outcome.plan.atRest {
		return err
	}
	if both := h.outcome.plan.both; both != nil {
		if err := h.Lab.Faults().Arm(secondFault, both[1].Fault); err != nil {
			return err
		}
	}
	if err := h.Lab.Faults().Arm(planFault, h.outcome.plan.Fault); err != nil || h.outcome.plan.Fault.Stale == nil {
		return err
	}
	h.lets = make(chan struct{})
	ctx, h.stop = context.WithCancel(ctx)
	go func() {
		defer close(h.lets)
		h.letGo(ctx, test)
	}()
	return nil
}

// Object refuses the kinds of the lab, since its API is not served and verify makes the faults, and kinds that belong to no namespace.
func (h *playHooks) Object(apiVersion, kind string) error {
	of := schema.FromAPIVersionAndKind(apiVersion, kind)
	if of.Group == v1alpha1.GroupVersion.Group {
		return &sandbox.Problem{
			Err: fmt.Errorf("the scenario makes a %s, and verify makes the faults itself", kind), Hint: "choose a scenario without objects of operator-lab.dev",
		}
	}
	mapping, err := h.player.options.Client.RESTMapper().RESTMapping(of.GroupKind(), of.Version)
	if err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return &sandbox.Problem{
			Err:  fmt.Errorf("the scenario makes a %s, which belongs to no namespace, and plays side by side would share it", kind),
			Hint: "choose a scenario without such objects; 'operator-lab test' plays any",
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kinds[of] = true
	return nil // a kind that is not known is told by the API server
}

// Settled looks at what the cluster settled at, and checks the oracles.
func (h *playHooks) Settled(ctx context.Context, test *format.Test, r *report.Test, ok bool) []report.Finding {
	o := h.outcome
	o.journal = h.Lab.Journal()
	if h.lets != nil {
		if ok { // the event may be on its way; whether it comes to rest is found out below
			_ = h.settle(ctx, test, "")
		}
		if status, _ := h.Lab.Faults().Status(planFault); status.Times == 0 {
			h.stop() // the operator did something else this time
		}
		<-h.lets
		h.Lab.Faults().Release(planFault)
	}
	var found []report.Finding
	if ok {
		h.awaitSeen(ctx)
		err := errors.Join(awaitCollected(ctx, h.player.options.Client, o), h.settle(ctx, test, ""))
		if err == nil && o.plan != nil && o.plan.atRest {
			found, err = h.disturb(ctx, test)
		}
		if err != nil {
			found = append(found, report.Finding{Oracle: "settles", Message: err.Error()})
		}
	}
	if status, armed := h.Lab.Faults().Status(planFault); armed {
		o.reached = status.Times > 0
		if second, armed := h.Lab.Faults().Status(secondFault); armed {
			o.reached = o.reached && second.Times > 0
		}
	}
	if !ok && o.plan != nil && o.isCutOff() {
		o.reached, o.why = false, "the scenario waits for what comes of this event before it makes the next change"
	}
	o.settled = o.journal.Stats().Last
	var err error
	if o.plan == nil && ok {
		if o.children, err = childrenOf(ctx, h.player.options.Client, o); err == nil {
			o.served, err = servedIn(ctx, h.player.options.Client, o, h.kindsOf())
		}
		if err != nil && ctx.Err() == nil {
			found = append(found, report.Finding{Oracle: "state", Message: "what the operator made cannot be read: " + err.Error()})
		}
	}
	if o.cut {
		return found // the oracles would judge a play that was cut short
	}
	if err = o.look(ctx, h.Reader); err != nil && ctx.Err() == nil {
		found = append(found, report.Finding{Oracle: "state", Message: "the cluster cannot be read: " + err.Error()})
	}
	return append(found, h.LabHooks.Settled(ctx, test, r, ok)...)
}

// isCutOff reports whether the operator was to miss an event until the next change of the object, and there was none.
func (o *outcome) isCutOff() bool {
	if o.plan.both != nil || o.plan.Fault.Watch == nil || o.plan.Fault.Watch.Action != v1alpha1.WatchCoalesce {
		return false
	}
	var missed *trace.Event
	for _, e := range o.journal.Since(0) {
		switch {
		case e.Kind == trace.KindFault && missed == nil:
			missed = e
		case e.Kind == trace.KindWatch && missed != nil && e.Object.Kind == missed.Object.Kind && e.Object.Key() == missed.Object.Key():
			return false
		}
	}
	return missed != nil
}

// kindsOf returns the kinds of the objects of the scenario, sorted.
func (h *playHooks) kindsOf() []schema.GroupVersionKind {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Keys(h.kinds), func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
}
