package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/apirequest"
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

func newPlayer(ctx context.Context, o Options, connection *runner.Connection, namespaced map[schema.GroupResource]bool) (*player, error) {
	p := &player{options: o, connection: connection, view: &view{namespaced: namespaced}}
	options := o.Lab
	options.Cluster, options.Private = scoped{Cluster: o.Lab.Cluster, view: p.view}, true
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
	name := fmt.Sprintf("verify-%d", namespaces.Add(1))
	if err := p.options.Client.Create(ctx, namespaceNamed(name)); err != nil {
		return fmt.Errorf("make a namespace: %w", err)
	}
	p.namespace = name
	p.view.namespace.Store(&name)
	return nil
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
			// The same in each namespace.
			message := strings.ReplaceAll(fmt.Sprintf("step %s: %s %s: %s", step.Name, op.Type, op.Name, op.Failure.Message), out.namespace+"/", "")
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
	faults, changed := h.Lab.Faults(), make(chan struct{}, 1)
	defer faults.Subscribe(func(string) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	for {
		if status, _ := faults.Status(planFault); status.Times > 0 {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
	// An operator that is still at work has to see it, too.
	_ = h.settle(ctx, test, h.outcome.plan.Fault.Match.Kind)
	faults.Release(planFault)
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

// Object refuses the kinds of the lab: its API is not served, and verify makes the faults.
func (h *playHooks) Object(apiVersion, kind string) error {
	if group, _ := schema.ParseGroupVersion(apiVersion); group.Group != v1alpha1.GroupVersion.Group {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.kinds[schema.FromAPIVersionAndKind(apiVersion, kind)] = true
		return nil
	}
	return &sandbox.Problem{
		Err: fmt.Errorf("the scenario makes a %s, and verify makes the faults itself", kind), Hint: "choose a scenario without objects of operator-lab.dev",
	}
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
		err := h.settle(ctx, test, "")
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
	if o.state, err = look(ctx, h.Reader, o.journal, o.namespace); err != nil && ctx.Err() == nil {
		found = append(found, report.Finding{Oracle: "state", Message: "the cluster cannot be read: " + err.Error()})
	}
	return append(found, h.LabHooks.Settled(ctx, test, r, ok)...)
}

// seenPatience limits the wait for the operator to see an object: it may not watch the kind.
const seenPatience = 2 * time.Second

// awaitSeen returns when the operator has seen the objects of the scenario as they are.
func (h *playHooks) awaitSeen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, seenPatience)
	defer cancel()
	for _, kind := range h.kindsOf() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if h.Reader.List(ctx, list, client.InNamespace(h.outcome.namespace)) != nil {
			continue // what cannot be listed is not compared either
		}
		for i := range list.Items {
			await(ctx, h.outcome.journal, 0, func(e *trace.Event) bool { return isVersion(e, &list.Items[i]) })
		}
	}
}

// kindsOf returns the kinds of the objects of the scenario, sorted.
func (h *playHooks) kindsOf() []schema.GroupVersionKind {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Keys(h.kinds), func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
}

// isVersion reports whether an event tells of an object as it is, or as it became later.
func isVersion(e *trace.Event, o *unstructured.Unstructured) bool {
	if e.Object.UID != string(o.GetUID()) || e.Kind != trace.KindWatch {
		return false
	}
	return isNewer(e.ResourceVersion, o.GetResourceVersion())
}

// isNewer reports whether a version of an object is another one, or a later one.
func isNewer(version, than string) bool {
	newer, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && newer >= 0
}

// How long a scenario may take to settle; keys whose timers run out later than soon do not count; for one that has run out, and that
// the operator has not taken yet, soonest is waited; and how many reconciles without a write an operator that only looks around has
// settled after.
const (
	settlePatience = 20 * time.Second
	soon           = time.Second
	soonest        = 5 * time.Millisecond
	idleRounds     = 3
)

// settle returns when the operator serves, also after a crash, and has nothing more to do: its queue is empty, what it
// wrote has come back, and timers that run out soon have run out without a write. Events of the kind held do not come.
func (h *playHooks) settle(ctx context.Context, test *format.Test, held string) error {
	setup, err := h.Selection.Setup(test)
	if err != nil {
		return err
	}
	journal := h.Lab.Journal()
	ctx, cancel := context.WithTimeoutCause(ctx, settlePatience, fmt.Errorf("the operator is still at work after %v", settlePatience))
	defer cancel()
	pods := &stillness{reader: h.Reader, namespace: h.outcome.namespace}
	var before work
	for idle := 0; ; {
		for _, name := range setup.Operators {
			if _, err := h.Lab.Load(ctx, name, setup.Spec); err != nil { // it is loaded: this waits until it serves
				return err
			}
		}
		if err := operatorhost.AwaitQuiet(ctx, journal, held); err != nil {
			return context.Cause(ctx)
		}
		timeline := trace.NewTimeline(journal)
		timeline.Update()
		due, waits := nextTimer(timeline.Tip(), journal.Elapsed())
		now := workIn(journal)
		switch {
		case now.writes != before.writes:
			idle = 0
		case now.reconciles != before.reconciles:
			idle++
		}
		if before = now; !waits || idle > idleRounds {
			if !hasWorkloads(journal, h.outcome.namespace) {
				return nil
			}
			since := journal.Stats().Last
			was, err := h.awaitStill(ctx, pods)
			if err != nil {
				return err
			}
			if was && (idle > idleRounds || journal.Stats().Last == since) {
				return nil
			}
			if !was {
				idle = 0
			}
			continue
		}
		select {
		case <-time.After(max(due, soonest)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// nextTimer returns the time until the first timer of a key runs out; false if none does soon.
func nextTimer(s *trace.State, now time.Duration) (time.Duration, bool) {
	for _, item := range s.Queue() { // those that wait are sorted by time
		if !item.Ready {
			left := max(0, item.Due-now)
			return left, left <= soon
		}
	}
	return 0, false
}

// work counts what an operator has done.
type work struct{ writes, reconciles int }

func workIn(journal *trace.Journal) (w work) {
	for _, e := range journal.Since(0) {
		if isWrite(e) {
			w.writes++
		}
		if e.Kind == trace.KindEnd {
			w.reconciles++
		}
	}
	return w
}

// isWrite reports whether an event is a write that changed something.
func isWrite(e *trace.Event) bool {
	return e.Kind == trace.KindCall && e.IsWrite() && !e.NoOp && e.Error == ""
}

// scoped is a cluster in which an operator sees one namespace only.
type scoped struct {
	operatorhost.Cluster
	view *view
}

// Config implements [operatorhost.Cluster].
func (s scoped) Config() *rest.Config {
	config := s.Cluster.Config()
	config.Wrap(s.view.wrap)
	return config
}

// User implements [operatorhost.Cluster].
func (s scoped) User(name string, groups ...string) (*rest.Config, error) {
	config, err := s.Cluster.User(name, groups...)
	if err == nil {
		config.Wrap(s.view.wrap)
	}
	return config, err
}

// view turns lists and watches of all namespaces into those of one.
type view struct {
	namespaced map[schema.GroupResource]bool
	namespace  atomic.Pointer[string]
}

func (v *view) wrap(next http.RoundTripper) http.RoundTripper { return &viewing{v, next} }

type viewing struct {
	*view
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (v *viewing) RoundTrip(req *http.Request) (*http.Response, error) {
	target, ok := apirequest.Parse(req.URL.Path)
	namespace := v.namespace.Load()
	if !ok || namespace == nil || target.Namespace != "" || target.Name != "" || req.Method != http.MethodGet || !v.namespaced[target.GroupResource()] {
		return v.next.RoundTrip(req)
	}
	scoped := req.Clone(req.Context())
	scoped.URL.Path = target.Path(*namespace)
	return v.next.RoundTrip(scoped)
}

// WrappedRoundTripper lets client-go reach the transport below.
func (v *viewing) WrappedRoundTripper() http.RoundTripper { return v.next }

// namespacedResources returns the resources of a cluster that belong to namespaces.
func namespacedResources(config *rest.Config) (map[schema.GroupResource]bool, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	_, lists, err := client.ServerGroupsAndResources()
	if partly, is := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); is && len(partly.Groups) > 0 {
		err = nil // an aggregated API that does not answer is no operator's
	}
	out := map[schema.GroupResource]bool{}
	for _, list := range lists {
		gv, parseErr := schema.ParseGroupVersion(list.GroupVersion)
		if parseErr != nil {
			return nil, parseErr
		}
		for _, r := range namespacedOf(list) {
			out[schema.GroupResource{Group: gv.Group, Resource: r}] = true
		}
	}
	return out, err
}

func namespacedOf(list *metav1.APIResourceList) []string {
	var names []string
	for _, r := range list.APIResources {
		if r.Namespaced {
			names = append(names, r.Name)
		}
	}
	return names
}
