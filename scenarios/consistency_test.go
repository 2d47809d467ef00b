package scenarios_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/sandbox/lab"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// compared counts what was compared, and keeps what differed.
type compared struct {
	// journals, numbers and sentences are how many were compared; facts are all else: authors, conditions, what is there.
	journals, numbers, sentences, facts int
	// wrong says of each difference where it is.
	wrong []string
}

// differ compares what is told somewhere with what it should be.
func (c *compared) differ(where string, want, got any) {
	switch want := want.(type) {
	case int, int64:
		c.numbers++
	case []int:
		c.numbers += len(want)
	case sentence:
		c.sentences++
	default:
		c.facts++
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		c.wrong = append(c.wrong, fmt.Sprintf("%s: want %v, got %v", where, want, got))
	}
}

// sentence is a text that is compared as a whole.
type sentence string

func (c *compared) String() string {
	return fmt.Sprintf("%d journals: %d numbers, %d sentences and %d other facts compared, %d differ",
		c.journals, c.numbers, c.sentences, c.facts, len(c.wrong))
}

// consistent checks that all that is told of a journal is the same: on the screen, in plain text, on the page, by
// 'kubectl get loops', and by what the events of the journal themselves say of the API server's answers. With -v it tells
// how much it compared.
func consistent(t *testing.T, files ...string) {
	t.Helper()
	var all compared
	for _, file := range files {
		before := len(all.wrong)
		all.compare(t, file)
		for _, difference := range all.wrong[before:] {
			t.Errorf("%s: %s", filepath.Base(file), difference)
		}
	}
	t.Log(&all)
}

// compare compares what is told of a journal in a file.
func (c *compared) compare(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	journal := journalOf(t, text)
	c.journal(journal, stateOf(journal), recountOf(journal.Since(0)))
}

// tally counts what the events of a journal say, with no help of the code that is checked.
type tally struct{ reconciles, errors, writes, noOps, conflicts, cache, server, watched, merged, dropped int }

func (n *tally) count(e *trace.Event) {
	write := slices.Contains([]string{trace.VerbCreate, trace.VerbUpdate, trace.VerbPatch, trace.VerbApply, trace.VerbDelete, trace.VerbDeleteAll}, e.Verb)
	switch e.Kind {
	case trace.KindWatch:
		n.watched++
	case trace.KindMerge:
		n.merged++
	case trace.KindDrop:
		n.dropped++
	case trace.KindEnd:
		n.reconciles++
		if e.Outcome == trace.OutcomeError || e.Outcome == trace.OutcomePanic || e.Outcome == trace.OutcomeTerminal {
			n.errors++
		}
	case trace.KindCall:
		switch {
		case write && e.Error == "":
			n.writes++
			if e.NoOp {
				n.noOps++
			}
		case e.Error != "" && e.Reason == "Conflict":
			n.conflicts++
		case write, e.Error != "" && e.Reason != "NotFound":
		case e.Source == trace.Cache:
			n.cache++
		case e.Source == trace.Server:
			n.server++
		}
	}
}

// recount has the tallies of a journal.
type recount struct {
	byOperator   map[string]*tally
	byController map[trace.ControllerKey]*tally
	byKey        map[trace.QueueKey]*tally
	byReconcile  map[int64]*tally
	ended        map[int64]bool                  // reconciles
	stored       map[trace.Ref]map[string]string // who wrote which resourceVersion of an object
	newest       map[trace.Ref]*trace.Event      // the newest watch event of an object, if no write ended it since
	gone         map[trace.Ref]string            // the UIDs of objects that were gone when a deletion was answered
}

