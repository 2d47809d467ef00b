package tui

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// fakeGuide shows a page, and notes what it is asked.
type fakeGuide struct {
	page   Page
	calls  []string
	source *Source
	err    error
	does   func(context.Context, func(Step)) // while it is busy
	turn   func(*Page)                       // what comes of it
}

func lessonOf(p Page) *fakeGuide { return &fakeGuide{page: p} }

func (g *fakeGuide) Page() Page { return g.page }

func (g *fakeGuide) Do(ctx context.Context, what Action, text string, step func(Step)) (*Source, error) {
	g.calls = append(g.calls, strings.TrimSpace([]string{"hint", "check", "solution", "undo", "back", "next", "answer", "follow"}[what]+" "+text))
	if g.does != nil {
		g.does(ctx, step)
	}
	if g.turn != nil {
		g.turn(&g.page)
		g.page.Serial++
	}
	return g.source, g.err
}

// press presses keys, and lets what they start come to its end.
func press(m *Model, keys string) {
	for k := range strings.FieldsSeq(keys) {
		settle(m, m.press(k))
	}
}

// settle runs a command and what follows it.
func settle(m *Model, cmd tea.Cmd) {
	for cmd != nil {
		_, cmd = m.Update(cmd())
	}
}

func TestLessonLinesInThePast(t *testing.T) {
	m := modelOf(t, Options{Journal: story().journal, NoMotion: true, Guide: lessonOf(halfTicked(trace.English))}, 80, 24)
	press(m, "[")
	frame := m.frame()
	for _, text := range []string{"This is the past", "Not yet: There is exactly one Kiyoshi"} {
		if !strings.Contains(frame, text) {
			t.Errorf("%q is not on the screen:\n%s", text, frame)
		}
	}
}

// lessonBench is a bench with a lesson.
func lessonBench(tb testing.TB, p Page, w, h int) (*bench, *fakeGuide) {
	tb.Helper()
	g := lessonOf(p)
	b := &bench{loop: &fakeLoop{}, cluster: &fakeCluster{}, tb: tb}
	b.Model = modelOf(tb, Options{Journal: story().journal, Guide: g, Controls: Controls{Loop: b.loop, Cluster: b.cluster}}, w, h)
	return b, g
}

func TestANewTaskIsRead(t *testing.T) {
	b, g := lessonBench(t, pageOf(trace.English), 80, 24)
	whole := func() bool { l := b.layout(); return l.Pane[LessonPane].H == 18 && l.Pane[LoopPane].Empty() }
	if b.focus != LessonPane || !whole() {
		t.Fatalf("the lesson is not shown at first: focus %d, %+v", b.focus, b.layout().Pane)
	}
	for _, k := range []string{"enter", "3", "tab", "esc", "s", "["} {
		b.nav().setFocus(LessonPane)
		if press(b.Model, k); b.focus != LoopPane || b.layout().Pane[LoopPane].Empty() {
			t.Errorf("%s leads to pane %d", k, b.focus)
		}
	}
	press(b.Model, "L z / x enter")
	g.page.Serial++
	if b.refresh(false); b.focus != LoopPane {
		t.Error("the page of the same task takes the focus")
	}
	g.page.Task = "3/3"
	if b.refresh(false); b.focus != LessonPane || b.zoom != ZoomNormal || !whole() {
		t.Error("a new task is not shown")
	}
}

func TestLessonKeysWithoutALesson(t *testing.T) {
	b := newBench(t, story())
	for _, k := range []string{"n", "h", "a", "u", "v", "t", "!", "5"} {
		if press(b.Model, k); !strings.Contains(b.flash, "no lesson") && !strings.Contains(b.flash, "no shell") {
			t.Errorf("%s says %q", k, b.flash)
		}
	}
	if b.popup != nil || b.busy != nil {
		t.Error("something is asked or done")
	}
}

func TestNextOnlyWhenDone(t *testing.T) {
	b, g := lessonBench(t, pageOf(trace.English), 120, 40)
	offered := func() bool { return strings.Contains(footerOf(b.Model), "n next") }
	if press(b.Model, "n"); len(g.calls) > 0 || !strings.Contains(b.flash, "A word went away") {
		t.Errorf("n does %q and says %q", g.calls, b.flash)
	}
	b.flash = ""
	if offered() {
		t.Error("the footer offers n")
	}
	g.page = pages(trace.English)["done"]
	g.page.Serial = 2
	b.refresh(false)
	if !offered() || !strings.Contains(b.frame(), "DONE") {
		t.Error("that it is done is not said")
	}
	if press(b.Model, "n"); !slices.Equal(g.calls, []string{"next"}) {
		t.Errorf("n does %q", g.calls)
	}
	g.page.Next, g.page.Serial = "", 3
	b.refresh(false)
	if press(b.Model, "n"); len(g.calls) > 1 || !strings.Contains(b.flash, "last task") {
		t.Errorf("at the very end n does %q and says %q", g.calls, b.flash)
	}
}

