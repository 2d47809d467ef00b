package tui

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// fakeLoop notes what it is told.
type fakeLoop struct{ calls []string }

func (l *fakeLoop) Pause()    { l.calls = append(l.calls, "pause") }
func (l *fakeLoop) Resume()   { l.calls = append(l.calls, "resume") }
func (l *fakeLoop) Step()     { l.calls = append(l.calls, "step") }
func (l *fakeLoop) StepCall() { l.calls = append(l.calls, "step call") }

// fakeCluster notes what it is asked.
type fakeCluster struct {
	calls  []string
	text   string
	fields []Field
	err    error
}

func (c *fakeCluster) Get(_ context.Context, r trace.Ref) ([]byte, error) {
	c.calls = append(c.calls, "get "+r.String())
	return []byte("kind: " + r.Kind + "\n"), c.err
}

func (c *fakeCluster) Update(_ context.Context, text []byte) error {
	c.text = string(text)
	return c.err
}

func (c *fakeCluster) Create(_ context.Context, text []byte) error {
	c.calls = append(c.calls, "create "+string(text))
	return c.err
}

func (c *fakeCluster) Fields(_ context.Context, crd, version string) ([]Field, error) {
	c.calls = append(c.calls, "fields "+crd+" "+version)
	return c.fields, c.err
}

func (c *fakeCluster) Patch(_ context.Context, r trace.Ref, merge []byte) error {
	c.calls = append(c.calls, "patch "+r.String()+" "+string(merge))
	return c.err
}

func (c *fakeCluster) Delete(_ context.Context, r trace.Ref) error {
	c.calls = append(c.calls, "delete "+r.String())
	return c.err
}

// bench is a model with a loop and a cluster that note what they are told.
type bench struct {
	*Model
	loop     *fakeLoop
	cluster  *fakeCluster
	restarts int
	tb       testing.TB
}

func newBench(tb testing.TB, c *clockwork) *bench {
	tb.Helper()
	b := &bench{loop: &fakeLoop{}, cluster: &fakeCluster{}, tb: tb}
	b.Model = modelOf(tb, Options{Journal: c.journal, Controls: Controls{
		Loop: b.loop, Cluster: b.cluster, Restart: func() { b.restarts++ },
	}}, 120, 40)
	return b
}

// keys presses keys, separated by blanks, and takes what their commands return; it returns what the last one did.
func (b *bench) keys(keys string) tea.Msg {
	b.tb.Helper()
	var cmd tea.Cmd
	var msg tea.Msg
	for k := range strings.FieldsSeq(keys) {
		msg = nil
		if cmd = b.press(k); cmd != nil {
			msg = cmd()
			b.Update(msg)
		}
		checkSize(b.tb, b.Model)
	}
	return msg
}

func TestLoopKeys(t *testing.T) {
	c := newClockwork()
	h := c.zundoko(song...)
	h.begin()
	c.run(100e6, h)
	b := newBench(t, c)
	b.keys("space s S")
	h.Pause() // what the journal says counts
	b.refresh(false)
	b.keys("space")
	if want := []string{"pause", "step", "step call", "resume"}; !slices.Equal(b.loop.calls, want) {
		t.Errorf("the loop was told %q, want %q", b.loop.calls, want)
	}
}

// TestUnansweredOrders presses keys while the operator's process does not answer.
func TestUnansweredOrders(t *testing.T) {
	b := newBench(t, story())
	now := time.Now()
	b.clock = func() time.Time { return now }
	carryOut := b.press("space")
	if carryOut == nil || b.press("s") != nil {
		t.Fatal("an order does not wait for the one before")
	}
	if b.refresh(false); strings.Contains(b.frame(), "does not answer") {
		t.Error("it says at once that there is no answer")
	}
	now = now.Add(2 * answerAfter)
	if b.refresh(false); !strings.Contains(b.frame(), "the operator does not answer") {
		t.Errorf("the footer is %q", footerOf(b.Model))
	}
	if b.press("S") != nil || b.press("j") != nil {
		t.Error("a key waits")
	}
	b.Update(carryOut())
	if len(b.orders.waiting) > 0 || !b.orders.began.IsZero() || strings.Contains(b.frame(), "does not answer") {
		t.Errorf("after the answer there are %+v", b.orders)
	}
	b.keys("s S")
	if want := []string{"resume", "step", "step call"}; !slices.Equal(b.loop.calls, want) {
		t.Errorf("the loop was told %q, want %q", b.loop.calls, want)
	}
}

// playing is a demo with one deed to do.
type playing struct {
	deed   string
	played []string
}

func (p *playing) Waiting() string { return p.deed }
func (p *playing) Next()           { p.deed, p.played = "", append(p.played, "next") }
func (p *playing) PlayOn()         { p.deed, p.played = "", append(p.played, "on") }

