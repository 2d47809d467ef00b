package tui

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// partCase is parts of a screen, drawn alone.
type partCase struct {
	name  string
	w, h  int // of the screen
	o     Options
	keys  string // pressed before
	parts string // names of panes and bars, in their order; "window" is what lies over them
}

// part draws one part of a screen as large as it is on that.
func part(m *Model, name string) (lines []string, w int) {
	m.placed = m.layout()
	s, l := &m.state, m.placed
	bars := map[string]placedBar{
		"header": {l.Header, headerBar{s}}, "strip": {l.Strip, stripBar{s}}, "traffic": {l.Traffic, trafficBar{s}}, "store": {l.Store, storeBar{s}},
		"scrubber": {l.Scrubber, scrubberBar{s}}, "why": {l.Why, whyBar{s}}, "aside": {l.Aside, asideBar{s}}, "footer": {l.Footer, footerBar{s}},
	}
	numbered := map[string]Pane{
		"objects": ObjectsPane, "queue": QueuePane, "loop": LoopPane, "detail": DetailPane, "lesson": LessonPane, "cause": CausePane,
	}
	if p, is := numbered[name]; is {
		return box{s, p}.draw(l.Pane[p]), l.Pane[p].W
	}
	if b, is := bars[name]; is {
		for _, r := range b.draw(b.at) {
			lines = append(lines, r.draw(&s.theme, b.at.W))
		}
		return lines, b.at.W
	}
	lines = s.popup.window(s)
	return lines, ansi.StringWidth(lines[0])
}

// goldenParts compares parts of screens with one golden file.
func goldenParts(t *testing.T, file string, cases []partCase) {
	t.Helper()
	var out strings.Builder
	for _, c := range cases {
		c.o.NoMotion = true
		m := modelOf(t, c.o, c.w, c.h)
		press(m, c.keys)
		checkSize(t, m)
		for name := range strings.FieldsSeq(c.parts) {
			lines, w := part(m, name)
			fmt.Fprintf(&out, "=== %s, %s of %dx%d\n%s\n", c.name, name, c.w, c.h, strings.Join(lines, "\n"))
			for _, line := range lines {
				if got := ansi.StringWidth(line); got != w {
					t.Errorf("%s, %s: a line is %d cells wide, not %d: %q", c.name, name, got, w, ansi.Strip(line))
				}
			}
		}
	}
	golden(t, file, strings.TrimSuffix(out.String(), "\n"))
}

// idle controls do nothing; those with a shell have that too.
var (
	idle      = Controls{Loop: &fakeLoop{}, Cluster: &demoCluster{}, Facts: "k8s 1.36"}
	withShell = Controls{
		Loop: idle.Loop, Cluster: idle.Cluster, Facts: idle.Facts, Reach: "operator-lab kubectl --name zundoko",
		Shell:   func() (*exec.Cmd, error) { return exec.Command("true"), nil },
		Command: func(string) (*exec.Cmd, error) { return exec.Command("true"), nil },
	}
)