func object(r trace.Ref) trace.Ref {
	return trace.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

func recountOf(events []*trace.Event) recount {
	n := recount{
		map[string]*tally{},
		map[trace.ControllerKey]*tally{},
		map[trace.QueueKey]*tally{},
		map[int64]*tally{},
		map[int64]bool{},
		map[trace.Ref]map[string]string{},
		map[trace.Ref]*trace.Event{},
		map[trace.Ref]string{},
	}
	ending := map[trace.Ref]string{} // UIDs of objects that somebody deletes
	for _, e := range events {
		if e.Via == trace.ViaRecorder || e.Via == trace.ViaDryRun {
			continue
		}
		if e.Operator != "" {
			count(n.byOperator, e.Operator, e)
			count(n.byController, trace.ControllerKey{Operator: e.Operator, Controller: e.Controller}, e)
			count(n.byReconcile, e.Reconcile, e)
			if !e.Key.IsZero() {
				count(n.byKey, trace.QueueKey{Operator: e.Operator, Controller: e.Controller, Key: e.Key}, e)
			}
		}
		ref := object(e.Object)
		switch {
		case e.Kind == trace.KindEnd:
			n.ended[e.Reconcile] = true
		case e.Kind == trace.KindWatch && ending[ref] != e.Object.UID:
			n.newest[ref] = e
			if n.gone[ref] != e.Object.UID {
				delete(n.gone, ref) // there is another one
			}
		case e.Kind == trace.KindCall && e.IsWrite() && e.Error == "" && !e.NoOp:
			if e.Verb == trace.VerbDelete || trace.ReadMeta(e.After).Deleting {
				delete(n.newest, ref) // it may have ended the object, before watches tell of what came earlier
				ending[ref] = e.Object.UID
			}
			switch deleting := trace.ReadMeta(e.After).Deleting; {
			case e.Verb == trace.VerbDelete && e.Object.UID != "" && (e.ResourceVersion == "" || len(e.After) > 0 && !deleting):
				n.gone[ref] = e.Object.UID // the answer is a Status, or the object as it was
			case n.gone[ref] != e.Object.UID:
				delete(n.gone, ref)
			}
			if n.stored[ref] == nil {
				n.stored[ref] = map[string]string{}
			}
			if !ended(e) {
				n.stored[ref][e.ResourceVersion] = e.Actor
			}
		}
	}
	return n
}

// count adds an event to one of the tallies.
func count[K comparable](tallies map[K]*tally, of K, e *trace.Event) {
	if tallies[of] == nil {
		tallies[of] = &tally{}
	}
	tallies[of].count(e)
}

// ended reports whether a write removed the last finalizer of an object that is being deleted: the answer then has the
// version of the write before it.
func ended(e *trace.Event) bool {
	var o metav1.PartialObjectMetadata
	return json.Unmarshal(e.After, &o) == nil && o.DeletionTimestamp != nil && len(o.Finalizers) == 0 &&
		ptr.Deref(o.DeletionGracePeriodSeconds, 0) == 0 && o.Kind != "Namespace"
}

// stateOf returns what is known at the end of a journal.
func stateOf(journal *trace.Journal) *trace.State {
	timeline := trace.NewTimeline(journal)
	timeline.Update()
	return timeline.Tip()
}

// journal compares all that is told of a journal with what is known at its end, and with what its events say.
func (c *compared) journal(journal *trace.Journal, state *trace.State, want recount) {
	c.journals++
	differ := c.differ
	plain := map[trace.Language]string{}
	for _, l := range []trace.Language{trace.English, trace.Japanese} {
		var out bytes.Buffer
		p := trace.NewPrinter(&out, journal, trace.PrintOptions{Language: l, Width: 4000})
		if err := p.Update(); err != nil {
			differ("plain text", nil, err)
		}
		plain[l] = out.String()
		out.Reset()
		if err := p.Summary(); err != nil {
			differ("summary", nil, err)
		}
		differ("reconciles in plain text, "+string(l), len(want.ended), len(numbered.FindAllString(plain[l], -1)))
		lines(differ, plain[l], l, state)
		summaries(differ, out.String(), l, want)
	}
	for _, l := range []trace.Language{trace.English, trace.Japanese} {
		var page bytes.Buffer
		if err := trace.WriteHTML(&page, journal, trace.HTMLOptions{Language: l}); err != nil {
			differ("page", nil, err)
		}
		pages(differ, page.String(), l, want, state)
	}
	loops(differ, journal, want, state)
	authors(differ, journal, want, state)
	objects(differ, want, state)
	screens(differ, journal, want, state)
}

type differing func(where string, want, got any)

// lines compares what the plain text says of each reconcile when it ends with what is known of it in the end.
func lines(differ differing, text string, l trace.Language, state *trace.State) {
	for _, block := range regexp.MustCompile(`(?m)^#.*\n(?: .*\n)*`).FindAllString(text, -1) {
		number, said, _ := strings.Cut(block, " ")
		id, _ := strconv.ParseInt(number[1:], 10, 64)
		reconcile := state.Reconcile(id)
		if reconcile == nil || strings.TrimSpace(said) == "" {
			continue
		}
		for _, want := range []string{trace.ResultText(reconcile, l), state.WokenText(reconcile, l)} {
			got := want
			if !strings.Contains(squeezed(said), squeezed(want)) {
				got = said
			}
			differ(fmt.Sprintf("#%d in plain text, %s", id, l), sentence(want), got)
		}
	}
}

var (
	numbered = regexp.MustCompile(`(?m)^#\d+ `)
	// totals match the lines of a summary, in both languages: the numbers stand in the same order.
	totals = map[string]*regexp.Regexp{
		"reconciles":   regexp.MustCompile(`(?m)^(\S+): (?:\S+ )?(\d+) (?:reconciles?, (\d+) failed|回 \(失敗 (\d+) 回\))`),
		"wrote":        regexp.MustCompile(`(?m)^  (?:wrote|書込) +(\d+).*?(\d+).*?(\d+)`),
		"read":         regexp.MustCompile(`(?m)^  (?:read|読取) +\D*(\d+)\D+(\d+)`),
		"watch events": regexp.MustCompile(`(?m)^  (?:woken|契機) +\D*(\d+)`),
	}
)

// summaries compares the totals at the end of the plain text.
func summaries(differ differing, text string, l trace.Language, want recount) {
	blocks := strings.Split(strings.TrimSpace(text), "\n\n")
	for name, n := range want.byOperator {
		if n.reconciles == 0 {
			continue
		}
		at := slices.IndexFunc(blocks, func(b string) bool { return strings.HasPrefix(b, name+": ") })
		if at < 0 {
			differ("summary of "+name+", "+string(l), "there", "missing:\n"+text)
			continue
		}
		for what, numbers := range map[string][]int{
			"reconciles": {n.reconciles, n.errors}, "wrote": {n.writes, n.noOps, n.conflicts}, "read": {n.cache, n.server}, "watch events": {n.watched},
		} {
			var got []int
			for _, s := range lastOf(totals[what].FindStringSubmatch(blocks[at]), len(numbers)) {
				v, _ := strconv.Atoi(s)
				got = append(got, v)
			}
			differ(what+" of "+name+" in the summary, "+string(l), numbers, got)
		}
		verbs := 0
		for _, m := range regexp.MustCompile(`(?m)^ +(\d+) [a-z]+ \S+$`).FindAllStringSubmatch(blocks[at], -1) {
			v, _ := strconv.Atoi(m[1])
			verbs += v
		}
		differ("writes by verb of "+name+", "+string(l), n.writes, verbs)
	}
}

// lastOf returns the last n texts that are not empty.
func lastOf(texts []string, n int) []string {
	texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" })
	return texts[max(0, len(texts)-n):]
}

// pages compares the totals and the sentences of the page.
func pages(differ differing, page string, l trace.Language, want recount, state *trace.State) {
	shown := strings.Count(page, `<li class="row rec`)
	differ("reconciles on the page, "+string(l), min(2000, len(state.Reconciles())), shown)
	for name, n := range want.byOperator {
		if n.reconciles+n.watched == 0 {
			continue
		}
		_, row, _ := strings.Cut(page, `<tr><th scope="row">`+name+`</th>`)
		row, _, _ = strings.Cut(row, "</tr>")
		var got []int
		for i, m := range regexp.MustCompile(`<td>([^<]*)</td>`).FindAllStringSubmatch(row, -1) {
			if i == 2 { // how long it was busy
				continue
			}
			v, _ := strconv.Atoi(m[1])
			got = append(got, v)
		}
		differ("totals of "+name+" on the page, "+string(l), []int{
			n.reconciles, n.errors, n.cache, n.server, n.writes, n.noOps, n.conflicts, n.watched, n.merged, n.dropped,
		}, got)
	}
	for _, reconcile := range state.Reconciles() {
		_, said, found := strings.Cut(page, fmt.Sprintf(`id="r%d">`, reconcile.ID))
		if !found {
			continue
		}
		_, said, _ = strings.Cut(said, `<p class="why">`)
		said, _, _ = strings.Cut(said, "</p>")
		differ(fmt.Sprintf("sentence of #%d on the page, %s", reconcile.ID, l), sentence(words(state.WhyReconcile(reconcile, l))), words(html.UnescapeString(said)))
	}
}

// words is a text without line ends, and cut where the page would cut it.
func words(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return s[:min(len(s), 300)]
}

// squeezed is a text without blanks and line ends, which say only where it was wrapped.
func squeezed(s string) string { return strings.Join(strings.Fields(s), "") }

// loops compares what 'kubectl get loops' shows.
func loops(differ differing, journal *trace.Journal, want recount, state *trace.State) {
	found := map[trace.QueueKey]bool{}
	for _, loop := range lab.LoopsIn(journal) {
		namespace, name, _ := strings.Cut(loop.Spec.Key, "/")
		if name == "" {
			namespace, name = "", loop.Spec.Key
		}
		key := trace.QueueKey{Operator: loop.Spec.Operator, Controller: loop.Spec.Controller, Key: trace.Key{Namespace: namespace, Name: name}}
		found[key] = true
		n, s := want.byKey[key], loop.Status
		if n == nil {
			differ("loop "+loop.Name, "none", "one")
			continue
		}
		differ("numbers of loop "+loop.Name,
			[]int{n.reconciles, n.errors, n.writes, n.noOps, n.conflicts, n.cache, n.server, n.merged},
			[]int64{s.Reconciles, s.Errors, s.Writes.Total, s.Writes.NoOp, s.Conflicts, s.Reads.Cache, s.Reads.Server, s.Events.Merged})
		var byVerb, byKind int64
		for _, v := range s.Writes.ByVerb {
			byVerb += v
		}
		for _, v := range s.Writes.ByKind {
			byKind += v
		}
		differ("writes of loop "+loop.Name+" by verb and by kind", []int{n.writes, n.writes}, []int64{byVerb, byKind})
		if r := state.Reconcile(s.Last.Reconcile); r != nil {
			differ("sentence of loop "+loop.Name, sentence(state.WhyReconcile(r, trace.English)), s.Last.Cause)
			differ("outcome of loop "+loop.Name, r.Outcome(), s.Last.Outcome)
		}
	}
	for key, n := range want.byKey {
		if n.reconciles > 0 && !found[key] {
			differ("loop of "+key.Key.String(), "one", "none")
		}
	}
}

// authors compares who is said to have brought about each watch event with who wrote that version of the object.
func authors(differ differing, journal *trace.Journal, want recount, state *trace.State) {
	for _, e := range journal.Since(0) {
		if e.Kind != trace.KindWatch || e.Initial || e.Verb == trace.Deleted {
			continue
		}
		wrote, known := want.stored[object(e.Object)][e.ResourceVersion]
		cause := state.Cause(e)
		switch {
		case known && cause == nil:
			differ("author of "+e.Object.String()+" rv "+e.ResourceVersion, wrote, "nobody")
		case known:
			differ("author of "+e.Object.String()+" rv "+e.ResourceVersion, wrote, cause.Actor)
		case cause != nil:
			differ("author of "+e.Object.String()+" rv "+e.ResourceVersion, "nobody", cause.Actor)
		}
	}
}

// objects compares the objects with the newest that the API server sent of them: their number, version, conditions, owners,
// and whether they are there.
func objects(differ differing, want recount, state *trace.State) {
	for ref, uid := range want.gone {
		if o := state.Object(ref); o != nil && o.Ref.UID == uid {
			differ(ref.String()+" is gone", true, o.Deleted)
		}
	}
	for ref, e := range want.newest {
		o := state.Object(e.Object)
		if o == nil {
			differ("object "+ref.String(), "known", "not known")
			continue
		}
		differ(ref.String()+" is gone", e.Verb == trace.Deleted, o.Deleted)
		if e.Verb == trace.Deleted || e.After == nil || o.ResourceVersion != e.ResourceVersion { // a write's answer may be newer
			continue
		}
		differ("conditions of "+ref.String(), trace.ReadMeta(e.After).Conditions, o.Meta().Conditions)
		differ("owners of "+ref.String(), trace.ReadMeta(e.After).Owners, o.Meta().Owners)
	}
}

// screens compares what the screen shows of the journal's end.
func screens(differ differing, journal *trace.Journal, want recount, state *trace.State) {
	last := int64(0)
	for _, r := range state.Reconciles() {
		last = max(last, r.ID)
	}
	if last == 0 {
		return
	}
	watched, there := 0, 0
	for _, n := range want.byOperator {
		watched += n.watched
	}
	for _, o := range state.Objects() {
		if !o.Deleted {
			there++
		}
	}
	screen := func(l trace.Language, w, h int) string {
		return tui.Screen(tui.Options{Journal: journal, Language: l, Getenv: func(string) string { return "C.UTF-8" }}, w, h)
	}
	for _, l := range []trace.Language{trace.English, trace.Japanese} {
		for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
			whole := state.WhyReconcile(state.Reconcile(last), l)
			said, got := squeezed(whole), squeezed(screen(l, size[0], size[1]))
			if begins, _, cut := strings.Cut(got, "…(w:"); cut && trace.TextWidth(whole) > 3*size[0] { // w shows all of it
				said = said[:min(len(said), len(begins))]
			}
			differ(fmt.Sprintf("sentence on the screen at %dx%d, %s", size[0], size[1], l), sentence(said), got[:min(len(got), len(said))])
		}
	}
	shown := screen(trace.English, 200, 50)
	differ("last reconcile on the screen", true, strings.Contains(shown, fmt.Sprintf("#%d of %d", last, last)))
	if m := regexp.MustCompile(`(\d+) (?:events? )?seen`).FindStringSubmatch(shown); m == nil {
		differ("watch events on the screen", watched, "none in\n"+shown)
	} else {
		differ("watch events on the screen", watched, m[1])
	}
	strip(differ, shown, want, state)
	if m := regexp.MustCompile(`1 Objects[^│┃\n]*? (\d+) [━─]`).FindStringSubmatch(shown); m == nil {
		differ("objects on the screen", there, "none in\n"+shown)
	} else {
		differ("objects on the screen", there, m[1])
	}
}

// strip compares the numbers of the reconcile that the strip tells of, and of its controller.
func strip(differ differing, shown string, want recount, state *trace.State) {
	m := regexp.MustCompile(`(\d+) made no key .*#(\d+) (?:ended|aborted) .*?(\d+) reads?, (\d+) writes?`).FindStringSubmatch(shown)
	if m == nil {
		if !strings.Contains(shown, "not seen") && !regexp.MustCompile(`#\d+ (running|HELD)`).MatchString(shown) {
			differ("strip on the screen", "there", "none in\n"+shown)
		}
		return
	}
	id, _ := strconv.ParseInt(m[2], 10, 64)
	reconcile := state.Reconcile(id)
	of := trace.ControllerKey{Operator: reconcile.Operator, Controller: reconcile.Controller}
	n, dropped := want.byReconcile[id], 0
	if all := want.byController[of]; all != nil {
		dropped = all.dropped
	}
	var got []int
	for _, i := range []int{1, 3, 4} {
		v, _ := strconv.Atoi(m[i])
		got = append(got, v)
	}
	differ("numbers of the strip", []int{dropped, n.cache + n.server, n.writes}, got)
}