func TestTheDemoWaits(t *testing.T) {
	for key, want := range map[string]string{"g": "next", "G": "on"} {
		b := newBench(t, story())
		demo := &playing{deed: "A Hikawa is applied."}
		b.controls.Demo = demo
		b.refresh(false)
		if !strings.Contains(b.frame(), "g does what comes next: A Hikawa is applied.") || !strings.Contains(footerOf(b.Model), "g go on") {
			t.Errorf("the screen does not tell what comes next: %s", b.frame())
		}
		b.keys(key)
		if !slices.Equal(demo.played, []string{want}) || strings.Contains(b.frame(), "comes next") {
			t.Errorf("%s played %q", key, demo.played)
		}
		if b.keys("g"); len(demo.played) != 1 || !strings.Contains(b.flash, "no deed") {
			t.Errorf("without a deed g says %q", b.flash)
		}
	}
}

// footerOf returns the text of the footer.
func footerOf(m *Model) string {
	r := footerBar{&m.state}.draw(Rect{W: 200})[0]
	return r.plain()
}

func TestActingKeysAreRefusedInThePast(t *testing.T) {
	b := newBench(t, story())
	b.keys("[")
	if !b.past() {
		t.Fatal("[ does not rewind")
	}
	for _, k := range []string{"space", "s", "S", "x", "e", "r"} {
		b.keys(k)
		if !strings.Contains(b.flash, "press L first") {
			t.Errorf("%s says %q", k, b.flash)
		}
	}
	if len(b.loop.calls)+len(b.cluster.calls)+b.restarts > 0 {
		t.Errorf("something was done: %q %q", b.loop.calls, b.cluster.calls)
	}
	b.keys("L")
	if b.past() || !b.follow {
		t.Error("L does not return to the live edge")
	}
	if b.keys("r"); b.restarts != 1 {
		t.Errorf("r restarted the operator %d times", b.restarts)
	}
}

func TestActingKeysAreRefusedInARecording(t *testing.T) {
	m := modelOf(t, Options{Journal: duet().journal, Replay: true}, 80, 24)
	for _, k := range []string{"space", "s", "S", "x", "e", "r"} {
		m.press(k)
		if !strings.Contains(m.flash, "recording") {
			t.Errorf("%s says %q", k, m.flash)
		}
	}
	if footer := footerOf(m); strings.Contains(footer, "pause") {
		t.Errorf("the footer offers what cannot be done: %q", footer)
	}
}

func TestEveryKeyIsInTheHelpInBothLanguages(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range newKeyMap().commands {
		for _, k := range c.Keys() {
			if seen[k] {
				t.Errorf("key %s does two things", k)
			}
			seen[k] = true
		}
		_, english := c.words(trace.English)
		_, japanese := c.words(trace.Japanese)
		if c.Help().Key != "" && (english == "" || japanese == "") {
			t.Errorf("key %s: %q, %q", c.Help().Key, english, japanese)
		}
	}
	for k := range strings.FieldsSeq("space s S x r [ ] { } L end home e f w o 1 6 tab shift+tab z / d y c l n h ? enter esc q ctrl+c j k up down") {
		if !seen[k] {
			t.Errorf("key %s does nothing", k)
		}
	}
}

func TestRewind(t *testing.T) {
	b := newBench(t, duetLive())
	reconciles := b.index.reconciles
	newest := reconciles[len(reconciles)-1]
	if b.reconcile() != newest {
		t.Fatal("the newest reconcile is not selected at first")
	}
	b.keys("[")
	before := reconciles[len(reconciles)-2]
	if b.cursor() != before.Last || b.reconcile().ID != before.ID {
		t.Errorf("[ goes to event %d and #%d, want %d and #%d", b.cursor(), b.reconcile().ID, before.Last, before.ID)
	}
	if o := b.snapshot.Object(trace.Ref{APIVersion: "hikawa.example.org/v1", Kind: "Zundoko", Namespace: "default", Name: "demo-005"}); o == nil {
		t.Error("an object that was there is not")
	}
	for range 100 {
		b.keys("[")
	}
	if b.reconcile().ID != reconciles[0].ID {
		t.Errorf("many [ end at #%d", b.reconcile().ID)
	}
	b.keys("home { {")
	if b.cursor() != 1 {
		t.Errorf("home is event %d", b.cursor())
	}
	b.keys("}")
	if b.cursor() != 2 {
		t.Errorf("} goes to event %d", b.cursor())
	}
	for range 100 {
		b.keys("]")
	}
	if b.past() {
		t.Error("many ] do not end at the live edge")
	}
}

// TestRewindShowsTheTimer checks that at the end of a reconcile whose key comes back it is not out of the queue.
func TestRewindShowsTheTimer(t *testing.T) {
	b := newBench(t, story())
	asked := 0
	for _, r := range b.index.reconciles {
		if r.Outcome() != trace.OutcomeError || r.Again {
			continue
		}
		asked++
		b.nav().goToReconcile(r)
		if strings.Contains(b.frame(), "empty") {
			t.Errorf("after #%d, which is tried again, the queue is empty:\n%s", r.ID, b.frame())
		}
	}
	if asked == 0 {
		t.Error("no reconcile is tried again")
	}
}

