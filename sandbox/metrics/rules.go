package metrics

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
)

// Limits of a query.
const (
	mostSamples  = 5_000_000
	queryTime    = 10 * time.Second
	lookbackTime = 5 * time.Minute // Prometheus' own
)

// Engine evaluates expressions of PromQL. It is Prometheus' own.
type Engine struct{ engine *promql.Engine }

// NewEngine returns an engine.
func NewEngine() *Engine {
	return &Engine{promql.NewEngine(promql.EngineOpts{
		MaxSamples: mostSamples, Timeout: queryTime, LookbackDelta: lookbackTime,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: language,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Second.Milliseconds() },
	})}
}

// At returns the value of an expression at a moment. A scalar is a sample without labels.
func (e *Engine) At(ctx context.Context, s storage.Queryable, expr string, at time.Time) (promql.Vector, error) {
	query, err := e.engine.NewInstantQuery(ctx, s, nil, expr, at)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	result := query.Exec(ctx)
	if result.Err != nil {
		return nil, result.Err
	}
	switch v := result.Value.(type) {
	case promql.Vector:
		return slices.Clone(v), nil // Close takes it back
	case promql.Scalar:
		return promql.Vector{{T: v.T, F: v.V}}, nil
	}
	return nil, fmt.Errorf("the result is a %s, and no instant vector", result.Value.Type())
}

// Between returns the values of an expression at moments with the same time between each and the next.
func (e *Engine) Between(ctx context.Context, s storage.Queryable, expr string, from, to time.Time, step time.Duration) (promql.Matrix, error) {
	query, err := e.engine.NewRangeQuery(ctx, s, nil, expr, from, to, step)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	matrix, err := query.Exec(ctx).Matrix()
	if err != nil {
		return nil, err
	}
	out := make(promql.Matrix, len(matrix))
	for i, one := range matrix { // Close takes the values back
		out[i] = promql.Series{Metric: one.Metric, Floats: slices.Clone(one.Floats)}
	}
	return out, nil
}

// State is that of an alert, or the most urgent one of a rule.
type State string

// The states.
const (
	Inactive State = "inactive"
	Pending  State = "pending"
	Firing   State = "firing"
)

// States are all states, from the least urgent one on.
var States = []State{Inactive, Pending, Firing}

