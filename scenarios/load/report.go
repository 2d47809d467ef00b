package load

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/operator-lab/operator-lab/scenarios/report"
)

// The phases at each size.
const (
	Create  = "create"  // the objects are made
	Change  = "change"  // some of them are changed
	Relist  = "relist"  // all watches end with 410 Gone: a full resync
	Restart = "restart" // the operator is started again
)

// Phases are the phases in their order.
var Phases = []string{Create, Change, Relist, Restart}

// Report is what was measured of an operator.
type Report struct {
	// Operator and Variant say what was measured; Variant may be empty.
	Operator string `json:"operator"`
	Variant  string `json:"variant,omitempty"`
	// Kind is that of the objects.
	Kind string `json:"kind"`
	// Shard is which of the sizes were measured.
	Shard report.Shard `json:"shard,omitzero"`
	// Changes is how many changes were made at each size.
	Changes int `json:"changes"`
	// OwnProcess says that the operator has a process of its own, whose CPU time and memory are measured.
	OwnProcess bool `json:"ownProcess"`
	// Sizes are what was measured at each size; the last one may have not all phases.
	Sizes []*Size `json:"sizes"`
	// Growth is how each figure grows, by phase and figure.
	Growth []Growth `json:"growth"`
	// Findings are what grows faster than it has to, or is done for nothing.
	Findings []Finding `json:"findings"`
	// Unsettled says that, and why, the operator did not come to rest at the last size; empty: it did.
	Unsettled string `json:"unsettled,omitempty"`
	// Notes are what has to be known of what was measured.
	Notes []string `json:"notes,omitempty"`
	// Missed is how many events the journal forgot before they were counted.
	Missed int64 `json:"missed,omitempty"`
}

// Size is what was measured with a number of objects.
type Size struct {
	Objects int `json:"objects"`
	// Shard counts the shards of a merged report from 1; the size before is that of the same shard. 0: the report is not merged.
	Shard int `json:"shard,omitempty"`
	// Phases by their names.
	Phases map[string]*Phase `json:"phases"`
	// Settled says that all phases came to their end.
	Settled bool `json:"settled"`
	// Etcd is by how many bytes etcd grew while the objects were made, since the size before.
	Etcd int64 `json:"etcdBytes"`
	// CPU is the time in seconds on all processors in the phases before the restart, Memory the resident memory in bytes at their
	// end; both are 0 for an operator without a process of its own.
	CPU    float64 `json:"cpuSeconds,omitempty"`
	Memory uint64  `json:"memoryBytes,omitempty"`
}

// last returns the last phase that was begun; empty if none was.
func (s *Size) last() (name string) {
	for _, phase := range Phases {
		if s.Phases[phase] != nil {
			name = phase
		}
	}
	return name
}

// Phase is what was counted in a phase. In the phase create it is what was done since the size before.
type Phase struct {
	// Seconds is how long it took, with the time until it was seen that the operator is at rest.
	Seconds    float64 `json:"seconds"`
	Reconciles int     `json:"reconciles"`
	// Errors is how many of the reconciles failed.
	Errors int `json:"errors,omitempty"`
	// Writes is how many writes changed something, NoOps how many did not, Conflicts how many were refused for a conflict.
	Writes    int `json:"writes"`
	NoOps     int `json:"noOpWrites"`
	Conflicts int `json:"conflicts"`
	// WatchEvents is how many came, Keys how often handlers put a key into a queue because of one, QueueDepth how many were ready at
	// most.
	WatchEvents int `json:"watchEvents"`
	// Others is how many versions came by watch events that others wrote, of objects that the operator did not change.
	Others     int `json:"othersWrites,omitempty"`
	Keys       int `json:"keys"`
	QueueDepth int `json:"queueDepth"`
	// P50 and P99 are seconds from a change to the end of the last reconcile of its object before the next change of it, of Answered
	// changes; the others woke no reconcile.
	P50      float64 `json:"p50Seconds,omitempty"`
	P99      float64 `json:"p99Seconds,omitempty"`
	Answered int     `json:"answered,omitempty"`
	// Requests are those of the operator at the API server.
	Requests []RequestCount `json:"requests"`
	// Calls are those of its reconciles, also of the cache.
	Calls []CallCount `json:"calls"`
	// Wakes are the Keys.
	Wakes []WakeCount `json:"wakes"`
}

