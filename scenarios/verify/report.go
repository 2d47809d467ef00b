package verify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/report"
)

// outcome is what came of one play.
type outcome struct {
	plan      *Plan
	namespace string
	// reached says that the fault happened; why says why it did not, if that is known.
	reached bool
	why     string
	// done is how many deeds of a drift were done, gone are the objects that were deleted by them.
	// cut says that some were not, because something was wrong already.
	done int
	cut  bool
	gone []types.UID
	// remembered is what a drift is to end in; nil: as it was before, see drift.
	remembered state
	// wrong are the failed operation of the scenario, if one failed, and what the oracles found.
	wrong []string
	// differences from the reference, and the cluster that settled: its objects, and these by their roles.
	differences []difference
	objects     []unstructured.Unstructured
	state       state
	names       randomNames
	journal     *trace.Journal
	// settled is the Seq of the journal when it had settled.
	settled int64
	// children are the objects that the operator made, served those of the scenario that it did something about, in a play without
	// a fault.
	children []*child
	served   []*served
}

// judge compares the outcome with the reference.
func (o *outcome) judge(r *reference) {
	o.differences = nil
	if !o.reached {
		o.wrong = nil // nothing was tried: what went wrong is not the fault's
		return
	}
	o.differences = o.compare(r, o.state)
	for _, d := range o.differences {
		o.wrong = append(o.wrong, d.String())
	}
}

// compare returns how a state differs from what is to be there.
func (o *outcome) compare(r *reference, s state) []difference {
	if o.plan.drift == nil {
		return r.differences(s)
	}
	r = r.with(o.plan.drift)
	if o.remembered != nil {
		r = r.instead(o.remembered)
	}
	all := slices.DeleteFunc(r.differences(s), difference.isHistory)
	if o.done > 0 && o.plan.drift.deeds[o.done-1].then == compareOthers {
		all = slices.DeleteFunc(all, difference.isMore)
	}
	return all
}

// isMore reports whether there are more objects of a role.
func (d difference) isMore() bool {
	want, _ := strconv.Atoi(d.Want)
	is, _ := strconv.Atoi(d.Is)
	return d.Path == "" && is > want
}

// isHistory reports whether a difference is in the status of an object of Kubernetes' own: how often containers were started
// and replaced is told there, also when all is as it was.
func (d difference) isHistory() bool {
	group, _ := schema.ParseGroupVersion(d.role.apiVersion)
	return strings.HasPrefix(d.Path, "status") && (!strings.Contains(group.Group, ".") || strings.HasSuffix(group.Group, ".k8s.io"))
}

// digits differ between plays that go wrong in the same way, such as the number of the last object.
var digits = regexp.MustCompile(`[0-9]+`)