func TestHintsInRisingStrength(t *testing.T) {
	b, g := lessonBench(t, pageOf(trace.English), 80, 24)
	all := []string{"look at pane 1", "press x", "press x, then enter"}
	g.turn = func(p *Page) {
		p.Hints = all[:len(p.Hints)+1]
		p.More = len(p.Hints) < len(all)
	}
	for _, hint := range all {
		press(b.Model, "3")
		if press(b.Model, "h"); !strings.Contains(b.frame(), hint) {
			t.Errorf("the hint %q is not on the screen", hint)
		}
	}
	if press(b.Model, "h"); len(g.calls) != len(all) || !strings.Contains(b.flash, "no more hints") {
		t.Errorf("asked %q, says %q", g.calls, b.flash)
	}
}

func TestAnswer(t *testing.T) {
	b, g := lessonBench(t, pages(trace.English)["answered"], 80, 24)
	press(b.Model, "a enter")
	if b.popup == nil || len(g.calls) > 0 {
		t.Error("an empty answer is sent")
	}
	b.paste("1\x1b2")
	press(b.Model, "backspace backspace 4 q enter")
	if want := []string{"answer 14q"}; !slices.Equal(g.calls, want) || b.popup != nil {
		t.Errorf("sent %q, want %q", g.calls, want)
	}
	press(b.Model, "a 1 esc")
	if b.popup != nil || len(g.calls) > 1 {
		t.Error("esc sends")
	}
	g.page.Done, g.page.Serial = true, 2
	b.refresh(false)
	if press(b.Model, "a"); b.popup != nil || !strings.Contains(b.flash, "its answer stands") || strings.Contains(b.frame(), "answers again") {
		t.Errorf("when the task is done, a says %q, and the screen\n%s", b.flash, b.frame())
	}
	g.page.Question, g.page.Done, g.page.Serial = "", false, 3
	b.refresh(false)
	if press(b.Model, "a"); !strings.Contains(b.flash, "no question") {
		t.Errorf("a says %q", b.flash)
	}
}

func TestUndoAsksFirst(t *testing.T) {
	b, g := lessonBench(t, pageOf(trace.English), 80, 24)
	for _, k := range []string{"n", "esc", "q", "x enter n"} {
		if press(b.Model, "u "+k); b.popup != nil || len(g.calls) > 0 {
			t.Errorf("u %s does %q", k, g.calls)
		}
	}
	if press(b.Model, "u y"); !slices.Equal(g.calls, []string{"undo"}) || !strings.Contains(b.flash, "undone") {
		t.Errorf("u y does %q and says %q", g.calls, b.flash)
	}
}

func TestSolutionAsksFirst(t *testing.T) {
	b, g := lessonBench(t, pageOf(trace.English), 80, 24)
	if press(b.Model, "v n"); len(g.calls) > 0 {
		t.Fatalf("v n does %q", g.calls)
	}
	g.turn = func(p *Page) { p.Solution = "The answer to all." }
	if press(b.Model, "v y"); !slices.Equal(g.calls, []string{"solution"}) || !strings.Contains(b.frame(), "The answer to all.") {
		t.Errorf("v y does %q", g.calls)
	}
	press(b.Model, "3")
	if press(b.Model, "v"); len(g.calls) > 1 || b.focus != LessonPane || b.popup != nil {
		t.Error("a solution that is known is asked for")
	}
	b, g = lessonBench(t, pages(trace.English)["done"], 80, 24)
	if press(b.Model, "v"); !slices.Equal(g.calls, []string{"solution"}) {
		t.Errorf("of a task that is done v does %q", g.calls)
	}
}

func TestCheckNow(t *testing.T) {
	b, g := lessonBench(t, pageOf(trace.English), 80, 24)
	if press(b.Model, "t"); !slices.Equal(g.calls, []string{"check"}) || !strings.Contains(b.flash, "not yet: A word") {
		t.Errorf("t does %q and says %q", g.calls, b.flash)
	}
	g.turn = func(p *Page) { p.Done = true }
	if press(b.Model, "t"); !strings.Contains(b.flash, "done") {
		t.Errorf("t says %q", b.flash)
	}
}

