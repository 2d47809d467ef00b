package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (make it with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// tour loads the recorded journal.
func tour(tb testing.TB) *Journal {
	tb.Helper()
	f, err := os.Open(filepath.Join("testdata", "tour.jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	j, report, err := Load(f, Options{})
	if err != nil || !report.Complete() {
		tb.Fatalf("load: %v, %s", err, report.Text(English))
	}
	return j
}

func TestSentences(t *testing.T) {
	for _, l := range []Language{English, Japanese} {
		tl := NewTimeline(tour(t))
		tl.Update()
		s := tl.Tip()
		var b strings.Builder
		for _, reconcile := range s.Reconciles() {
			fmt.Fprintln(&b, s.WhyReconcile(reconcile, l))
		}
		fmt.Fprintln(&b)
		for _, o := range s.Objects() {
			fmt.Fprintln(&b, s.WhyObject(o, l))
		}
		fmt.Fprintln(&b)
		for _, e := range tl.Journal().Since(0) {
			switch e.Kind {
			case KindDequeue, KindStart, KindEnd: // covered by their reconciles above
			default:
				fmt.Fprintf(&b, "%d %s: %s\n", e.Seq, e.Kind, s.Why(e, l))
			}
		}
		golden(t, "why."+string(l)+".txt", b.String())
	}
}

// TestSentencesWhileRunning asks for sentences in the middle of a run.
func TestSentencesWhileRunning(t *testing.T) {
	tl := NewTimeline(tour(t))
	tl.Update()
	var b strings.Builder
	for _, e := range tl.Journal().Since(0) {
		s := tl.At(e.Seq)
		for _, reconcile := range s.Running() {
			if e.Kind == KindHold || e.Kind == KindStart {
				fmt.Fprintln(&b, s.WhyReconcile(reconcile, English))
				fmt.Fprintln(&b, s.WhyReconcile(reconcile, Japanese))
			}
		}
	}
	golden(t, "why-running.txt", b.String())
}

func TestPrinter(t *testing.T) {
	for _, l := range []Language{English, Japanese} {
		var b bytes.Buffer
		p := NewPrinter(&b, tour(t), PrintOptions{Language: l, Logs: true})
		if err := p.Update(); err != nil {
			t.Fatal(err)
		}
		if err := p.Summary(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(b.String(), "\n") {
			if TextWidth(line) > 100 {
				t.Errorf("%d columns: %s", TextWidth(line), line)
			}
		}
		golden(t, "plain."+string(l)+".txt", b.String())
	}
}

// digest describes all of a state, to compare two.
func digest(s *State) string {
	var b strings.Builder
	show := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			fmt.Fprintln(&b, err)
		}
		b.Write(raw)
		b.WriteByte('\n')
	}
	show([]any{s.seq, s.at, s.modes, s.total, s.drops})
	for _, o := range s.Objects() {
		show(o)
	}
	for _, i := range s.Queue() {
		show(i)
	}
	for _, reconcile := range s.Reconciles() {
		show(reconcile)
		show(s.Wakes(reconcile))
	}
	for _, c := range []any{len(s.byCtl), len(s.byKey), len(s.Heat(s.At() - 10*time.Second)), len(s.Tree())} {
		show(c)
	}
	return b.String()
}

// TestRewind checks that going back and forward again ends in the same state.
func TestRewind(t *testing.T) {
	j := New(Options{})
	for range 30 { // several checkpoints' worth
		for _, e := range tour(t).Since(0) {
			c := *e
			c.Cause, c.Before = 0, nil
			j.Append(c)
		}
	}
	whole := NewTimeline(j)
	whole.Update()
	last := whole.Tip().Seq()
	if len(whole.checkpoints) < 3 {
		t.Fatalf("%d checkpoints", len(whole.checkpoints))
	}
	for _, n := range []int64{0, 1, 500, checkpointEvery - 1, checkpointEvery, checkpointEvery + 1, 2500, last - 1, last} {
		before := digest(whole.At(n))
		fresh := newState(whole)
		for _, e := range j.Since(0) {
			if e.Seq <= n {
				fresh.apply(e)
			}
		}
		if diff := cmp.Diff(digest(fresh), before); diff != "" {
			t.Errorf("state at %d differs from a fold of all before it:\n%s", n, diff)
		}
		s := whole.At(n)
		for _, e := range j.Since(n) {
			s.apply(e)
		}
		if diff := cmp.Diff(digest(whole.Tip()), digest(s)); diff != "" {
			t.Errorf("from %d on to the end differs from the end:\n%s", n, diff)
		}
	}
}

func TestForgetting(t *testing.T) {
	j := New(Options{MaxEvents: 1000})
	for i := range 5000 {
		j.Append(Event{Kind: KindNote, Message: fmt.Sprint(i)})
	}
	s := j.Stats()
	if s.Events < 1000 || s.Events > 1000+chunkSize || s.Forgotten+int64(s.Events) != 5000 || s.Last != 5000 || s.First != s.Forgotten+1 {
		t.Errorf("stats: %+v", s)
	}
	if j.Get(s.First-1) != nil || j.Get(s.First) == nil || j.Get(5001) != nil {
		t.Error("Get does not end where the journal does")
	}
	if got := j.Since(4990); len(got) != 10 || got[0].Seq != 4991 {
		t.Errorf("%d events since 4990", len(got))
	}
	bytesBound := New(Options{MaxBytes: 1 << 20})
	for range 3000 {
		bytesBound.Append(Event{Kind: KindWatch, After: make([]byte, 1024)})
	}
	if s := bytesBound.Stats(); s.Bytes > 1<<20 || s.Forgotten == 0 {
		t.Errorf("stats: %+v", s)
	}
}

func TestTimelineKeepsUpWithForgetting(t *testing.T) {
	j := New(Options{MaxEvents: 2000})
	tl := NewTimeline(j)
	var ended []int64 // the Seq of each end of a reconcile
	for round := range 200 {
		for _, e := range tour(t).Since(0) {
			c := *e
			c.Cause, c.Before = 0, nil
			if seq := j.Append(c); c.Kind == KindEnd {
				ended = append(ended, seq)
			}
		}
		tl.Update()
		if len(tl.checkpoints) > 8 || len(tl.children) > 4000 || len(tl.writes) > 4000 {
			t.Fatalf("round %d: %d checkpoints, %d children, %d writes", round, len(tl.checkpoints), len(tl.children), len(tl.writes))
		}
	}
	if got := tl.Tip().Total().Reconciles; got != 200*20 {
		t.Errorf("%d reconciles counted, want %d", got, 200*20)
	}
	if n := len(tl.Tip().Reconciles()); n > 400 {
		t.Errorf("%d reconciles are kept", n)
	}
	first := tl.First()
	if kept := j.Stats().First; first < kept || first > kept+checkpointEvery {
		t.Errorf("the earliest state is at %d, and the journal begins at %d", first, kept)
	}
	for _, seq := range []int64{first - 1, first, first + 1} {
		s := tl.At(seq)
		n, _ := slices.BinarySearch(ended, s.Seq()+1)
		if s.Seq() != max(seq, first) || s.Total().Reconciles != n {
			t.Errorf("at %d: %d, %d reconciles, want %d", seq, s.Seq(), s.Total().Reconciles, n)
		}
	}
}

// TestManyObjects checks how much is remembered of a journal with more objects than events between two remembered states.
func TestManyObjects(t *testing.T) {
	const many = 20_000
	j := New(Options{})
	for i := range many {
		o := Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: fmt.Sprint("many-", i), UID: fmt.Sprint(i)}
		j.Append(Event{Kind: KindWatch, Verb: Added, Object: o, After: fmt.Appendf(nil, `{"metadata":{"name":"many-%d"}}`, i)})
	}
	tl := NewTimeline(j)
	tl.Update()
	remembered := 0
	for _, s := range tl.checkpoints {
		remembered += len(s.objects)
	}
	if len(tl.Tip().objects) != many || remembered == 0 || remembered > 3*many {
		t.Errorf("%d objects, %d in %d remembered states", len(tl.Tip().objects), remembered, len(tl.checkpoints))
	}
	for _, n := range []int64{1, 1500, 9000, many - 1} {
		if s := tl.At(n); int64(len(s.objects)) != n {
			t.Errorf("at %d: %d objects", n, len(s.objects))
		}
	}
}

// TestModeOfEachOperator checks that resuming one operator does not end the pause of another.
func TestModeOfEachOperator(t *testing.T) {
	j := New(Options{})
	line := NewTimeline(j)
	control := func(operator, verb string) *State {
		j.Append(Event{Kind: KindControl, Operator: operator, Verb: verb})
		line.Update()
		return line.Tip()
	}
	control("zundoko", VerbPause)
	before := control("maintpage", VerbPause).clone()
	s := control("zundoko", VerbResume)
	if !s.Mode().Paused || s.ModeOf("zundoko").Paused || !s.ModeOf("maintpage").Paused {
		t.Errorf("of two paused operators one was resumed: %+v", s.modes)
	}
	if s = control("maintpage", VerbResume); s.Mode().Paused {
		t.Errorf("both were resumed: %+v", s.modes)
	}
	if !before.ModeOf("zundoko").Paused {
		t.Error("what came later changed what was")
	}
}

// TestEndedByAFinalizer checks who is said to have marked an object as deleted, and who to have ended it: the answer to the
// write that removes the last finalizer has the version of the mark. It does not matter which answer comes when.
func TestEndedByAFinalizer(t *testing.T) {
	const (
		marked = `{"metadata": {"deletionTimestamp": "2026-11-24T12:00:00Z", "deletionGracePeriodSeconds": 0, "finalizers": ["f"]}}`
		bare   = `{"metadata": {"deletionTimestamp": "2026-11-24T12:00:00Z", "deletionGracePeriodSeconds": 0}}`
		dying  = `{"metadata": {"deletionTimestamp": "2026-11-24T12:00:00Z", "deletionGracePeriodSeconds": 30}}`
	)
	claim, pod := Ref{APIVersion: "v1", Kind: "PersistentVolumeClaim", Name: "c", UID: "u"}, Ref{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "p"}
	namespace := Ref{APIVersion: "v1", Kind: "Namespace", Name: "n", UID: "n"}
	events := []Event{
		{Kind: KindCall, Actor: "collector", Verb: VerbDelete, Object: claim, ResourceVersion: "7", After: json.RawMessage(marked)},
		{Kind: KindCall, Actor: "protector", Verb: VerbUpdate, Object: claim, ResourceVersion: "7", After: json.RawMessage(bare)},
		{Kind: KindWatch, Verb: Modified, Object: claim, ResourceVersion: "7", After: json.RawMessage(marked)},
		{Kind: KindWatch, Verb: Deleted, Object: claim, ResourceVersion: "8", Before: json.RawMessage(marked)},
		{Kind: KindCall, Actor: "person", Verb: VerbDelete, Object: pod, ResourceVersion: "9", After: json.RawMessage(dying)},
		{Kind: KindWatch, Verb: Modified, Object: pod, ResourceVersion: "9", After: json.RawMessage(dying)},
		{Kind: KindCall, Actor: "kubelet", Verb: VerbPatch, Object: pod, ResourceVersion: "10", After: json.RawMessage(dying)},
		{Kind: KindWatch, Verb: Modified, Object: pod, ResourceVersion: "10", After: json.RawMessage(dying)},
		{
			Kind: KindCall, Actor: "ender", Verb: VerbUpdate, Object: namespace, ResourceVersion: "11",
			After: json.RawMessage(bare[:len(bare)-1] + `, "spec": {"finalizers": ["kubernetes"]}}`),
		},
		{Kind: KindWatch, Verb: Modified, Object: namespace, ResourceVersion: "11", After: json.RawMessage(bare)},
	}
	want := map[string]string{"7": "collector", "8": "protector", "9": "person", "10": "kubelet", "11": "ender"}
	for range 20 {
		j := New(Options{})
		for _, i := range rand.Perm(len(events)) {
			j.Append(events[i])
		}
		line := NewTimeline(j)
		line.Update()
		for _, e := range j.Since(0) {
			if e.Kind != KindWatch {
				continue
			}
			if cause := line.Tip().Cause(e); cause == nil || cause.Actor != want[e.ResourceVersion] {
				t.Errorf("%s %s at version %s is said to be caused by %+v, want %s", e.Verb, e.Object, e.ResourceVersion, cause, want[e.ResourceVersion])
			}
		}
	}
}

// TestEndedUnwatched checks that an object which nobody watches is gone with the write that ends it: that of the kubelet,
// after the grace period of a pod.
func TestEndedUnwatched(t *testing.T) {
	const dying = `{"metadata": {"deletionTimestamp": "2026-11-24T12:00:00Z", "deletionGracePeriodSeconds": %d}}`
	pod := Ref{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "p"}
	j := New(Options{})
	j.Append(Event{Kind: KindCall, Actor: "you", Verb: VerbCreate, Object: pod, ResourceVersion: "8", After: json.RawMessage(`{}`)})
	line := NewTimeline(j)
	for _, grace := range []int{2, 0} {
		j.Append(Event{Kind: KindCall, Actor: "kubelet", Verb: VerbDelete, Object: pod, ResourceVersion: strconv.Itoa(11 - grace), After: json.RawMessage(fmt.Sprintf(dying, grace))})
		line.Update()
		if o := line.Tip().Object(pod); o.Deleted != (grace == 0) {
			t.Errorf("with a grace period of %d s it is gone: %t", grace, o.Deleted)
		}
	}
	// A Service is gone at once: the answer is what it was.
	service := Ref{APIVersion: "v1", Kind: "Service", Name: "s", UID: "s"}
	for _, verb := range []string{VerbCreate, VerbUpdate, VerbDelete} {
		j.Append(Event{Kind: KindCall, Actor: "you", Verb: verb, Object: service, ResourceVersion: "8", After: json.RawMessage(`{"metadata": {"name": "s"}}`)})
		line.Update()
		if o := line.Tip().Object(service); o.Deleted != (verb == VerbDelete) {
			t.Errorf("after a %s it is gone: %t", verb, o.Deleted)
		}
	}
}

// TestOvertakenWrite checks that a watch event may arrive before the answer to the write that caused it.
func TestOvertakenWrite(t *testing.T) {
	j := New(Options{})
	obj := Ref{APIVersion: "v1", Kind: "Secret", Name: "s", UID: "u"}
	watch := j.Append(Event{Kind: KindWatch, Operator: "o", Verb: Added, Object: obj, ResourceVersion: "7"})
	j.Append(Event{Kind: KindEnqueue, Operator: "o", Controller: "c", Key: Key{"", "s"}, Cause: watch})
	tl := NewTimeline(j)
	tl.Update()
	if tl.Tip().Cause(tl.Event(watch)) != nil {
		t.Error("the cause is known too early")
	}
	call := j.Append(Event{Kind: KindCall, Operator: "o", Verb: VerbCreate, Object: obj, ResourceVersion: "7", Reconcile: 1})
	j.Append(Event{Kind: KindDequeue, Operator: "o", Controller: "c", Key: Key{"", "s"}, Cause: 2, Reconcile: 2})
	tl.Update()
	s := tl.Tip()
	if got := s.Cause(tl.Event(watch)); got == nil || got.Seq != call {
		t.Errorf("cause: %+v", got)
	}
	if !s.Own(s.Reconcile(2)) {
		t.Error("the reconcile is not known to be woken by an own write")
	}
	if woke := s.Woke(tl.Event(call)); len(woke) != 1 || woke[0].ID != 2 {
		t.Errorf("the write woke %+v", woke)
	}
	if got := tl.At(2).Cause(tl.Event(watch)); got == nil || got.Seq != call {
		t.Errorf("as of then, the cause is %+v", got)
	}
}

// TestWriteThatFoundNothingToDo checks that of two writes with the same version the later one is known to have changed
// nothing, whichever is recorded first, and that the watch event is the other's.
func TestWriteThatFoundNothingToDo(t *testing.T) {
	obj := Ref{APIVersion: "v1", Kind: "PodDisruptionBudget", Name: "b", UID: "u"}
	watch := Event{Kind: KindWatch, Verb: Modified, Object: obj, ResourceVersion: "7"}
	controller := Event{Kind: KindCall, Actor: "controller", Verb: VerbUpdate, Object: obj, ResourceVersion: "7", At: 20, Duration: 5}
	operator := Event{Kind: KindCall, Actor: "o", Operator: "o", Verb: VerbApply, Object: obj, ResourceVersion: "7", At: 30, Duration: 12}
	kubectl := Event{Kind: KindCall, Actor: "you", Verb: VerbApply, Object: obj, ResourceVersion: "7", At: 50, Duration: 5}
	dry := operator
	dry.Via = ViaDryRun
	for name, test := range map[string]struct {
		events []Event
		author string
		noOp   []int
	}{
		"the operator's, with a stale cache": {[]Event{controller, watch, operator}, "controller", []int{2}},
		"watched last":                       {[]Event{controller, operator, watch}, "controller", []int{1}},
		"others' is recorded late":           {[]Event{operator, controller, watch}, "controller", nil},
		"a person's, after the operator's":   {[]Event{operator, kubectl, watch}, "o", []int{1}},
		"dry run":                            {[]Event{dry, controller, watch}, "controller", nil},
	} {
		j := New(Options{})
		for _, e := range test.events {
			j.Append(e)
		}
		line := NewTimeline(j)
		line.Update()
		var noOp []int
		for i, e := range j.Since(0) {
			if e.NoOp {
				noOp = append(noOp, i)
			}
			if e.Kind != KindWatch {
				continue
			}
			if cause := line.Tip().Cause(e); cause == nil || cause.Actor != test.author {
				t.Errorf("%s: the watch event is said to be caused by %+v, want %s", name, cause, test.author)
			}
		}
		if !slices.Equal(noOp, test.noOp) {
			t.Errorf("%s: events %d changed nothing, want %d", name, noOp, test.noOp)
		}
	}
}

// overtaken appends a reconcile that answers the watch event of a write, and returns the answer to that write.
func overtaken(j *Journal, n int) (answer Event) {
	name := fmt.Sprint("s", n)
	obj := Ref{APIVersion: "v1", Kind: "Secret", Name: name, UID: name}
	of := func(e Event) int64 {
		e.Operator, e.Controller, e.Key = "o", "c", Key{"", name}
		return j.Append(e)
	}
	watch := j.Append(Event{Kind: KindWatch, Operator: "o", Actor: "o", Verb: Added, Object: obj, ResourceVersion: "7"})
	enqueue, id := of(Event{Kind: KindEnqueue, Cause: watch}), j.NewReconcile()
	of(Event{Kind: KindDequeue, Cause: enqueue, Reconcile: id})
	of(Event{Kind: KindEnd, Reconcile: id, Outcome: OutcomeDone})
	return Event{Kind: KindCall, Actor: "you", Verb: VerbCreate, Object: obj, ResourceVersion: "7"}
}

// TestPrintedLineWaitsForAuthor checks that a line, which cannot be changed later, is printed when its author is known, or
// when nobody has told for long.
func TestPrintedLineWaitsForAuthor(t *testing.T) {
	now := time.Unix(0, 0)
	j := New(Options{Now: func() time.Time { return now }})
	var b bytes.Buffer
	p := NewPrinter(&b, j, PrintOptions{})
	answer := overtaken(j, 1)
	if late := p.print(authorPatience); late == nil || b.Len() > 0 {
		t.Errorf("before the author is known: %q", b.String())
	}
	j.Append(answer)
	if p.print(authorPatience); !strings.Contains(b.String(), "woken by Secret s1 ADDED (you)\n") {
		t.Errorf("when the author is known: %q", b.String())
	}
	b.Reset()
	overtaken(j, 2)
	now = now.Add(authorPatience)
	if late := p.print(authorPatience); late != nil || !strings.Contains(b.String(), "woken by Secret s2 ADDED\n") {
		t.Errorf("when nobody tells: %q", b.String())
	}
}

// TestFollowNamesAuthors has many writers whose answers come after what they caused, while the printer follows.
func TestFollowNamesAuthors(t *testing.T) {
	const writers, each = 8, 50
	j := New(Options{})
	var b bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	followed := make(chan error, 1)
	go func() { followed <- NewPrinter(&b, j, PrintOptions{}).Follow(ctx) }()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range each {
				j.Append(overtaken(j, w*each+n))
			}
		})
	}
	all.Wait()
	cancel()
	if err := <-followed; err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(b.String(), " ADDED (you)"); got != writers*each {
		t.Errorf("%d of %d reconciles say who woke them", got, writers*each)
	}
}