func TestPanes(t *testing.T) {
	story, duet := story().journal, duet().journal
	goldenParts(t, "panes", []partCase{
		{"story", 120, 40, Options{Journal: story, Controls: idle}, "", "header strip objects queue loop detail scrubber why aside footer"},
		{"story in ASCII", 120, 40, Options{Journal: story, Controls: idle, ASCII: true}, "", "header strip objects queue loop detail scrubber why aside footer"},
		{"story in Japanese", 120, 40, Options{Journal: story, Controls: idle, Language: trace.Japanese}, "", "header strip objects queue loop detail scrubber why aside footer"},
		{"small, in Japanese", 80, 24, Options{Journal: story, Controls: idle, Language: trace.Japanese, ASCII: true}, "", "header strip loop detail why aside footer"},
		{"duet", 200, 50, Options{Journal: duet, Replay: true, Title: "duet"}, "", "header strip objects queue loop detail cause why aside"},
		{"duet in ASCII", 200, 50, Options{Journal: duet, Replay: true, ASCII: true}, "", "objects queue loop cause"},
		{"small", 80, 24, Options{Journal: duet, Replay: true}, "", "header strip loop detail why aside footer"},
		{"rewound", 200, 50, Options{Journal: duet, Replay: true}, "[ [ [ [", "header objects queue loop detail cause scrubber why aside"},
		{"rewound while it runs", 120, 40, Options{Journal: story, Controls: idle}, "[ [ [ s", "header objects loop why aside footer"},
		{"merged events", 80, 24, Options{Journal: merging().journal, Controls: idle}, "2", "queue"},
		{"an object", 80, 24, Options{Journal: story, Controls: idle}, "1 down down y", "objects detail why aside"},
		{"one operator", 120, 40, Options{Journal: duet, Replay: true}, "o down down enter", "strip queue loop"},
		{"a filter", 120, 40, Options{Journal: duet, Replay: true}, "/ t i m e r enter", "loop detail"},
		{"zoomed", 120, 40, Options{Journal: duet, Replay: true}, "6 z z", "cause"},
		{"tall", 80, 60, Options{Journal: duet, Replay: true}, "", "loop detail"},
		{"nothing yet", 120, 40, Options{Journal: trace.New(trace.Options{}), Controls: idle}, "", "header strip objects queue loop detail scrubber why aside footer"},
		{"refused", 80, 24, Options{Journal: duet, Replay: true}, "space", "footer"},
		{"requests only", 120, 40, Options{Journal: gated(), Replay: true}, "", "header strip objects queue loop detail scrubber why aside"},
		{"requests only, one back", 120, 40, Options{Journal: gated(), Replay: true}, "[", "header loop detail why aside"},
		{"requests only, filtered", 80, 24, Options{Journal: gated(), Replay: true}, "/ c r e a t e", "loop"},
		{"requests only, in Japanese", 80, 24, Options{Journal: gated(), Replay: true, Language: trace.Japanese}, "3", "header strip loop why aside"},
		{"requests only, in Japanese", 120, 40, Options{Journal: gated(), Replay: true, Language: trace.Japanese}, "", "queue"},
		{"a request that waits", 120, 40, Options{Journal: waiting(), Controls: idle}, "", "loop detail why aside"},
		{"a request that waits, in Japanese", 80, 24, Options{Journal: waiting(), Controls: idle, Language: trace.Japanese}, "", "loop why aside"},
		{"logs and gate", 120, 40, Options{Journal: logged(), Replay: true}, "", "header strip queue loop detail why aside"},
		{"logs and gate, cause", 200, 50, Options{Journal: logged(), Replay: true, Language: trace.Japanese}, "[ [", "header strip queue loop cause why aside"},
	})
}

// logged is the journal of a program without taps whose log tells of its reconciles.
func logged() *trace.Journal {
	j := gated()
	song := trace.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "song", UID: "u"}
	for i, e := range []trace.Event{
		{Kind: trace.KindDequeue, Reconcile: 1, Cause: 2, Probably: true},
		{Kind: trace.KindStart, Reconcile: 1, Cause: 4},
		{Kind: trace.KindCall, Verb: trace.VerbUpdate, Object: song, ResourceVersion: "6", Source: trace.Server, Reconcile: 1, Cause: 5, Via: trace.ViaGate},
		{Kind: trace.KindCall, Verb: trace.VerbGet, Object: song, ResourceVersion: "6", Source: trace.Server, Reconcile: 1, Cause: 5, Probably: true, Via: trace.ViaGate},
		{Kind: trace.KindWatch, Verb: trace.Modified, Object: song, ResourceVersion: "6", Cause: 6, Via: trace.ViaGate},
		{Kind: trace.KindEnd, Reconcile: 1, Cause: 5, Outcome: trace.OutcomeError, Error: "no luck", Duration: 3 * time.Second},
		{Kind: trace.KindDequeue, Reconcile: 2, Cause: 8, Probably: true},
		{Kind: trace.KindStart, Reconcile: 2, Cause: 10},
		{Kind: trace.KindEnd, Reconcile: 2, Cause: 11, Outcome: trace.OutcomeDone, Duration: time.Second},
		{Kind: trace.KindDequeue, Reconcile: 3},
		{Kind: trace.KindStart, Reconcile: 3, Cause: 13},
	} {
		e.At, e.Operator, e.Actor = time.Duration(i+4)*time.Second, "pyop", "pyop"
		if e.Reconcile > 0 {
			e.Controller, e.Key = "configmap", trace.Key{Namespace: "default", Name: "song"}
		}
		if e.Via == "" {
			e.Via = trace.ViaLog
		}
		j.Append(e)
	}
	return j
}

