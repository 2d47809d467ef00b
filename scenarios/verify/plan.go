package verify

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/operator-lab/operator-lab/sandbox/api/v1alpha1"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Plan is one play of the scenario with one fault.
type Plan struct {
	// Name is the name of the fault, one of [FaultNames].
	Name string
	// At says where it happens, such as "create ConfigMap web".
	At string
	// Fault is the fault.
	Fault v1alpha1.FaultSpec
	// atRest says that it happens when all has settled. Drift is then what somebody does instead of the fault; nil: nothing.
	atRest bool
	drift  *drift
	// both are the plans whose faults happen in one play; nil: there is one fault.
	both []*Plan
	// Needless says why it is not played: it could show nothing, or nothing that another plan does not.
	Needless string
}

// String is the name of the plan and the place of its fault.
func (p *Plan) String() string { return p.Name + " at " + p.At }

// pairName is the name of plans with two faults.
const pairName = "pair"

// pairsOf returns up to n plans with two faults each, of plans in which nothing went wrong, chosen by a seed. Only one of the two may
// be an older view: it lasts until the operator has no more to do.
func pairsOf(plans []*Plan, outcomes []*outcome, n int, seed int64) []*Plan {
	var right []*Plan
	for i, p := range plans {
		if o := outcomes[i]; !p.atRest && o != nil && o.reached && len(o.wrong) == 0 {
			right = append(right, p)
		}
	}
	random := rand.New(rand.NewPCG(uint64(seed), 2))
	var pairs []*Plan
	for _, i := range random.Perm(len(right) * len(right)) {
		i, j := i/len(right), i%len(right)
		if i >= j {
			continue // each two once
		}
		first, second := right[i], right[j]
		if second.Fault.Stale != nil {
			first, second = second, first
		}
		if len(pairs) == n {
			break
		}
		if second.Fault.Stale != nil {
			continue
		}
		pairs = append(pairs, &Plan{Name: pairName, At: first.String() + " and " + second.String(), Fault: first.Fault, both: []*Plan{first, second}})
	}
	return pairs
}

// kindOfFault is a fault that can happen at writes, at watch events, or when all has settled.
type kindOfFault struct {
	name string
	// says what happens, with places for the operator and for the write, event or object.
	says string
	// fault is the fault without its match.
	fault v1alpha1.FaultSpec
	// events says that it happens at watch events.
	events bool
	// waits says that the operator waits most of the time: client-go does for a second or more before it lists anew.
	waits bool
	// atRest says that it happens when all has settled; drifts returns what somebody does then, of which an operator with a stale
	// fault hears nothing before all is done. Default: the fault happens, once.
	atRest bool
	drifts func(r *reference) []drift
	// at chooses among the writes or events by their index; unless says why it does not choose the others. Default: all.
	at     func(r *reference, i int) bool
	unless string
}

// sentence says what happens, to which operator and where.
func (k *kindOfFault) sentence(operator, at string) string {
	if k.atRest && k.drifts == nil {
		return fmt.Sprintf(k.says, operator)
	}
	return fmt.Sprintf(k.says, operator, at)
}

// waits reports whether the operator waits for most of the play.
func (p *Plan) waits() bool {
	return kindNamed(p.Name).waits || slices.ContainsFunc(p.both, (*Plan).waits)
}

// place says where it happens.
func (k *kindOfFault) place() string {
	switch {
	case k.events:
		return "the event"
	case k.atRest:
		return "an object"
	case k.name == pairName:
		return "two places"
	}
	return "the write"
}