func TestTreeOfOwners(t *testing.T) {
	j := New(Options{})
	add := func(kind, name, uid string, owners ...string) {
		refs := []map[string]any{}
		for i, o := range owners {
			refs = append(refs, map[string]any{"uid": o, "controller": i == len(owners)-1})
		}
		raw, _ := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": refs}})
		j.Append(Event{Kind: KindWatch, Verb: Added, Object: Ref{Kind: kind, Name: name, UID: uid}, ResourceVersion: "1", After: raw})
	}
	add("A", "root", "1")
	add("B", "child", "2", "x", "1")
	add("C", "grandchild", "3", "1", "2")
	add("D", "orphan", "4", "gone")
	add("E", "circle", "5", "6")
	add("F", "circle", "6", "5")
	tl := NewTimeline(j)
	tl.Update()
	var b strings.Builder
	var walk func(nodes []*Node, depth int)
	walk = func(nodes []*Node, depth int) {
		for _, n := range nodes {
			fmt.Fprintf(&b, "%s%s\n", strings.Repeat(" ", depth), n.Ref)
			walk(n.Children, depth+1)
		}
	}
	walk(tl.Tip().Tree(), 0)
	want := "A root\n B child\n  C grandchild\nD orphan\nF circle\n E circle\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Microsecond: "<0.1ms", 400 * time.Microsecond: "0.4ms", 3 * time.Millisecond: "3ms",
		9960 * time.Microsecond: "10ms", 500 * time.Millisecond: "500ms", 999600 * time.Microsecond: "1s",
		2560 * time.Millisecond: "2.56s", 41 * time.Second: "41s", 90 * time.Second: "1m30s", 2 * time.Minute: "2m",
		3 * time.Hour: "3h", time.Hour + time.Second: "1h0m1s", -time.Second: "-1s",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}

