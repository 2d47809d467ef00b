package tui

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

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
		"scrubber": {l.Scrubber, scrubberBar{s}}, "narration": {l.Narration, narrationBar{s}}, "footer": {l.Footer, footerBar{s}},
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
		Loop: idle.Loop, Cluster: idle.Cluster, Facts: idle.Facts,
		Shell: func() (*exec.Cmd, error) { return exec.Command("true"), nil },
	}
)

func TestPanes(t *testing.T) {
	story, duet := story().journal, duet().journal
	goldenParts(t, "panes", []partCase{
		{"story", 120, 40, Options{Journal: story, Controls: idle}, "", "header strip objects queue loop detail scrubber narration footer"},
		{"story in ASCII", 120, 40, Options{Journal: story, Controls: idle, ASCII: true}, "", "header strip objects queue loop detail scrubber narration footer"},
		{"story in Japanese", 120, 40, Options{Journal: story, Controls: idle, Language: trace.Japanese}, "", "header strip objects queue loop detail scrubber narration footer"},
		{"small, in Japanese", 80, 24, Options{Journal: story, Controls: idle, Language: trace.Japanese, ASCII: true}, "", "header strip loop detail narration footer"},
		{"duet", 200, 50, Options{Journal: duet, Replay: true, Title: "duet"}, "", "header strip objects queue loop detail cause narration"},
		{"duet in ASCII", 200, 50, Options{Journal: duet, Replay: true, ASCII: true}, "", "objects queue loop cause"},
		{"small", 80, 24, Options{Journal: duet, Replay: true}, "", "header strip loop detail narration footer"},
		{"rewound", 200, 50, Options{Journal: duet, Replay: true}, "[ [ [ [", "header objects queue loop detail cause scrubber narration"},
		{"rewound while it runs", 120, 40, Options{Journal: story, Controls: idle}, "[ [ [ s", "header objects loop narration footer"},
		{"merged events", 80, 24, Options{Journal: merging().journal, Controls: idle}, "2", "queue"},
		{"an object", 80, 24, Options{Journal: story, Controls: idle}, "1 down down y", "objects detail narration"},
		{"one operator", 120, 40, Options{Journal: duet, Replay: true}, "o down down enter", "strip queue loop"},
		{"a filter", 120, 40, Options{Journal: duet, Replay: true}, "/ t i m e r enter", "loop detail"},
		{"zoomed", 120, 40, Options{Journal: duet, Replay: true}, "6 z z", "cause"},
		{"tall", 80, 60, Options{Journal: duet, Replay: true}, "", "loop detail"},
		{"nothing yet", 120, 40, Options{Journal: trace.New(trace.Options{}), Controls: idle}, "", "header strip objects queue loop detail scrubber narration footer"},
		{"refused", 80, 24, Options{Journal: duet, Replay: true}, "space", "footer"},
	})
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
		{"undo", 120, 40, Options{Journal: story, Controls: withShell, Guide: lessonOf(halfTicked(trace.English))}, "u", "window footer"},
		{"undo, in Japanese", 80, 24, Options{Journal: story, Controls: withShell, Language: trace.Japanese, Guide: lessonOf(halfTicked(trace.Japanese))}, "u", "window footer"},
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
	journal := story().journal
	for _, l := range []trace.Language{trace.English, trace.Japanese} {
		all, cases := pages(l), []partCase{}
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
		add("to be read", "reading", "", "lesson narration footer")
		add("half done", "half", "", "lesson narration")
		add("a wrong turn", "wrong", "", "lesson narration")
		add("hints", "hints", "h", "lesson")
		add("answered", "answered", "a 1 3 enter", "lesson narration")
		add("done", "done", "", "lesson narration footer")
		add("stuck", "stuck", "", "lesson narration")
		add("solved", "solved", "v", "lesson")
		add("acting", "half", "s", "narration footer")
		add("acting, done", "done", "s", "narration footer")
		goldenParts(t, "lesson-"+string(l), cases)
	}
	page := pageOf(trace.English)
	goldenParts(t, "lesson-sizes", []partCase{
		{"tall", 80, 60, Options{Journal: journal, Controls: idle, Guide: lessonOf(page)}, "", "lesson"},
		{"smallest", 60, 16, Options{Journal: journal, Controls: idle, Guide: lessonOf(halfTicked(trace.English))}, "", "lesson narration"},
		{"in ASCII", 80, 24, Options{Journal: journal, Controls: idle, ASCII: true, Guide: lessonOf(pages(trace.English)["done"])}, "", "lesson narration"},
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
		m.booting.steps = addStep(m.booting.steps, st)
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