func TestShell(t *testing.T) {
	b, _ := lessonBench(t, pageOf(trace.English), 80, 24)
	b.controls.Shell = func() (*exec.Cmd, error) { return nil, errors.New("no kubeconfig") }
	if press(b.Model, "!"); !strings.Contains(b.flash, "no kubeconfig") {
		t.Errorf("says %q", b.flash)
	}
	b.controls.Shell = func() (*exec.Cmd, error) { return exec.Command("true"), nil }
	if _, cmd := b.Update(b.press("!")()); cmd == nil {
		t.Error("no shell is run")
	}
	b.flash = ""
	exit := exec.Command("sh", "-c", "exit 3").Run()
	if b.Update(leftMsg{exit}); b.flash != "" {
		t.Errorf("a last command that failed says %q", b.flash)
	}
	if b.Update(leftMsg{errors.New("no sh")}); !strings.Contains(b.flash, "no sh") {
		t.Errorf("a shell that failed says %q", b.flash)
	}
}

func TestTheLessonStaysWhenTheGuideFails(t *testing.T) {
	b, g := lessonBench(t, pageOf(trace.English), 80, 24)
	g.err = errors.New("etcd did not start")
	journal := b.opts.Journal
	if press(b.Model, "u y"); !strings.Contains(b.flash, "etcd did not start") || b.busy != nil || b.opts.Journal != journal {
		t.Errorf("says %q", b.flash)
	}
	g.source = &Source{Journal: duet().journal}
	if press(b.Model, "u y"); !strings.Contains(b.flash, "etcd did not start") || b.opts.Journal != g.source.Journal {
		t.Error("a source is not shown because something failed on the way")
	}
	g.source, g.does = nil, func(context.Context, func(Step)) { panic("a bug") }
	press(b.Model, "u y")
	if p, is := b.popup.(*messagePopup); !is || !strings.Contains(p.text, "a bug") {
		t.Errorf("a bug of the guide is not shown: %q %T", b.flash, b.popup)
	}
	checkSize(t, b.Model)
}

// TestStepsAfterTheWork: who keeps the function that tells of steps, and uses it when the work is over, is not held up.
func TestStepsAfterTheWork(t *testing.T) {
	b, g := lessonBench(t, pageOf(trace.English), 80, 24)
	var kept func(Step)
	g.does = func(_ context.Context, step func(Step)) { kept = step }
	press(b.Model, "u y")
	for range 1000 {
		kept(Step{Name: "etcd"})
	}
}

func TestWorkIsShown(t *testing.T) {
	b, g := lessonBench(t, pageOf(trace.English), 80, 24)
	begun, goOn := make(chan struct{}), make(chan struct{})
	g.does = func(_ context.Context, step func(Step)) {
		close(begun)
		<-goOn
		step(Step{Name: "etcd"})
		step(Step{Name: "etcd", Done: true, Took: time.Second})
	}
	b.press("u")
	cmd := b.press("y")
	<-begun
	if b.refresh(false); strings.Contains(b.frame(), "Putting") {
		t.Error("what may be over at once has a window")
	}
	later := b.busy.began.Add(time.Second)
	b.clock = func() time.Time { return later }
	if b.refresh(false); !strings.Contains(b.frame(), "Putting the cluster back") {
		t.Error("it is not said that something is under way")
	}
	checkSize(t, b.Model)
	for _, k := range []string{"n", "x", "esc", "space", "/"} {
		if b.press(k) != nil || b.popup != nil || b.typing || len(b.loop.calls) > 0 {
			t.Errorf("%s is taken meanwhile", k)
		}
	}
	if quit := b.press("q"); quit == nil {
		t.Error("q does not quit")
	} else if _, is := quit().(tea.QuitMsg); !is {
		t.Error("q does not quit")
	}
	close(goOn)
	_, cmd = b.Update(cmd())
	if !strings.Contains(b.frame(), "etcd") {
		t.Error("the step is not shown")
	}
	golden(t, "work", strings.Join(b.busy.window(&b.state), "\n"))
	for cmd != nil {
		_, cmd = b.Update(cmd())
	}
	if b.busy != nil || strings.Contains(b.frame(), "Putting") {
		t.Error("the window stays")
	}
}

