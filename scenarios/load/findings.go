package load

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Finding is something that grows faster than it has to, or that is done for nothing.
type Finding struct {
	// Sort is one of the constants.
	Sort Sort `json:"sort"`
	// Phase is the phase in which it was seen best.
	Phase string `json:"phase"`
	// Text says what, and from which call it comes; Hint what helps.
	Text string `json:"text"`
	Hint string `json:"hint"`
}

// Sort is the sort of a finding.
type Sort string

// The sorts of findings.
const (
	// ListsAll lists all objects of a kind at the API server in each reconcile.
	ListsAll Sort = "lists all"
	// NoIndex lists all objects of a kind from the cache in each reconcile.
	NoIndex Sort = "no index"
	// WakesAll puts all keys into the queue for each watch event.
	WakesAll Sort = "wakes all"
	// WritesAgain writes in each reconcile although nothing has changed.
	WritesAgain Sort = "writes again"
	// Restless does not come to rest.
	Restless Sort = "restless"
	// Grows is a figure that grows faster than the number of objects, without a cause that is known.
	Grows Sort = "grows"
)

// occasion is how a sentence says what a phase is.
var occasion = map[string]string{
	Create: "when they are made", Change: "when some are changed", Relist: "when all is listed anew", Restart: "when it is started again",
}

// find finds what is to be found.
func (r *Report) find() {
	if i := slices.IndexFunc(r.Sizes, func(s *Size) bool { return !s.Settled }); r.Unsettled != "" && i >= 0 {
		r.Findings = append(r.Findings, Finding{
			Sort: Restless, Phase: r.Sizes[i].last(), Text: r.Unsettled,
			Hint: "write only what differs, and let one controller alone decide a field; one that is only slow has more time with --patience",
		})
	}
	r.findLists()
	r.findWakes()
	r.findWrites()
	r.findGrowth()
}

// occasions returns how often the operator had something to do in a phase with so many objects: once for each, or for each change.
func (r *Report) occasions(phase string, objects int) float64 {
	if phase == Change {
		return float64(r.Changes)
	}
	return float64(objects)
}

// often is the share of all that has to have happened for it to be said that it happens each time.
const often = 0.5

// divided returns values divided by others; 0 where those are.
func divided(values, by []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		if by[i] > 0 {
			out[i] = v / by[i]
		}
	}
	return out
}

// lookingPhases are the phases in the order in which findings are looked for: first those in which each object has one reconcile.
var lookingPhases = []string{Relist, Restart, Change, Create}

// findLists finds lists of all objects in each reconcile.
func (r *Report) findLists() {
	found := map[Call]bool{}
	for _, phase := range lookingPhases {
		sizes := r.sizes(phase)
		if len(sizes) < fewestSizes {
			continue
		}
		n := float64(sizes[len(sizes)-1])
		for _, c := range r.last(phase).Calls {
			of := func(p *Phase) (CallCount, bool) {
				i := slices.IndexFunc(p.Calls, func(o CallCount) bool { return o.Call == c.Call })
				if i < 0 {
					return CallCount{}, false
				}
				return p.Calls[i], true
			}
			items := r.series(phase, func(p *Phase) float64 { c, _ := of(p); return float64(c.Items) }, false)
			calls := r.series(phase, func(p *Phase) float64 { c, _ := of(p); return float64(c.Calls) }, false)
			last := len(items) - 1
			grows := NewFit(sizes, divided(items, calls)).Model.rank() >= Linear.rank() || float64(c.Whole) > often*float64(c.Calls)
			each := r.occasions(phase, sizes[last])
			if found[c.Call] || c.Outside || c.Verb != trace.VerbList || !grows || calls[last] < often*each || items[last] < often*each*n {
				continue
			}
			found[c.Call] = true
			f := Finding{Sort: ListsAll, Phase: phase, Hint: "list only its own, by a label or a field, or read from the cache"}
			from := "at the API server"
			if c.From == trace.Cache {
				from = "from its cache"
				f.Sort, f.Hint = NoIndex, "each list copies all of them: an index (IndexField and MatchingFields) gives the few that are needed"
			}
			f.Text = fmt.Sprintf("lists all of kind %s %s at each reconcile%s: %s objects %s with %s",
				c.Kind, from, at(c.Line), product(calls[last], items[last]), occasion[phase], ofKind(int(n), r.Kind))
			r.Findings = append(r.Findings, f)
		}
	}
}