// gated is the journal of a program of which only the requests are seen.
func gated() *trace.Journal {
	j := trace.New(trace.Options{})
	song := trace.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "song", UID: "u"}
	for i, e := range []trace.Event{
		{Kind: trace.KindCall, Verb: trace.VerbCreate, Object: song, ResourceVersion: "5", Source: trace.Server, Status: 201},
		{Kind: trace.KindWatch, Verb: trace.Added, Object: song, ResourceVersion: "5"},
		{Kind: trace.KindCall, Verb: trace.VerbGet, Object: song, ResourceVersion: "5", Source: trace.Server, Status: 200},
	} {
		e.At, e.Operator, e.Actor, e.Via = time.Duration(i+1)*time.Second, "pyop", "pyop", trace.ViaGate
		j.Append(e)
	}
	return j
}

// TestTitleOfOneOfSeveral checks that the screen does not say of the demo's operator how little is seen of another one.
func TestTitleOfOneOfSeveral(t *testing.T) {
	j := gated()
	j.Append(trace.Event{Kind: trace.KindOperator, Operator: "zundoko", Actor: "zundoko", Verb: trace.VerbStart})
	j.Append(trace.Event{Kind: trace.KindDequeue, Operator: "zundoko", Actor: "zundoko", Controller: "hikawa", Reconcile: 1})
	for operator, want := range map[string]string{"": "zundoko / hardened ", "zundoko": "zundoko / hardened ", "pyop": "pyop / level 3: gate only "} {
		m := modelOf(t, Options{Journal: j, Replay: true, Title: "zundoko / hardened", Operator: operator}, 120, 40)
		if frame := ansi.Strip(m.frame()); !strings.Contains(frame, "operator-lab  "+want) {
			t.Errorf("%q: want %q in\n%s", operator, want, frame)
		}
	}
}

// waiting is gated with a request that came while the loop was paused.
func waiting() *trace.Journal {
	j := gated()
	song := j.Get(1).Object
	j.Append(trace.Event{At: 4 * time.Second, Kind: trace.KindControl, Operator: "pyop", Actor: "you", Verb: trace.VerbPause})
	j.Append(trace.Event{
		At: 5 * time.Second, Kind: trace.KindHold, Reason: trace.ReasonPaused, Operator: "pyop", Actor: "pyop", Via: trace.ViaGate,
		Verb: trace.VerbUpdate, Object: song, Before: []byte(`{"data":{"word":"Zun"}}`), After: []byte(`{"data":{"word":"Doko"}}`),
	})
	return j
}

// TestChangedLinesComeFirst shows a change in the middle of an object where there is room for four lines of it.
func TestChangedLinesComeFirst(t *testing.T) {
	m := modelOf(t, Options{Journal: trace.New(trace.Options{})}, 80, 24)
	pane := detailPane{&m.state}
	before := []byte(`{"status":{"conditions":[{"type":"Ready","message":"a","reason":"b","status":"True"}],"count":1,"z":1}}`)
	after := []byte(`{"status":{"conditions":[{"type":"Ready","message":"a","reason":"b","status":"True"}],"count":2,"z":1}}`)
	e := &trace.Event{Kind: trace.KindCall, Verb: trace.VerbUpdate, Before: before, After: after}
	shown := func(h int) string {
		var text []string
		for _, r := range pane.diffBody(e, Rect{W: 78, H: h}) {
			text = append(text, strings.TrimSpace(r.plain()))
		}
		return strings.Join(text, "|")
	}
	if got := shown(4); !strings.HasPrefix(got, "-   count: 1|+   count: 2|status:") {
		t.Errorf("with little room: %s", got)
	}
	m.focus = DetailPane
	if got := shown(4); !strings.HasPrefix(got, "status:") {
		t.Errorf("where one scrolls: %s", got)
	}
}