// faultKinds are in the order in which they are explored: what found most first.
func faultKinds() []kindOfFault {
	api := func(reply v1alpha1.APIReply) v1alpha1.FaultSpec {
		return v1alpha1.FaultSpec{API: &v1alpha1.APIFault{Reply: reply}}
	}
	return []kindOfFault{
		{name: "crash-after", says: "%s died right after %s was carried out", fault: v1alpha1.FaultSpec{Crash: &v1alpha1.CrashFault{When: v1alpha1.After}}},
		{name: "crash-before", says: "%s died right before %s was sent", fault: v1alpha1.FaultSpec{Crash: &v1alpha1.CrashFault{When: v1alpha1.Before}}},
		{
			name: "stale-restart", says: "%s died right after %s was carried out, and started again with lists from before it",
			fault: v1alpha1.FaultSpec{Stale: &v1alpha1.StaleFault{Restart: true}},
		},
		{
			name: "stale-view", says: "%s saw this kind as it was before %s, until it had no more to do", events: true,
			fault: v1alpha1.FaultSpec{Stale: &v1alpha1.StaleFault{}},
		},
		{
			name: "time-travel", says: "%s acted on %s, died after its next write, and started again with lists from before it", events: true,
			fault: v1alpha1.FaultSpec{Stale: &v1alpha1.StaleFault{Restart: true}}, at: (*reference).byOthers, unless: "stale-restart does the same at the operator's own write",
		},
		{name: "lost-reply", says: "%s got no answer to %s, which was carried out", fault: api(v1alpha1.ReplyLost)},
		{name: "error", says: "%s got an internal error for %s", fault: api(v1alpha1.ReplyInternalError)},
		{name: "timeout", says: "%s got no answer to %s, which was not carried out", fault: api(v1alpha1.ReplyTimeout)},
		{name: "conflict", says: "%s got a conflict for %s", fault: api(v1alpha1.ReplyConflict), at: (*reference).canConflict, unless: "it cannot conflict"},
		{
			name: "missed-event", says: "%s never heard of %s, only of the next change of that object", events: true,
			fault: v1alpha1.FaultSpec{Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchCoalesce}}, at: (*reference).followed, unless: "nobody else changes the object later, so that it would never be heard of",
		},
		{
			name: "missed-states", says: "%s heard of nothing of this kind from %s on until it had no more to do, and then listed anew", events: true, waits: true,
			fault: v1alpha1.FaultSpec{Stale: &v1alpha1.StaleFault{Relist: true}}, at: (*reference).changesAgain, unless: "the object does not change again",
		},
		{
			name: "gone-watch", says: "%s lost its watch with 410 Gone after %s, and heard of all objects once more", events: true, waits: true,
			fault: v1alpha1.FaultSpec{Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchGone}},
		},
		{
			name: "cut-watch", says: "%s lost its watch after %s", events: true,
			fault: v1alpha1.FaultSpec{Watch: &v1alpha1.WatchFault{Action: v1alpha1.WatchCut}},
		},
		{
			name: "restart", says: "%s was started again when all had settled", atRest: true,
			fault: v1alpha1.FaultSpec{Crash: &v1alpha1.CrashFault{}},
		},
		{name: "delete-child", says: "%s had settled, and somebody deleted %s", atRest: true, drifts: (*reference).deletes},
		{name: "change-child", says: "%s had settled, and somebody changed %s", atRest: true, drifts: (*reference).changes},
		{name: "remake", says: "%s had settled, and somebody deleted %s and made it again", atRest: true, drifts: (*reference).remakes},
		{
			name: "missed-remake", says: "%s had settled, and somebody deleted %s and made it again; it heard of neither, and then listed anew", waits: true,
			fault: v1alpha1.FaultSpec{Stale: &v1alpha1.StaleFault{Relist: true}}, atRest: true, drifts: (*reference).remakes,
		},
		{name: "change-back", says: "%s had settled, and somebody changed %s, let it settle, and changed that back", atRest: true, drifts: (*reference).changesBack},
		{name: "spoil", says: "%s had settled, and somebody gave %s a value that makes no sense, let it settle, and gave it the old one again", atRest: true, drifts: (*reference).spoils},
		{
			name: "change-or-make", says: "%s had settled, and somebody changed %s, which is to come to the same as making the object so",
			atRest: true, drifts: (*reference).changesOrMakes,
		},
		{name: "beside", says: "%s had settled, and somebody made another object like %s beside it, let it settle, and deleted that", atRest: true, drifts: (*reference).besides},
		{name: "label-child", says: "%s had settled, and somebody put a label on %s", atRest: true, drifts: (*reference).labels},
	}
}