// signature is the same for plays that went wrong in the same way.
func (o *outcome) signature() string {
	var lines []string
	for _, line := range o.wrong {
		lines = append(lines, digits.ReplaceAllString(uidOf.ReplaceAllString(line, "<uid>"), "#"))
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// signatureOf returns a short name for a text.
func signatureOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// groups returns the outcomes that went wrong, those that went wrong in the same way together, in the order of the plans.
func groups(outcomes []*outcome) [][]*outcome {
	var out [][]*outcome
	at := map[string]int{}
	for _, o := range outcomes {
		if o == nil || len(o.wrong) == 0 {
			continue
		}
		i, known := at[o.signature()]
		if !known {
			i = len(out)
			at[o.signature()] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], o)
	}
	return out
}

// Report is the result of an exploration.
type Report struct {
	// Scenario is the name of the scenario, File the file that it was read from.
	Scenario string `json:"scenario"`
	File     string `json:"file,omitempty"`
	// Shard is which of the plans were played.
	Shard report.Shard `json:"shard,omitzero"`
	// Writes is how many writes the operator made without a fault, Kinds are the kinds of the objects that were compared.
	Writes int      `json:"writes"`
	Kinds  []string `json:"kinds"`
	// Plans are the plans with what came of them, ordered by fault and then by place.
	Plans []PlanResult `json:"plans"`
	// Faults counts them for each fault.
	Faults []FaultCount `json:"faults"`
	// Findings are what went wrong.
	Findings []Finding `json:"findings"`
}

// FaultCount counts the plans with one fault.
type FaultCount struct {
	// Name is that of the fault, Says what it does.
	Name string `json:"name"`
	Says string `json:"says"`
	// Plans is how many there were. In Played of them the fault happened, and Wrong of these went wrong at their first
	// play. Needless ones were not played, nor were Skipped ones, or not to their end.
	Plans    int `json:"plans"`
	Played   int `json:"played"`
	Wrong    int `json:"wrong"`
	Needless int `json:"needless"`
	Skipped  int `json:"skipped"`
}

// PlanResult is a plan with what came of it.
type PlanResult struct {
	Fault string `json:"fault"`
	At    string `json:"at"`
	// Result says whether it was played, and Why says why not.
	Result Result `json:"result"`
	Why    string `json:"why,omitempty"`
}

// Result is what came of a plan.
type Result string

// The results.
const (
	// Right: with the fault all was as without.
	Right Result = "right"
	// Wrong: something was different at the first play.
	Wrong Result = "wrong"
	// Needless: it was not played, because it could show nothing that another plan does not.
	Needless Result = "needless"
	// Skipped: it was not played to its end, or its fault did not happen.
	Skipped Result = "skipped"
	// Elsewhere: another shard plays it.
	Elsewhere Result = "elsewhere"
)

// Finding is something that goes wrong with a fault.
type Finding struct {
	// Plan is the first plan that shows it: fault and place.
	Plan string `json:"plan"`
	// Text says it in one sentence.
	Text string `json:"text"`
	// Signature is the same for findings that went wrong in the same way, also in other runs. Known says that it was
	// accepted.
	Signature string `json:"signature"`
	Known     bool   `json:"known,omitempty"`
	// Wrong says what was wrong in the end.
	Wrong []string `json:"wrong"`
	// Also are the other plans that ended in the same way.
	Also []string `json:"also,omitempty"`
	// Times is how often it went wrong in the same way, before it did not or the run was interrupted. Steady says that it did so each time: it is a finding only then.
	Times  int  `json:"times"`
	Steady bool `json:"steady"`
	// Then is what came of the play in which it did not, one line at least; empty if there was none.
	Then []string `json:"then,omitempty"`

	outcome, then *outcome
}

// newFinding returns the finding of plans that ended in the same way.
func newFinding(operator string, group []*outcome) Finding {
	o := group[0]
	f := Finding{
		Plan: o.plan.String(), Signature: signatureOf(o.signature()), Wrong: o.wrong, outcome: o,
		Text: o.plan.sentence(operator) + ". In the end: " + o.wrong[0],
	}
	for _, other := range group[1:] {
		f.Also = append(f.Also, other.plan.String())
	}
	return f
}

// byItself returns the finding of a scenario that settles differently without any fault.
func byItself(unsteady []Difference) Finding {
	f := Finding{
		Plan: "no fault", Steady: true, Times: 1,
		Text: fmt.Sprintf("Without any fault the scenario settled differently in %d plays. Nothing else was explored: there is nothing to compare with. "+
			"If it is random by intent, make it the same each time, by parameters or values", references),
	}
	for _, d := range unsteady {
		f.Wrong = append(f.Wrong, d.String())
	}
	f.Signature = signatureOf(f.Plan)
	return f
}

// sentence says what happened, in the user's words.
func (p *Plan) sentence(operator string) string {
	if p.both != nil {
		return p.both[0].sentence(operator) + ", and in the same play " + p.both[1].sentence("it")
	}
	k, at := kindNamed(p.Name), p.At
	if k.events {
		at = "the event " + at
	}
	return k.sentence(operator, at)
}

// record records what came of the plans. Outcomes are those of the plans that this shard has to play, in order; unplayed is the
// result of those without one.
func (r *Report) record(plans []*Plan, outcomes []*outcome, unplayed PlanResult) {
	for _, p := range plans {
		result := PlanResult{Fault: p.Name, At: p.At}
		switch {
		case p.Needless != "":
			result.Result, result.Why = Needless, p.Needless
		case !p.isOf(r.Shard):
			result.Result, result.Why = Elsewhere, "another shard plays it"
		default:
			result.Result, result.Why = unplayed.Result, unplayed.Why
			if outcomes[0] != nil {
				result.Result, result.Why = outcomes[0].result()
			}
			outcomes = outcomes[1:]
		}
		r.Plans = append(r.Plans, result)
	}
	r.count()
}

// count counts the plans for each fault.
func (r *Report) count() {
	of := map[string]*FaultCount{}
	for _, p := range r.Plans {
		c := of[p.Fault]
		if c == nil {
			k := kindNamed(p.Fault)
			c = &FaultCount{Name: k.name, Says: k.sentence("the operator", k.place())}
			of[p.Fault] = c
		}
		c.Plans++
		switch p.Result {
		case Needless:
			c.Needless++
		case Skipped:
			c.Skipped++
		case Wrong:
			c.Wrong++
			c.Played++
		case Right:
			c.Played++
		}
	}
	r.Faults = nil
	for _, name := range append(FaultNames(), pairName) {
		if c := of[name]; c != nil {
			r.Faults = append(r.Faults, *c)
		}
	}
}

// result returns what came of a play.
func (o *outcome) result() (result Result, why string) {
	switch {
	case o.why != "":
		return Skipped, o.why
	case !o.reached:
		return Skipped, "the fault did not happen: the operator did something else that time"
	case len(o.wrong) > 0:
		return Wrong, ""
	}
	return Right, ""
}

// lines says what came of a play, in one line at least.
func (o *outcome) lines() []string {
	switch result, why := o.result(); result {
	case Wrong:
		return o.wrong
	case Right:
		return []string{"all was as without the fault"}
	default:
		return []string{why}
	}
}

// Accept marks the findings that another report has, by their signatures.
func (r *Report) Accept(known *Report) {
	for i, f := range r.Findings {
		r.Findings[i].Known = slices.ContainsFunc(known.Findings, func(k Finding) bool { return k.Signature == f.Signature })
	}
}

// New returns the steady findings that are not known.
func (r *Report) New() []Finding {
	return slices.DeleteFunc(r.Steady(), func(f Finding) bool { return f.Known })
}

// Run returns the report as a run of scenarios, one for each plan, for the writers of those.
func (r *Report) Run() *report.Run {
	run := &report.Run{Name: "verify " + r.Scenario}
	found := map[string]*Finding{}
	for i := range r.Findings {
		f := &r.Findings[i]
		for _, plan := range append([]string{f.Plan}, f.Also...) {
			found[plan] = f
		}
	}
	plans := r.Plans
	if len(plans) == 0 && len(r.Findings) > 0 { // it goes wrong by itself
		plans = []PlanResult{{Fault: r.Findings[0].Plan}}
	}
	for _, p := range plans {
		name := strings.TrimSuffix((&Plan{Name: p.Fault, At: p.At}).String(), " at ")
		test := &report.Test{Name: name, Folder: r.Scenario + ": " + p.Fault, File: r.File, Skipped: p.Why != "", SkipReason: p.Why}
		switch f := found[name]; {
		case f == nil:
		case !f.Steady:
			test.Notes = append(test.Notes, "not steady: "+f.Text)
		case f.Known:
			test.Notes = append(test.Notes, "known: "+f.Text)
		default:
			test.Findings = append(test.Findings, report.Finding{Oracle: "verify", Message: f.Text, Details: f.Wrong})
		}
		run.Tests = append(run.Tests, test)
	}
	return run
}

// Steady returns the findings that went wrong each time.
func (r *Report) Steady() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return !f.Steady })
}