// findWakes finds watch events that wake all keys.
func (r *Report) findWakes() {
	found := map[Wake]bool{}
	for _, phase := range lookingPhases {
		sizes := r.sizes(phase)
		if len(sizes) == 0 {
			continue
		}
		n := float64(sizes[len(sizes)-1])
		for _, w := range r.last(phase).Wakes {
			keys := r.series(phase, func(p *Phase) float64 {
				return sum(p.Wakes, func(o WakeCount) float64 {
					if o.Wake != w.Wake {
						return 0
					}
					return float64(o.Keys)
				})
			}, false)
			of := make([]float64, len(sizes)) // how often there was something to do
			for i, size := range sizes {
				of[i] = r.occasions(phase, size)
			}
			each, last := of[len(of)-1], keys[len(keys)-1]
			if found[w.Wake] || NewFit(sizes, divided(keys, of)).Model.rank() < Linear.rank() || last < often*each*n {
				continue
			}
			found[w.Wake] = true
			r.Findings = append(r.Findings, Finding{
				Sort: WakesAll, Phase: phase, Hint: "map an event to the objects that it concerns, or leave it out by a predicate",
				Text: fmt.Sprintf("an event of a %s puts all objects into the queue of controller %s: %s keys %s with %s",
					w.Kind, w.Controller, product(each, last), occasion[phase], ofKind(int(n), r.Kind)),
			})
		}
	}
}

// findWrites finds writes in phases in which nothing has changed.
func (r *Report) findWrites() {
	found := map[Call]bool{}
	for _, phase := range []string{Relist, Restart} {
		sizes := r.sizes(phase)
		if len(sizes) < fewestSizes {
			continue
		}
		n := sizes[len(sizes)-1]
		for _, c := range r.last(phase).Calls {
			done, others := c.Calls-c.Failed, r.last(phase).Others
			if found[c.Call] || !trace.IsWriteVerb(c.Verb) || float64(done-others) < often*float64(n) {
				continue // others' changes may be its reason, such as pods that have become ready
			}
			found[c.Call] = true
			what := fmt.Sprintf("%s changed something", number(float64(done-c.NoOps)))
			if c.NoOps == done {
				what = "none changed anything"
			}
			occasion, why := occasion[phase], "although nobody has changed anything"
			if others > 0 {
				why = fmt.Sprintf("although others have changed only %s", number(float64(others)))
			}
			r.Findings = append(r.Findings, Finding{
				Sort: WritesAgain, Phase: phase, Hint: "compare with what is there, and write only what differs",
				Text: fmt.Sprintf("writes %s: %s of %s %s%s %s with %s; %s",
					why, number(float64(done)), c.Verb, c.Kind, at(c.Line), occasion, ofKind(n, r.Kind), what),
			})
		}
	}
}

// fast reports whether a figure grows faster than it has to.
func (g *Growth) fast() bool {
	if g.Phase == Change {
		return g.Model.rank() > Constant.rank()
	}
	return g.Model.rank() > Linearithmic.rank()
}

// findGrowth finds figures that grow too fast, one for each phase, if nothing else was found.
func (r *Report) findGrowth() {
	if len(r.Findings) > 0 {
		return // it shows in all phases, and a figure in another one has the same cause
	}
	known := map[string]bool{} // phases
	for _, g := range r.Growth {
		of := map[string]string{"reconciles": "reconciles", "calls": "calls at the API server"}[g.Figure]
		sizes := r.sizes(g.Phase)
		n, last := sizes[len(sizes)-1], g.Values[len(g.Values)-1]
		// How many keys are merged into one reconcile differs: a few more are no growth.
		if of == "" || known[g.Phase] || !g.fast() || last < often*r.occasions(g.Phase, n)*float64(n) {
			continue
		}
		known[g.Phase] = true
		text := fmt.Sprintf("%s grow like %s: %s %s with %s", of, g.Model, number(last), occasion[g.Phase], ofKind(n, r.Kind))
		if requests := r.last(g.Phase).Requests; g.Figure == "calls" && len(requests) > 0 {
			text += fmt.Sprintf("; most of them are %s %s (%s)", requests[0].Verb, requests[0].Resource, number(float64(requests[0].Requests)))
		}
		r.Findings = append(r.Findings, Finding{Sort: Grows, Phase: g.Phase, Text: text, Hint: "the journal of 'operator-lab run' says why each reconcile ran"})
	}
}

// product returns a number of times and what they come to, as 64 × 64 = 4,096.
func product(times, all float64) string {
	format := "%s × %s = %s"
	if math.Mod(all, times) != 0 {
		format = "%s × about %s, in all %s" // it is not the same each time
	}
	return fmt.Sprintf(format, number(times), number(math.Round(all/times)), number(all))
}

func at(line string) string {
	if line == "" {
		return ""
	}
	return " (" + line + ")"
}

// ofKind returns a number of objects of a kind.
func ofKind(n int, kind string) string {
	if n != 1 {
		kind += "s"
	}
	return number(float64(n)) + " " + kind
}

// number returns a number as people write it: 4,096.
func number(v float64) string {
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	if v != 0 && v < 10 && v != float64(int(v)) {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