// RequestCount is the traffic of one sort of requests.
type RequestCount struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Requests int64  `json:"requests"`
	Sent     int64  `json:"sentBytes"`
	Received int64  `json:"receivedBytes"`
}

// WakeCount is how many keys a controller made of watch events of a kind.
type WakeCount struct {
	Wake
	Keys int `json:"keys"`
}

func newPhase(t *tally, before, after map[Request]Traffic, took time.Duration) *Phase {
	p := &Phase{
		Seconds: took.Seconds(), Reconciles: t.reconciles, Errors: t.errors, Writes: t.writes, NoOps: t.noOps, Conflicts: t.conflicts,
		WatchEvents: t.watched, Others: t.others, Keys: t.keys, QueueDepth: t.queue, Answered: len(t.latencies),
		Requests: []RequestCount{}, Calls: []CallCount{}, Wakes: []WakeCount{},
	}
	if len(t.latencies) > 0 {
		slices.Sort(t.latencies)
		at := func(percent int) float64 { return t.latencies[(len(t.latencies)-1)*percent/100].Seconds() }
		p.P50, p.P99 = at(50), at(99)
	}
	for r, traffic := range after {
		if d := traffic.less(before[r]); d != (Traffic{}) {
			p.Requests = append(p.Requests, RequestCount{r.Verb, r.Resource, d.Requests, d.Sent, d.Received})
		}
	}
	slices.SortFunc(p.Requests, func(a, b RequestCount) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Verb+" "+a.Resource, b.Verb+" "+b.Resource))
	})
	for c := range maps.Values(t.calls) {
		p.Calls = append(p.Calls, *c)
	}
	slices.SortFunc(p.Calls, func(a, b CallCount) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Verb+" "+a.Kind+a.Line, b.Verb+" "+b.Kind+b.Line))
	})
	for w, n := range t.wakes {
		p.Wakes = append(p.Wakes, WakeCount{w, n})
	}
	slices.SortFunc(p.Wakes, func(a, b WakeCount) int {
		return cmp.Or(cmp.Compare(b.Keys, a.Keys), cmp.Compare(a.Controller+a.Kind, b.Controller+b.Kind))
	})
	return p
}

// figure is something that is counted in each phase.
type figure struct {
	name string
	of   func(*Phase) float64
	// most says that it is no sum: the largest value counts.
	most bool
}

// figures are the figures, in the order in which they are shown.
var figures = []figure{
	{name: "reconciles", of: func(p *Phase) float64 { return float64(p.Reconciles) }},
	{name: "calls", of: func(p *Phase) float64 {
		return sum(p.Requests, func(r RequestCount) float64 { return float64(r.Requests) })
	}},
	{name: "bytes", of: func(p *Phase) float64 {
		return sum(p.Requests, func(r RequestCount) float64 { return float64(r.Sent + r.Received) })
	}},
	{name: "items", of: func(p *Phase) float64 { return sum(p.Calls, func(c CallCount) float64 { return float64(c.Items) }) }},
	{name: "watch events", of: func(p *Phase) float64 { return float64(p.WatchEvents) }},
	{name: "keys", of: func(p *Phase) float64 { return float64(p.Keys) }},
	{name: "no-op writes", of: func(p *Phase) float64 { return float64(p.NoOps) }},
	{name: "conflicts", of: func(p *Phase) float64 { return float64(p.Conflicts) }},
	{name: "queue depth", of: func(p *Phase) float64 { return float64(p.QueueDepth) }, most: true},
}