func TestTextWidth(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "abc": 3, "…": 1, "↺ → #1": 6, "ズン": 4, "キ・ヨ・シ!": 11, "é": 1, "e\u0301": 1, "か\u3099": 2,
		"✅": 2, "⭐": 2, "☕": 2, "👩‍👩‍👧": 2, "🇯🇵": 2,
	} {
		if got := TextWidth(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
	if got := cut("ズンズンドコ", 7); got != "ズン..." {
		t.Errorf("cut: %q", got)
	}
	if got := cut("か\u3099か\u3099か\u3099", 5); got != "か\u3099..." {
		t.Errorf("cut: %q", got)
	}
}

func TestYAMLString(t *testing.T) {
	plain := []string{
		"Zun", "ズン", "kiyoshi!", "demo-001", "apps/v1", "registry.k8s.io/pause:3.10", "one two", "a,b", "./x", ".", "..", "it (is)", "no way", "_1",
	}
	quoted := []string{
		"", "True", "NO", "On", "y", "null", "~", ".nan", ".Inf", "1", "1.5", "1e3", "0x1F", ".5", "-1", "2026-08-01T10:00:00Z", "10.0.0.1", "12:30",
		"a: b", "a:", "a #b", " a", "a ", "- a", "a\nb", "{a", "*a", "&a", "!a", "=", "%a", "@a", "a, b", `"a"`,
	}
	for _, s := range plain {
		if got := YAMLString(s); got != s {
			t.Errorf("%q is written %s", s, got)
		}
	}
	for _, s := range quoted {
		if got := YAMLString(s); got != strconv.Quote(s) {
			t.Errorf("%q is written %s, not in quotes", s, got)
		}
	}
}

func TestSubscribe(t *testing.T) {
	j := New(Options{})
	changed, cancel := j.Subscribe()
	j.Append(Event{Kind: KindNote})
	j.Append(Event{Kind: KindNote})
	<-changed
	select {
	case <-changed:
		t.Error("two tokens for what is read at once")
	default:
	}
	cancel()
	j.Append(Event{Kind: KindNote})
	select {
	case <-changed:
		t.Error("a token after cancel")
	default:
	}
}