// TestAKeyThatWaits checks that the detail pane does not call a selected key nothing.
func TestAKeyThatWaits(t *testing.T) {
	m := modelOf(t, Options{Journal: trace.New(trace.Options{})}, 80, 24)
	rows := detailPane{&m.state}.diffRows(subject{item: &trace.Item{}}, Rect{W: 80, H: 10})
	if len(rows) != 1 || !strings.Contains(rows[0].plain(), "a key that waits:") {
		t.Errorf("of a selected key it says %v", rows)
	}
}

// TestStatusOfADeletedObject checks that the strip does not tell of the generations of an object that is gone.
func TestStatusOfADeletedObject(t *testing.T) {
	j := trace.New(trace.Options{})
	song := trace.Ref{APIVersion: "example.com/v1", Kind: "Song", Namespace: "default", Name: "one", UID: "u"}
	raw := []byte(`{"metadata":{"name":"one","uid":"u","generation":2},"status":{"observedGeneration":2}}`)
	for i, e := range []trace.Event{
		{Kind: trace.KindWatch, Verb: trace.Added, Object: song, ResourceVersion: "1", Generation: 2, After: raw},
		{Kind: trace.KindDequeue, Reconcile: 1, Cause: 1},
		{Kind: trace.KindStart, Reconcile: 1, Cause: 2},
		{Kind: trace.KindCall, Verb: trace.VerbGet, Object: song, ResourceVersion: "1", Source: trace.Cache, Reconcile: 1, Cause: 3},
		{Kind: trace.KindEnd, Reconcile: 1, Cause: 3, Outcome: trace.OutcomeDone},
		{Kind: trace.KindWatch, Verb: trace.Deleted, Object: song, ResourceVersion: "2", Before: raw},
	} {
		e.At, e.Operator, e.Actor = time.Duration(i+1)*time.Second, "songs", "songs"
		if e.Reconcile > 0 {
			e.Controller, e.Key = "song", trace.Key{Namespace: "default", Name: "one"}
		}
		j.Append(e)
		if e.Kind == trace.KindEnd || e.Verb == trace.Deleted {
			m := modelOf(t, Options{Journal: j}, 200, 50)
			want := "gen 2 obs 2"
			if e.Verb == trace.Deleted {
				want = "gone"
			}
			if got := (stripBar{&m.state}).statusStage(m.loop().reconciles()[0]).value; got != want {
				t.Errorf("after event %d the status is %q, want %q", i+1, got, want)
			}
		}
	}
}

