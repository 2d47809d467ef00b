package scenarios_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
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
	"github.com/operator-lab/operator-lab/sandbox/sandboxtest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// consistent checks that all that is told of a journal is the same: on the screen, in plain text, on the page, by
// 'kubectl get loops', and by what the events of the journal themselves say of the API server's answers.
func consistent(t *testing.T, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close() //nolint:errcheck // it is only read
	journal, report, err := trace.Load(f, trace.Options{})
	if err != nil || !report.Complete() {
		t.Errorf("%s: %v %v", file, report, err)
		return
	}
	for _, difference := range differences(journal, recountOf(journal.Since(0))) {
		t.Errorf("%s: %s", filepath.Base(file), difference)
	}
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
	byOperator map[string]*tally
	byKey      map[trace.QueueKey]*tally
	ended      map[int64]bool                  // reconciles
	stored     map[trace.Ref]map[string]string // who wrote which resourceVersion of an object
	newest     map[trace.Ref]*trace.Event      // the newest watch event of an object, if no write ended it since
}

func object(r trace.Ref) trace.Ref {
	return trace.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

func recountOf(events []*trace.Event) recount {
	n := recount{map[string]*tally{}, map[trace.QueueKey]*tally{}, map[int64]bool{}, map[trace.Ref]map[string]string{}, map[trace.Ref]*trace.Event{}}
	ending := map[trace.Ref]string{} // UIDs of objects that somebody deletes
	for _, e := range events {
		if e.Via == trace.ViaRecorder || e.Via == trace.ViaDryRun {
			continue
		}
		if e.Operator != "" {
			if n.byOperator[e.Operator] == nil {
				n.byOperator[e.Operator] = &tally{}
			}
			n.byOperator[e.Operator].count(e)
			if !e.Key.IsZero() {
				key := trace.QueueKey{Operator: e.Operator, Controller: e.Controller, Key: e.Key}
				if n.byKey[key] == nil {
					n.byKey[key] = &tally{}
				}
				n.byKey[key].count(e)
			}
		}
		ref := object(e.Object)
		switch {
		case e.Kind == trace.KindEnd:
			n.ended[e.Reconcile] = true
		case e.Kind == trace.KindWatch && ending[ref] != e.Object.UID:
			n.newest[ref] = e
		case e.Kind == trace.KindCall && e.IsWrite() && e.Error == "" && !e.NoOp:
			if e.Verb == trace.VerbDelete || trace.ReadMeta(e.After).Deleting {
				delete(n.newest, ref) // it may have ended the object, before watches tell of what came earlier
				ending[ref] = e.Object.UID
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

// ended reports whether a write removed the last finalizer of an object that is being deleted: the answer then has the
// version of the write before it.
func ended(e *trace.Event) bool {
	var o metav1.PartialObjectMetadata
	return json.Unmarshal(e.After, &o) == nil && o.DeletionTimestamp != nil && len(o.Finalizers) == 0 &&
		ptr.Deref(o.DeletionGracePeriodSeconds, 0) == 0 && o.Kind != "Namespace"
}

// differences returns what is not told of a journal everywhere as it should be.
func differences(journal *trace.Journal, want recount) (wrong []string) {
	timeline := trace.NewTimeline(journal)
	timeline.Update()
	state := timeline.Tip()
	differ := func(where string, want, got any) {
		if fmt.Sprint(want) != fmt.Sprint(got) {
			wrong = append(wrong, fmt.Sprintf("%s: want %v, got %v", where, want, got))
		}
	}
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
		summaries(differ, out.String(), l, want)
	}
	var page bytes.Buffer
	if err := trace.WriteHTML(&page, journal, trace.HTMLOptions{}); err != nil {
		differ("page", nil, err)
	}
	pages(differ, page.String(), want, state)
	loops(differ, journal, want, state)
	authors(differ, journal, want, state)
	objects(differ, want, state)
	screens(differ, journal, want, state)
	return wrong
}

type differing func(where string, want, got any)

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
func pages(differ differing, page string, want recount, state *trace.State) {
	shown := strings.Count(page, `<li class="row rec`)
	differ("reconciles on the page", min(2000, len(state.Reconciles())), shown)
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
		differ("totals of "+name+" on the page", []int{
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
		differ(fmt.Sprintf("sentence of #%d on the page", reconcile.ID), words(state.WhyReconcile(reconcile, trace.English)), words(html.UnescapeString(said)))
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
			differ("sentence of loop "+loop.Name, state.WhyReconcile(r, trace.English), s.Last.Cause)
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

// objects compares the objects with the newest that the API server sent of them: their number, version, conditions, and
// whether they are there.
func objects(differ differing, want recount, state *trace.State) {
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
			sentence := state.WhyReconcile(state.Reconcile(last), l)
			said, got := squeezed(sentence), squeezed(screen(l, size[0], size[1]))
			if begins, _, cut := strings.Cut(got, "…(w:"); cut && trace.TextWidth(sentence) > 3*size[0] { // w shows all of it
				said = said[:min(len(said), len(begins))]
			}
			differ(fmt.Sprintf("sentence on the screen at %dx%d, %s", size[0], size[1], l), said, got[:min(len(got), len(said))])
		}
	}
	shown := screen(trace.English, 200, 50)
	differ("last reconcile on the screen", true, strings.Contains(shown, fmt.Sprintf("#%d of %d", last, last)))
	if m := regexp.MustCompile(`(\d+) (?:events? )?seen`).FindStringSubmatch(shown); m == nil {
		differ("watch events on the screen", watched, "none in\n"+shown)
	} else {
		differ("watch events on the screen", watched, m[1])
	}
	if m := regexp.MustCompile(`1 Objects[^│┃\n]*? (\d+) [━─]`).FindStringSubmatch(shown); m != nil {
		differ("objects on the screen", there, m[1])
	}
}

// TestDifferencesAreFound checks that each wrong number is found wherever it is told, and that there is none in the journal
// of the tour.
func TestDifferencesAreFound(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "cmd", "operator-lab", "tui", "testdata", "tour.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	journal, _, err := trace.Load(bytes.NewReader(text), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if wrong := differences(journal, recountOf(journal.Since(0))); len(wrong) > 0 {
		t.Errorf("the tour: %s", strings.Join(wrong, "\n"))
	}
	for name, plant := range map[string]struct {
		wrong func(n *tally)
		where []string
	}{
		"writes":      {func(n *tally) { n.writes++ }, []string{"wrote of", "summary, en", "summary, ja", "writes by verb", "totals of", "numbers of loop"}},
		"reconciles":  {func(n *tally) { n.reconciles++ }, []string{"reconciles of", "totals of", "numbers of loop"}},
		"reads":       {func(n *tally) { n.cache++ }, []string{"read of", "totals of", "numbers of loop"}},
		"events":      {func(n *tally) { n.watched++ }, []string{"watch events of", "totals of", "on the screen"}},
		"merged":      {func(n *tally) { n.merged++ }, []string{"totals of", "numbers of loop"}},
		"made no key": {func(n *tally) { n.dropped++ }, []string{"totals of"}},
	} {
		want := recountOf(journal.Since(0))
		for _, n := range want.byOperator {
			plant.wrong(n)
		}
		for _, n := range want.byKey {
			plant.wrong(n)
		}
		found := strings.Join(differences(journal, want), "\n")
		for _, where := range plant.where {
			if !strings.Contains(found, where) {
				t.Errorf("%s: a wrong number is not found where it says %q:\n%s", name, where, found)
			}
		}
	}
	want := recountOf(journal.Since(0))
	for _, versions := range want.stored {
		for version := range versions {
			versions[version] = "nobody known"
		}
	}
	for ref, e := range want.newest {
		gone := *e
		gone.Verb = trace.Deleted
		want.newest[ref] = &gone
	}
	found := strings.Join(differences(journal, want), "\n")
	for _, where := range []string{"author of", "is gone"} {
		if !strings.Contains(found, where) {
			t.Errorf("a wrong author or object is not found where it says %q:\n%s", where, found)
		}
	}
}

// TestHooksAreConsistent checks the journal of a song that a hook has sung, with the calls of the hook in it.
func TestHooksAreConsistent(t *testing.T) {
	sandboxtest.Long(t)
	t.Parallel()
	binary, err := filepath.Abs(needsBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "song.jsonl")
	cmd := exec.CommandContext(t.Context(), binary, "run", "--hook", "zundoko/sync.py", "--composite", "zundoko/controller.yaml", "--env", "SEED=8",
		"--manifests", "../../zundoko/config/crds/hardened", "--apply=../../zundoko/config/samples/hikawa.yaml",
		"--nodes", "0", "--plain", "--quiet", "--for", "5m", "--record", file)
	cmd.Dir = filepath.Join("..", "operators", "metacontroller", "examples")
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sung := false
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if !sung && strings.Contains(lines.Text(), "apply Kiyoshi") { // a second signal would not let it end in order
			sung = true
			_ = cmd.Process.Signal(os.Interrupt)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	consistent(t, file)
}