func sum[T any](of []T, value func(T) float64) (all float64) {
	for _, one := range of {
		all += value(one)
	}
	return all
}

// Growth is how a figure grows in a phase.
type Growth struct {
	Phase  string `json:"phase"`
	Figure string `json:"figure"`
	// Values are those at each size; in the phase create all that was done until there were so many objects.
	Values []float64 `json:"values"`
	Fit
	// AtMost says that the fit is that of as many as there would be with one reconcile for each key.
	AtMost bool `json:"atMost,omitempty"`
}

// at returns the sizes at which a phase was measured.
func (r *Report) at(phase string) (sizes []*Size) {
	for _, s := range r.Sizes {
		if s.Phases[phase] != nil && (s.Settled || r.Unsettled == "") {
			sizes = append(sizes, s)
		}
	}
	return sizes
}

// sizes returns the numbers of objects with which a phase was measured.
func (r *Report) sizes(phase string) (numbers []int) {
	for _, s := range r.at(phase) {
		numbers = append(numbers, s.Objects)
	}
	return numbers
}

// last returns a phase at the last size at which it was measured.
func (r *Report) last(phase string) *Phase {
	sizes := r.at(phase)
	return sizes[len(sizes)-1].Phases[phase]
}

// summing returns a function that adds the value of a size to those of the sizes before it.
func summing(of func(*Size) float64) func(*Size) float64 {
	sums := map[int]float64{} // by shard
	return func(s *Size) float64 {
		sums[s.Shard] += of(s)
		return sums[s.Shard]
	}
}

// series returns a value of a phase at each size at which it was measured; in the phase create it is a sum.
func (r *Report) series(phase string, of func(*Phase) float64, most bool) (values []float64) {
	value := func(s *Size) float64 { return of(s.Phases[phase]) }
	if phase == Create && !most {
		value = summing(value)
	}
	for _, s := range r.at(phase) {
		values = append(values, value(s))
	}
	return values
}

// conclude fits the figures and finds what is to be found.
func (r *Report) conclude() {
	r.Growth, r.Findings = []Growth{}, []Finding{}
	for _, phase := range Phases {
		sizes := r.sizes(phase)
		if len(sizes) == 0 {
			continue
		}
		for _, f := range figures {
			values := r.series(phase, f.of, f.most)
			r.Growth = append(r.Growth, Growth{Phase: phase, Figure: f.name, Values: values, Fit: NewFit(sizes, values)})
		}
		r.boundByKeys(r.growth(phase, "reconciles"))
		r.boundByKeys(r.growth(phase, "calls"))
	}
	r.find()
}

// boundByKeys gives a figure the growth that it would have with one reconcile for each key, if that is slower. How many keys are
// merged into one reconcile depends on the moment: where 4 objects took 2 reconciles each, 8 may take 4 each, and none of it is
// the operator's doing. Where there are more reconciles than keys, by retries and timers, they have to speak for themselves.
func (r *Report) boundByKeys(g *Growth) {
	reconciles, keys := r.growth(g.Phase, "reconciles").Values, r.growth(g.Phase, "keys").Values
	bound := make([]float64, len(keys))
	for i := range keys {
		if reconciles[i] == 0 || reconciles[i] > keys[i] {
			return
		}
		bound[i] = g.Values[i] / reconciles[i] * keys[i]
	}
	if f := NewFit(r.sizes(g.Phase), bound); f.Model != "" && (g.Model == "" || f.Model.rank() < g.Model.rank()) {
		g.Fit, g.AtMost = f, true
	}
}

// growth returns that of a figure; nil if it was not measured.
func (r *Report) growth(phase, figure string) *Growth {
	for i := range r.Growth {
		if g := &r.Growth[i]; g.Phase == phase && g.Figure == figure {
			return g
		}
	}
	return nil
}

// WriteJSON writes reports of several variants.
func WriteJSON(w io.Writer, reports []*Report) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(reports)
}