// duetLive is duet as if it went on.
func duetLive() *clockwork { return duet() }

func TestRewindStaysWhenTheJournalGrows(t *testing.T) {
	c := story()
	b := newBench(t, c)
	b.keys("[ [")
	at, frame := b.cursor(), b.sel
	for range 3000 {
		c.journal.Append(trace.Event{Kind: trace.KindNote, Message: "more"})
	}
	b.refresh(false)
	if b.cursor() != at || b.sel != frame || !b.past() {
		t.Errorf("the cursor moved from %d to %d", at, b.cursor())
	}
	checkSize(t, b.Model)
}

func TestResizeAndFilterKeepTheSelection(t *testing.T) {
	b := newBench(t, duetLive())
	b.keys("up up up")
	sel := b.sel
	for _, size := range [][2]int{{80, 24}, {10, 3}, {0, 0}, {200, 50}, {60, 16}} {
		b.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		checkSize(t, b.Model)
	}
	b.keys("/ k v enter")
	b.keys("/ esc")
	if b.sel != sel {
		t.Errorf("the selection was %+v and is %+v", sel, b.sel)
	}
}

func TestFollow(t *testing.T) {
	c := newClockwork()
	h := c.zundoko(song...)
	h.begin()
	c.run(600e6, h)
	b := newBench(t, c)
	b.keys("up")
	selected := b.sel
	c.run(1000e6, h)
	b.refresh(false)
	if b.sel != selected {
		t.Error("the selection moves although it was moved by hand")
	}
	b.keys("f")
	if b.reconcile() != b.index.reconciles[len(b.index.reconciles)-1] {
		t.Error("f does not go to the newest")
	}
	c.run(1000e6, h)
	b.refresh(false)
	if b.reconcile() != b.index.reconciles[len(b.index.reconciles)-1] {
		t.Error("the newest is not followed")
	}
}

func TestNoticeStaysUntilAKey(t *testing.T) {
	m := modelOf(t, Options{Journal: duet().journal, Replay: true, Notice: "the end is missing"}, 80, 24)
	m.clock = func() time.Time { return time.Now().Add(time.Hour) }
	m.refresh(true)
	if !strings.Contains(m.frame(), "the end is missing") {
		t.Error("the notice is gone")
	}
	if m.press("j"); strings.Contains(m.frame(), "the end is missing") {
		t.Error("the notice stays")
	}
}

func TestMouse(t *testing.T) {
	b := newBench(t, story())
	b.Update(tea.MouseClickMsg{X: 5, Y: 5, Button: tea.MouseLeft})
	if b.focus != ObjectsPane {
		t.Errorf("a click on the objects focuses pane %d", b.focus)
	}
	sel := b.sel
	b.Update(tea.MouseWheelMsg{X: 60, Y: 8, Button: tea.MouseWheelUp})
	if b.focus != LoopPane || b.sel == sel {
		t.Error("the wheel does not move in the loop")
	}
	b.Update(tea.MouseWheelMsg{X: -1, Y: 500, Button: tea.MouseWheelDown})
}

func TestFilterTakesWideCharacters(t *testing.T) {
	b := newBench(t, story())
	b.keys("1 / ドコ enter")
	if b.filter[ObjectsPane] != "ドコ" {
		t.Errorf("the filter is %q", b.filter[ObjectsPane])
	}
}

// TestFilterSelects selects an object that the filter shows: the detail is about it.
func TestFilterSelects(t *testing.T) {
	b := newBench(t, story())
	b.keys("1 / d e m o - 0 0 2 enter")
	if o := b.objects().subject().object; o == nil || o.Ref.Name != "demo-002" {
		t.Errorf("selected is %+v", o)
	}
	b.keys("/ n o n e enter") // only what a held write would make is shown
	if got := b.objects().subject().ref.Name; got != "demo-005" {
		t.Errorf("selected is %q", got)
	}
}

// TestSamples applies a sample from its menu, which there is only if there are samples.
func TestSamples(t *testing.T) {
	applied := 0
	controls := idle
	controls.Samples = []Sample{{Text: "config/samples/a.yaml", Apply: func(context.Context) error { applied++; return nil }}}
	m := modelOf(t, Options{Journal: story().journal, Controls: controls}, 80, 24)
	press(m, "p")
	if m.popup == nil || !strings.Contains(m.frame(), "config/samples/a.yaml") {
		t.Errorf("the menu has not the sample: %s", m.frame())
	}
	press(m, "enter")
	if applied != 1 {
		t.Errorf("the sample was applied %d times", applied)
	}
	m = modelOf(t, Options{Journal: story().journal, Controls: idle}, 80, 24)
	press(m, "p")
	if m.popup != nil || !strings.Contains(m.flash, "no samples") {
		t.Errorf("without samples there is a menu, and it says %q", m.flash)
	}
}