// Alert is one alert of a rule: the expression has, or had, a result with these labels.
type Alert struct {
	State       State             `json:"state"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Value       float64           `json:"-"`
	// ActiveAt is when the expression first had this result; FiredAt when that had lasted for the time that the rule asks
	// for; ResolvedAt when it had it no more.
	ActiveAt   time.Time `json:"activeAt"`
	FiredAt    time.Time `json:"firedAt,omitzero"`
	ResolvedAt time.Time `json:"resolvedAt,omitzero"`

	keptSince time.Time // since when it fires without a result
}

// Since returns when the alert got into its state.
func (a Alert) Since() time.Time {
	switch a.State {
	case Firing:
		return a.FiredAt
	case Inactive:
		return a.ResolvedAt
	}
	return a.ActiveAt
}

// RuleState is what came of an alerting rule so far.
type RuleState struct {
	Name  string `json:"name"`
	Group string `json:"group"`
	File  string `json:"file"`
	State State  `json:"state"`
	// Error says why it could not be evaluated last.
	Error string `json:"error,omitempty"`
	// Reach is how far back the expression looks: before so much was read, it may see too little.
	Reach time.Duration `json:"-"`
	// Alerts are those that are pending or firing, and for a while those that were firing, by their labels.
	Alerts []Alert `json:"alerts,omitempty"`
}

// Rules are groups of rules and the states of their alerts.
type Rules struct{ groups []*group }

// Add adds the groups of others.
func (r *Rules) Add(others *Rules) { r.groups = append(r.groups, others.groups...) }

// group is a group of rules, which are evaluated one after the other.
type group struct {
	file, name       string
	interval, offset time.Duration
	limit            int
	last             time.Time // it was evaluated
	rules            []*rule
}

// rule is an alerting or a recording rule.
type rule struct {
	rulefmt.Rule
	labels map[string]string // its own and those of the group
	err    error
	alerts map[string]*Alert // by their labels
}

func newRule(r rulefmt.Rule, ofGroup map[string]string) *rule {
	all := maps.Clone(ofGroup)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, r.Labels)
	return &rule{Rule: r, labels: all, alerts: map[string]*Alert{}}
}

// Evaluate evaluates the groups whose interval has passed since they were evaluated last; without an interval that is all.
// Results of recording rules are added to the store.
func (r *Rules) Evaluate(ctx context.Context, e *Engine, s *Store, at time.Time) {
	for _, g := range r.groups {
		if !g.last.IsZero() && at.Sub(g.last) < g.interval {
			continue
		}
		g.last = at
		for i, one := range g.rules {
			result, err := e.At(ctx, s, one.Expr, at.Add(-g.offset))
			switch {
			case err != nil:
			case one.Record != "":
				err = one.record(s, fmt.Sprint("rule ", g.file, " ", g.name, " ", i), at.Add(-g.offset), result)
			default:
				err = one.alert(ctx, at, result, g.limit, func(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
					return e.At(ctx, s, expr, at)
				})
			}
			if ctx.Err() == nil {
				one.err = err
			}
		}
	}
}

// record adds the result of a recording rule to the store.
func (r *rule) record(s *Store, source string, at time.Time, result promql.Vector) error {
	var samples []Sample
	seen := map[string]bool{}
	for _, one := range result {
		b := labels.NewBuilder(one.Metric)
		b.Set(model.MetricNameLabel, r.Record)
		for name, value := range r.labels {
			b.Set(name, value)
		}
		l := b.Labels()
		if seen[l.String()] {
			return fmt.Errorf("two results with the same labels: %s", l)
		}
		seen[l.String()] = true
		samples = append(samples, Sample{Labels: l, Value: one.F})
	}
	s.Append(source, at, samples)
	return nil
}

// resolvedTime is how long an alert that does not fire any more is still shown, as in Prometheus.
const resolvedTime = 15 * time.Minute

// alert takes the result of the expression of an alerting rule, with the meaning that Prometheus gives to it: an alert is
// pending until it has been there at each evaluation for the rule's time, then it fires; one that was pending vanishes
// when it is not there once.
func (r *rule) alert(ctx context.Context, at time.Time, result promql.Vector, limit int, query template.QueryFunc) error {
	there := map[string]*Alert{}
	for _, one := range result {
		a := r.newAlert(ctx, at, one, query)
		key := labels.FromMap(a.Labels).String()
		if there[key] != nil {
			return fmt.Errorf("two results have the same labels %s once those of the rule are set", key)
		}
		there[key] = a
	}
	for key, a := range there {
		if known := r.alerts[key]; known != nil && known.State != Inactive {
			known.Value, known.Annotations = a.Value, a.Annotations
			continue
		}
		r.alerts[key] = a
	}
	active := 0
	for key, a := range r.alerts {
		switch {
		case there[key] != nil:
			a.keptSince = time.Time{}
		case a.State == Pending, a.State == Inactive && at.Sub(a.ResolvedAt) > resolvedTime:
			delete(r.alerts, key)
			continue
		case a.State == Inactive:
			continue
		default: // it fires
			if a.keptSince.IsZero() {
				a.keptSince = at
			}
			if at.Sub(a.keptSince) >= time.Duration(r.KeepFiringFor) {
				a.State, a.ResolvedAt = Inactive, at
				continue
			}
		}
		active++
		if a.State == Pending && at.Sub(a.ActiveAt) >= time.Duration(r.For) {
			a.State, a.FiredAt = Firing, at
		}
	}
	if limit > 0 && active > limit {
		r.alerts = map[string]*Alert{}
		return fmt.Errorf("there are %d alerts, and the limit of the group is %d", active, limit)
	}
	return nil
}

// newAlert returns the alert of a result, with the templates in labels and annotations filled in.
func (r *rule) newAlert(ctx context.Context, at time.Time, result promql.Sample, query template.QueryFunc) *Alert {
	given := template.AlertTemplateData(result.Metric.Map(), nil, "", result)
	expand := func(source string) string {
		const variables = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"
		filled, err := template.NewTemplateExpander(ctx, variables+source, "__alert_"+r.Alert, given,
			model.TimeFromUnixNano(at.UnixNano()), query, &url.URL{}, nil).Expand()
		if err != nil {
			return fmt.Sprintf("<error expanding template: %v>", err)
		}
		return filled
	}
	a := &Alert{State: Pending, Value: result.F, ActiveAt: at, Labels: result.Metric.Map(), Annotations: map[string]string{}}
	delete(a.Labels, model.MetricNameLabel)
	for name, source := range r.labels {
		a.Labels[name] = expand(source)
	}
	a.Labels[labels.AlertName] = r.Alert
	for name, source := range r.Annotations {
		a.Annotations[name] = expand(source)
	}
	maps.DeleteFunc(a.Labels, func(_, value string) bool { return value == "" })
	return a
}

// States returns the states of all alerting rules, in the order of the files.
func (r *Rules) States() []RuleState {
	var out []RuleState
	for _, g := range r.groups {
		for _, one := range g.rules {
			if one.Alert == "" {
				continue
			}
			s := RuleState{Name: one.Alert, Group: g.name, File: g.file, State: Inactive, Reach: g.offset + back(one.Expr)}
			if one.err != nil {
				s.Error = one.err.Error()
			}
			for _, key := range slices.Sorted(maps.Keys(one.alerts)) {
				a := *one.alerts[key]
				if urgency(a.State) > urgency(s.State) {
					s.State = a.State
				}
				s.Alerts = append(s.Alerts, a)
			}
			slices.SortStableFunc(s.Alerts, func(a, b Alert) int { return cmp.Compare(urgency(b.State), urgency(a.State)) })
			out = append(out, s)
		}
	}
	return out
}

func urgency(s State) int { return slices.Index(States, s) }

// Alerts returns the names of the alerting rules, sorted.
func (r *Rules) Alerts() []string {
	var all []string
	for _, s := range r.States() {
		all = append(all, s.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