// FaultNames are the names of the faults that are explored.
func FaultNames() []string {
	var names []string
	for _, k := range faultKinds() {
		names = append(names, k.name)
	}
	return names
}

// kindNamed returns the fault of a name; of a pair, one that says so.
func kindNamed(name string) kindOfFault {
	all := faultKinds()
	if i := slices.IndexFunc(all, func(k kindOfFault) bool { return k.name == name }); i >= 0 {
		return all[i]
	}
	return kindOfFault{name: name, says: "%s met with two faults in one play at %s"}
}

// canConflict chooses writes that can.
func (r *reference) canConflict(i int) bool {
	return r.writes[i].Verb == trace.VerbUpdate || r.writes[i].Verb == trace.VerbPatch
}

// byOthers chooses events that the operator did not cause: after those that it did, it had written already.
func (r *reference) byOthers(i int) bool { return !r.own[r.events[i].Seq] }

// changesAgain chooses events of objects that change again later: else nothing can be missed.
func (r *reference) changesAgain(i int) bool {
	return slices.ContainsFunc(r.events[i+1:], func(e *trace.Event) bool { return e.Object.UID == r.events[i].Object.UID })
}

// followed chooses events after which somebody else changes the same object: that the operator hears of in any case. What
// it writes itself might be what the missed event had woken it for.
func (r *reference) followed(i int) bool {
	e := r.events[i]
	for _, next := range r.events[i+1:] {
		if next.Object.UID == e.Object.UID && next.Verb != trace.Deleted {
			return e.Verb != trace.Deleted && !r.own[next.Seq]
		}
	}
	return false
}

// plansOf returns the plans for all writes and events of a play without faults. Writes and events that a fault cannot
// tell from an earlier one are numbered.
func plansOf(r *reference, only []string) []*Plan {
	var plans []*Plan
	for _, k := range faultKinds() {
		if len(only) > 0 && !slices.Contains(only, k.name) {
			continue
		}
		if k.atRest {
			plans = append(plans, restPlans(r, k)...)
			continue
		}
		all := r.writes
		if k.events {
			all = r.events
		}
		seen := map[string]int32{}
		for i, e := range all {
			match := r.matchOf(e)
			at := strings.TrimSpace(e.Verb + " " + objectText(e.Object.Kind, match))
			seen[at]++
			match.Nth = seen[at]
			if seen[at] > 1 {
				at += fmt.Sprintf(" (%d)", seen[at])
			}
			p := &Plan{Name: k.name, At: at, Fault: k.fault}
			p.Fault.Match = match
			if k.at != nil && !k.at(r, i) {
				p.Needless = k.unless
			}
			plans = append(plans, p)
		}
	}
	return plans
}

// matchOf returns a match for a write or an event.
func (r *reference) matchOf(e *trace.Event) *v1alpha1.FaultMatch {
	of := r.names.of(role{e.Object.APIVersion, e.Object.Kind, e.Object.Name})
	m := &v1alpha1.FaultMatch{Verbs: []string{e.Verb}, Kind: of.kind, Name: of.name}
	if prefix := generateName(e); prefix != "" {
		m.Name = prefix + "*"
	}
	if e.Kind == trace.KindCall {
		m.Subresource = e.Object.Subresource
		if m.Subresource == "" {
			m.Subresource = "-"
		}
	}
	return m
}

func objectText(kind string, m *v1alpha1.FaultMatch) string {
	text := kind + " " + m.Name
	if m.Subresource != "" && m.Subresource != "-" {
		text += "/" + m.Subresource
	}
	return text
}

// generateName returns the generateName of an object that has one and whose name begins with it.
func generateName(e *trace.Event) string {
	var object struct {
		Metadata struct{ GenerateName string }
	}
	if json.Unmarshal(e.After, &object) != nil || !strings.HasPrefix(e.Object.Name, object.Metadata.GenerateName) {
		return ""
	}
	return object.Metadata.GenerateName
}