// shownWrong is how many lines of what was wrong the text has of each finding.
const shownWrong = 8

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "scenario %s: %d writes without a fault, %d plans\n", r.Scenario, r.Writes, len(r.Plans))
	if r.Shard.Count > 0 {
		fmt.Fprintf(&b, "shard %s: the others play the rest\n", r.Shard)
	}
	fmt.Fprintf(&b, "compared: %s\n\n", cmp.Or(strings.Join(r.Kinds, ", "), "nothing, since nothing is left in the end"))
	fmt.Fprintf(&b, "  %-13s %6s %6s %6s %9s %8s\n", "fault", "plans", "played", "wrong", "needless", "skipped")
	for i, f := range r.Faults {
		fmt.Fprintf(&b, "%c %-13s %6d %6d %6d %9d %8d   %s\n", 'a'+rune(i), f.Name, f.Plans, f.Played, f.Wrong, f.Needless, f.Skipped, f.Says)
	}
	r.writeMatrix(&b)
	for i, f := range r.Steady() {
		known := ""
		if f.Known {
			known = "(known) "
		}
		fmt.Fprintf(&b, "\n%d. %s%s\n", i+1, known, f.Text)
		for i, wrong := range f.Wrong {
			if i == shownWrong {
				fmt.Fprintf(&b, "   - and %d more: see --output json\n", len(f.Wrong)-i)
				break
			}
			fmt.Fprintf(&b, "   - %s\n", wrong)
		}
		if len(f.Also) > 0 {
			fmt.Fprintf(&b, "   also: %s\n", strings.Join(f.Also, "; "))
		}
	}
	if n := len(r.Findings) - len(r.Steady()); n > 0 {
		fmt.Fprintf(&b, "\nnot steady or not confirmed, and so no finding:\n")
		for _, f := range r.Findings {
			if !f.Steady {
				fmt.Fprintf(&b, "   %s: %d of %d times. %s\n", f.Plan, f.Times, confirmations, f.Text)
				for _, then := range f.Then {
					fmt.Fprintf(&b, "      the next time: %s\n", then)
				}
			}
		}
	}
	fmt.Fprintf(&b, "\n%s\n", r.Summary())
	_, err := io.WriteString(w, b.String())
	return err
}