func TestWindows(t *testing.T) {
	story, duet := story().journal, duet().journal
	goldenParts(t, "windows", []partCase{
		{"why", 120, 40, Options{Journal: duet, Replay: true}, "[ [ [ w", "window footer"},
		{"why, in Japanese", 80, 24, Options{Journal: duet, Replay: true, Language: trace.Japanese}, "[ w", "window footer"},
		{"help", 120, 40, Options{Journal: story, Controls: idle}, "?", "window footer"},
		{"help in a lesson", 120, 40, Options{Journal: story, Controls: idle, Guide: lessonOf(pageOf(trace.English))}, "? pgdown", "window"},
		{"help in a lesson, in Japanese", 80, 24, Options{Journal: story, Controls: idle, Language: trace.Japanese, Guide: lessonOf(pageOf(trace.Japanese))}, "? pgdown pgdown", "window"},
		{"break", 80, 24, Options{Journal: story, Controls: idle}, "1 x", "window footer"},
		{"operators", 80, 24, Options{Journal: duet, Replay: true}, "o", "window footer"},
		{"help with a shell", 120, 40, Options{Journal: story, Controls: withShell}, "?", "window"},
		{"undo", 120, 40, Options{Journal: story, Controls: withShell, Guide: lessonOf(halfTicked(trace.English))}, "u", "window footer"},
		{"undo, in Japanese", 80, 24, Options{Journal: story, Controls: withShell, Language: trace.Japanese, Guide: lessonOf(halfTicked(trace.Japanese))}, "u", "window footer"},
		{"a command", 80, 24, Options{Journal: story, Controls: withShell, Guide: lessonOf(halfTicked(trace.English))}, "$", "window footer"},
		{"a command, in Japanese", 120, 40, Options{Journal: story, Controls: withShell, Language: trace.Japanese, Guide: lessonOf(halfTicked(trace.Japanese))}, "$ left left", "window footer"},
		{"an answer", 80, 24, Options{Journal: story, Controls: withShell, Guide: lessonOf(pages(trace.English)["answered"])}, "a 1", "window footer"},
		{"an answer, in Japanese", 120, 40, Options{Journal: story, Controls: withShell, Language: trace.Japanese, Guide: lessonOf(pages(trace.Japanese)["answered"])}, "a 1", "window footer"},
	})
}

func TestTrafficAndStore(t *testing.T) {
	well, other, fails := answer{8, "Production Page !", ""}, answer{2, "Maintenance Page !", ""}, answer{9, "", outage}
	goldenParts(t, "bars", []partCase{
		{"traffic", 80, 24, Options{Journal: asked(well), Controls: idle}, "", "traffic"},
		{"traffic in ASCII", 120, 40, Options{Journal: asked(well), Controls: idle, ASCII: true}, "", "traffic"},
		{"another answer", 120, 40, Options{Journal: asked(well, other), Controls: idle}, "", "traffic"},
		{"no answer", 80, 24, Options{Journal: asked(well, fails), Controls: idle, ASCII: true}, "", "traffic scrubber"},
		{"no answer, in Japanese", 120, 40, Options{Journal: asked(well, fails), Controls: idle, Language: trace.Japanese}, "", "traffic"},
		{"traffic, rewound", 80, 24, Options{Journal: asked(well, fails), Replay: true}, "[ [ [", "traffic"},
		{"members", 80, 24, Options{Journal: kept(3), Controls: idle}, "", "store"},
		{"members, larger", 120, 40, Options{Journal: kept(3), Controls: idle}, "", "store"},
		{"members, largest", 200, 50, Options{Journal: kept(3), Controls: idle}, "", "store"},
		{"members in ASCII", 120, 40, Options{Journal: kept(3), Controls: idle, ASCII: true}, "", "store"},
		{"members in Japanese", 120, 40, Options{Journal: kept(4), Controls: idle, Language: trace.Japanese}, "", "store"},
		{"members in Japanese, small", 80, 24, Options{Journal: kept(4), Controls: idle, Language: trace.Japanese}, "", "store"},
		{"no quorum", 120, 40, Options{Journal: kept(4), Controls: idle}, "", "store"},
		{"no quorum, small", 80, 24, Options{Journal: kept(4), Controls: idle, ASCII: true}, "", "store"},
		{"no quorum, two lines", 100, 30, Options{Journal: kept(4), Controls: idle}, "", "store"},
		{"members, tall", 80, 60, Options{Journal: kept(2), Controls: idle}, "", "store"},
		{"members, rewound", 120, 40, Options{Journal: kept(4), Replay: true}, "home", "store"},
	})
}

