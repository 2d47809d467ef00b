package metrics

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options are the options of a [Watcher].
type Options struct {
	// Config is that of somebody who may read pods and their proxies.
	Config *rest.Config
	// Rules are evaluated at each look. Default: none.
	Rules *Rules
	// Operator chooses targets: those of an operator and of what it looks after. Default: all.
	Operator string
	// Namespace chooses pods, and leaves out operators of a lab. Default: all.
	Namespace string
	// Interval is the time between two looks, Window how far back plots go.
	Interval, Window time.Duration
	// Columns is the most points that a line of a plot gets.
	Columns int
}

// Watcher reads metrics again and again, and keeps what the plots and the rules need of them.
type Watcher struct {
	options Options
	kube    kubernetes.Interface
	engine  *Engine
	store   *Store
	wanted  func(string) bool
	began   time.Time
	before  map[string]bool // sources of the last look
}

// userAgent is the lab's own, whose requests to the API server are not recorded in the journal.
const userAgent = "operator-lab"

// New returns a watcher.
func New(o Options) (*Watcher, error) {
	config := rest.CopyConfig(o.Config)
	config.UserAgent, config.QPS = userAgent, -1 // the interval is the limit
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if o.Rules == nil {
		o.Rules = &Rules{}
	}
	return &Watcher{
		options: o, kube: kube, engine: NewEngine(), store: NewStore(max(o.Window, o.Rules.reach()) + lookbackTime),
		wanted: o.Rules.wanted(), before: map[string]bool{},
	}, nil
}

// Picture is what one look shows.
type Picture struct {
	At      time.Time   `json:"at"`
	Began   time.Time   `json:"began"` // the first look was then
	Targets []Target    `json:"targets"`
	Plots   []Plot      `json:"signals"`
	Alerts  []RuleState `json:"alerts"`
}

// Answering returns the number of targets that answer.
func (p *Picture) Answering() (n int) {
	for _, t := range p.Targets {
		if t.Up {
			n++
		}
	}
	return n
}

// Look reads all metrics and evaluates rules and plots. Plots of what there is not are left out.
func (w *Watcher) Look(ctx context.Context, at time.Time) (*Picture, error) {
	all, err := targets(ctx, w.kube)
	if err != nil {
		return nil, err
	}
	p := &Picture{At: at, Targets: []Target{}, Plots: []Plot{}, Alerts: []RuleState{}}
	for _, t := range all {
		if o := w.options; (o.Operator == "" || t.Labels[operatorLabel] == o.Operator) && (o.Namespace == "" || t.Labels["namespace"] == o.Namespace) {
			p.Targets = append(p.Targets, t)
		}
	}
	scrape(ctx, w.kube.Discovery().RESTClient(), p.Targets, w.store, at, w.wanted)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	there := map[string]bool{}
	for i := range p.Targets {
		there[p.Targets[i].source()] = true
	}
	for source := range w.before {
		if !there[source] {
			w.store.Append(source, at, nil)
		}
	}
	w.before = there
	w.store.Forget(at)
	if w.began.IsZero() {
		w.began = at
	}
	p.Began = w.began
	w.options.Rules.Evaluate(ctx, w.engine, w.store, at)
	p.Alerts = append(p.Alerts, w.options.Rules.States()...)
	if p.Plots, err = w.plots(ctx, at); err != nil {
		return nil, err
	}
	return p, ctx.Err()
}

// leastSpan is how far back plots go at first.
const leastSpan = 30 * time.Second

// plots evaluates the signals. Rates are taken over the time from one point to the next and two looks more, so that no look
// is left out; at first over less.
func (w *Watcher) plots(ctx context.Context, at time.Time) ([]Plot, error) {
	span := min(max(at.Sub(w.began), leastSpan), w.options.Window)
	step := max(span/time.Duration(cmp.Or(w.options.Columns, 60)), w.options.Interval)
	over := min(step+2*w.options.Interval, max(at.Sub(w.began), w.options.Interval)+w.options.Interval)
	plots := []Plot{}
	for _, s := range Signals {
		p, err := s.plot(ctx, w.engine, w.store, span, step, over, at)
		if err != nil {
			return nil, err
		}
		if len(p.Lines) > 0 {
			plots = append(plots, p)
		}
	}
	return plots, nil
}

// wanted returns what chooses the metrics by name that the plots and the rules need.
func (r *Rules) wanted() func(string) bool {
	var all []string
	for _, s := range Signals {
		all = append(all, s.Expr)
	}
	for _, g := range r.groups {
		for _, one := range g.rules {
			all = append(all, one.Expr)
			for _, source := range []map[string]string{one.labels, one.Annotations} {
				for _, text := range source {
					if strings.Contains(text, "query") { // a template may ask for anything
						return func(string) bool { return true }
					}
				}
			}
		}
	}
	found, anything := names(all)
	return func(name string) bool { return anything || found[name] }
}

// reach returns the longest time for which a rule looks back.
func (r *Rules) reach() (longest time.Duration) {
	for _, g := range r.groups {
		for _, one := range g.rules {
			longest = max(longest, g.offset+back(one.Expr))
		}
	}
	return longest
}

// Find returns the state of the rule with a name; the most urgent one if several have it. It is empty if there is nothing of
// it, and what was read so far may be too little to say so.
func (p *Picture) Find(name string) (found State, err error) {
	known, reach := false, time.Duration(0)
	for _, a := range p.Alerts {
		if a.Name != name {
			continue
		}
		known, reach = true, max(reach, a.Reach)
		if found == "" || urgency(a.State) > urgency(found) {
			found = a.State
		}
	}
	if !known {
		return "", fmt.Errorf("there is no rule %s", name)
	}
	if found == Inactive && p.At.Sub(p.Began) < reach {
		found = ""
	}
	return found, nil
}