// Summary says how many findings there are, and how many plans show nothing, since they were not played to their end.
func (r *Report) Summary() string {
	found, skipped := len(r.Steady()), 0
	for _, f := range r.Faults {
		skipped += f.Skipped
	}
	text := fmt.Sprintf("%d findings", found)
	if found == 1 {
		text = "1 finding"
	}
	if known := found - len(r.New()); known > 0 {
		text += fmt.Sprintf(", %d known", known)
	}
	if skipped > 0 {
		text += fmt.Sprintf("; %d of %d plans skipped", skipped, len(r.Plans))
	}
	return text
}

// marks are what the table has for each result.
var marks = map[Result]string{Right: ".", Wrong: "X", Needless: "-", Skipped: "?", Elsewhere: "/"}

// writeMatrix writes a table: a line for each write and event, a column for each fault.
func (r *Report) writeMatrix(b *strings.Builder) {
	if len(r.Plans) == 0 {
		return
	}
	places := r.Places()
	legend := ". right, X wrong, - needless, ? skipped"
	if r.Shard.Count > 0 {
		legend += ", / another shard"
	}
	wide := len(legend)
	for _, p := range places {
		wide = max(wide, len(p.Name))
	}
	fmt.Fprintf(b, "\n%*s ", -wide, legend)
	for i := range r.Faults {
		fmt.Fprintf(b, " %c", 'a'+rune(i))
	}
	for _, p := range places {
		fmt.Fprintf(b, "\n%*s ", -wide, p.Name)
		for _, c := range p.Cells {
			fmt.Fprintf(b, " %1s", c.Mark)
		}
	}
	b.WriteByte('\n')
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