func TestARoomBeginsAnew(t *testing.T) {
	b, g := lessonBench(t, pageOf(trace.English), 120, 40)
	fresh := newClockwork()
	h := fresh.zundoko(song...)
	h.begin()
	fresh.run(300e6, h)
	loop := &fakeLoop{}
	press(b.Model, "1 down / d e m o enter [ [")
	if !b.past() {
		t.Fatal("it is not in the past")
	}
	g.source = &Source{Journal: fresh.journal, Controls: Controls{Loop: loop}, Title: "the next"}
	b.ran = []string{"kubectl get zundokos"}
	if press(b.Model, "u y"); b.ran != nil {
		t.Error("the commands of the task do not begin anew")
	}
	if b.past() || b.title != "the next" || len(b.index.reconciles) >= len(newIndexOf(story()).reconciles) || b.filter[ObjectsPane] != "" {
		t.Errorf("past %v, title %q, %d reconciles, filter %q", b.past(), b.title, len(b.index.reconciles), b.filter[ObjectsPane])
	}
	if b.focus != ObjectsPane || b.w != 120 || b.h != 40 {
		t.Errorf("focus %d, %dx%d", b.focus, b.w, b.h)
	}
	if press(b.Model, "space"); len(loop.calls) != 1 || len(b.loop.calls) > 0 {
		t.Error("the loop of the new source is not held")
	}
	fresh.run(3000e6, h)
	before := len(b.index.reconciles)
	if b.refresh(false); len(b.index.reconciles) <= before {
		t.Error("its journal is not followed")
	}
	checkSize(t, b.Model)
	g.source, g.page = &Source{Journal: story().journal}, Page{Lesson: "10/31", Task: "1/2", Text: "x", Serial: 9}
	if press(b.Model, "u y"); b.focus != LessonPane || b.title != "the next" {
		t.Error("the task of the new source is not shown")
	}
}

func newIndexOf(c *clockwork) *index {
	ix := newIndex(c.journal)
	ix.update()
	return ix
}

// TestARoomOfAnotherTerminal: the lesson was undone without a key of this screen.
func TestARoomOfAnotherTerminal(t *testing.T) {
	b, g := lessonBench(t, pageOf(trace.English), 80, 24)
	journal := duet().journal
	g.page.Moved, g.page.Serial = true, 7
	g.source = &Source{Journal: journal}
	g.turn = func(p *Page) { p.Moved = false }
	b.ran = []string{"kubectl get zundokos"}
	b.popup = &answerPopup{text: "4"}
	b.refresh(false)
	settle(b.Model, b.catchUp())
	if answer, typing := b.popup.(*answerPopup); !typing || answer.text != "4" {
		t.Error("the answer that was being typed is lost")
	}
	if len(b.ran) != 1 {
		t.Error("the commands of the task begin anew")
	}
	if !slices.Equal(g.calls, []string{"follow"}) || b.opts.Journal != journal {
		t.Errorf("asked for %q", g.calls)
	}
	g.page.Moved, g.page.Serial, g.turn, g.source, g.err = true, 20, nil, nil, errors.New("it is gone")
	b.refresh(false)
	settle(b.Model, b.catchUp())
	if b.catchUp() != nil || len(g.calls) != 2 || !strings.Contains(b.flash, "it is gone") {
		t.Errorf("what fails is tried again: %q, says %q", g.calls, b.flash)
	}
	g.page.Task, g.page.Serial = "another", 21
	if b.refresh(false); b.popup != nil {
		t.Error("the answer to the question of the task before is still asked for")
	}
}

// TestRunWaitsForTheGuide: when the screen is gone, nothing of it is under way.
func TestRunWaitsForTheGuide(t *testing.T) {
	b, g := lessonBench(t, pageOf(trace.English), 80, 24)
	ctx, cancel := context.WithCancel(t.Context())
	b.ctx = ctx
	over := false
	g.does = func(ctx context.Context, _ func(Step)) { <-ctx.Done(); over = true }
	b.press("u")
	b.press("y")
	cancel()
	if b.works.Wait(); !over {
		t.Error("the guide is still at work")
	}
}

func TestNoticeAndDoneAreShownAtTheTop(t *testing.T) {
	b, g := lessonBench(t, pageOf(trace.English), 80, 24)
	press(b.Model, "pgdown")
	for name, text := range map[string]string{"wrong": "garbage collector", "done": "compares and repairs"} {
		serial := g.page.Serial + 1
		b.scroll[LessonPane] = 5
		g.page = pages(trace.English)[name]
		g.page.Serial = serial
		if b.refresh(false); !strings.Contains(b.frame(), text) {
			t.Errorf("%s is not on the screen", name)
		}
	}
}

// TestTheBottomLineIsNoMarkdown shows a page's code without its backquotes where there is no pane for it.
func TestTheBottomLineIsNoMarkdown(t *testing.T) {
	page := pages(trace.English)["done"]
	page.DoneText = "It has a `uid`, and **no** status."
	b, _ := lessonBench(t, page, 80, 24)
	if frame := b.frame(); !strings.Contains(frame, "It has a uid, and no status.") || strings.Contains(frame, "`uid`") || strings.Contains(frame, "5: all") {
		t.Errorf("the screen says\n%s", frame)
	}
	page.DoneText = "Two things:\n\n- It has a `uid`."
	b, _ = lessonBench(t, page, 80, 24)
	if press(b.Model, "3"); !strings.Contains(b.frame(), "(5: all)") {
		t.Errorf("that there is more is not told:\n%s", b.frame())
	}
}