// TestLessons draws the states of a lesson at three sizes in both languages.
func TestLessons(t *testing.T) {
	journal, noted := story().journal, story().journal
	noted.Append(trace.Event{Kind: trace.KindNote, Actor: "lab", Message: "controller/controller.go:42:7: undefined: appsv1; the operator runs on as it was, which is all there is to say"})
	for _, l := range []trace.Language{trace.English, trace.Japanese} {
		all, cases, journal := pages(l), []partCase{}, journal
		add := func(name, page, keys, parts string) {
			for _, size := range goldenSizes {
				guide := lessonOf(all[page])
				if page == "hints" { // the last one is asked for
					guide.page.Hints, guide.page.More = guide.page.Hints[:1], true
					guide.turn = func(p *Page) { *p = all[page] }
				}
				o := Options{Journal: journal, Title: "zundoko", Language: l, Guide: guide, Controls: withShell}
				cases = append(cases, partCase{name, size[0], size[1], o, keys, parts})
			}
		}
		add("to be read", "reading", "", "lesson aside footer")
		add("half done", "half", "", "lesson aside")
		add("a wrong turn", "wrong", "", "lesson aside")
		add("hints", "hints", "h", "lesson")
		add("answered", "answered", "a 1 3 enter", "lesson aside")
		add("done", "done", "", "lesson aside footer")
		add("stuck", "stuck", "", "lesson aside")
		add("solved", "solved", "v", "lesson")
		add("acting", "half", "s", "aside footer")
		add("acting, done", "done", "s", "aside footer")
		journal = noted
		add("told by the lab", "half", "", "lesson aside")
		add("told by the lab, rewound", "half", "[", "aside")
		goldenParts(t, "lesson-"+string(l), cases)
	}
	page := pageOf(trace.English)
	goldenParts(t, "lesson-sizes", []partCase{
		{"tall", 80, 60, Options{Journal: journal, Controls: idle, Guide: lessonOf(page)}, "", "lesson"},
		{"smallest", 60, 16, Options{Journal: journal, Controls: idle, Guide: lessonOf(halfTicked(trace.English))}, "", "lesson aside"},
		{"in ASCII", 80, 24, Options{Journal: journal, Controls: idle, ASCII: true, Guide: lessonOf(pages(trace.English)["done"])}, "", "lesson aside"},
		{"zoomed", 120, 40, Options{Journal: journal, Controls: idle, Guide: lessonOf(page)}, "z", "lesson"},
		{"refused", 80, 24, Options{Journal: journal, Controls: idle, Language: trace.Japanese, Guide: lessonOf(halfTicked(trace.Japanese))}, "3 n", "footer"},
	})
}

func TestBootScreen(t *testing.T) {
	m := modelOf(t, Options{Journal: trace.New(trace.Options{}), Title: "zundoko", NoMotion: true}, 80, 24)
	m.booting = &boot{}
	for _, st := range []Step{
		{Name: "certificates", Done: true, Took: 12e6}, {Name: "etcd"}, {Name: "etcd", Done: true, Took: 300e6, Detail: "127.0.0.1:2379"}, {Name: "kube-apiserver"},
	} {
		m.booting.steps = addStep(m.booting.steps, st, 0)
	}
	out := strings.TrimSpace(m.frame())
	m.booting.err = os.ErrDeadlineExceeded
	golden(t, "boot", out+"\n===\n"+strings.TrimSpace(m.frame()))
}

func TestTooSmall(t *testing.T) {
	lines := tooSmall(&modelOf(t, Options{Journal: story().journal}, 50, 10).state)
	if len(lines) != 10 || !strings.Contains(strings.Join(lines, ""), "operator-lab needs 60x16 cells; this is 50x10.") {
		t.Errorf("a small screen says %q", lines)
	}
}

// TestNumbersOfSteps checks that there is a blank between the number of a step and what it did.
func TestNumbersOfSteps(t *testing.T) {
	m := modelOf(t, Options{Journal: trace.New(trace.Options{})}, 80, 24)
	e := &trace.Event{Kind: trace.KindCall, Verb: trace.VerbGet, Object: trace.Ref{APIVersion: "v1", Kind: "Pod", Name: "a"}, Source: trace.Cache}
	for call, want := range map[int]string{1: "    1 get ", 10: "   10 get ", 100: "  100 get "} {
		r := m.loop().stepRow(e, call, stepWidths{verb: 6, object: 18}, 80)
		if got := r.plain(); !strings.HasPrefix(got, want) {
			t.Errorf("%q does not begin with %q", got, want)
		}
	}
}
