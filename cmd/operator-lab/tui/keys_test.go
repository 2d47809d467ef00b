package tui

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	calls []string
	text  string
	err   error
}

func (c *fakeCluster) Get(_ context.Context, r trace.Ref) ([]byte, error) {
	c.calls = append(c.calls, "get "+r.String())
	return []byte("kind: " + r.Kind + "\n"), c.err
}

func (c *fakeCluster) Update(_ context.Context, text []byte) error {
	c.text = string(text)
	return c.err
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
	loop    *fakeLoop
	cluster *fakeCluster
	tb      testing.TB
}

func newBench(tb testing.TB, c *clockwork) *bench {
	tb.Helper()
	b := &bench{loop: &fakeLoop{}, cluster: &fakeCluster{}, tb: tb}
	b.Model = modelOf(tb, Options{Journal: c.journal, Controls: Controls{Loop: b.loop, Cluster: b.cluster}}, 120, 40)
	return b
}

// keys presses keys, separated by blanks, and takes what the last one's command returns.
func (b *bench) keys(keys string) tea.Msg {
	b.tb.Helper()
	var cmd tea.Cmd
	for k := range strings.FieldsSeq(keys) {
		cmd = b.press(k)
		checkSize(b.tb, b.Model)
	}
	if cmd == nil {
		return nil
	}
	msg := cmd()
	b.Update(msg)
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

func TestActingKeysAreRefusedInThePast(t *testing.T) {
	b := newBench(t, story())
	b.keys("[")
	if !b.past() {
		t.Fatal("[ does not rewind")
	}
	for _, k := range []string{"space", "s", "S", "x", "e"} {
		b.keys(k)
		if !strings.Contains(b.flash, "press L first") {
			t.Errorf("%s says %q", k, b.flash)
		}
	}
	if len(b.loop.calls)+len(b.cluster.calls) > 0 {
		t.Errorf("something was done: %q %q", b.loop.calls, b.cluster.calls)
	}
	b.keys("L")
	if b.past() || !b.follow {
		t.Error("L does not return to the live edge")
	}
}

func TestActingKeysAreRefusedInARecording(t *testing.T) {
	m := modelOf(t, Options{Journal: duet().journal, Replay: true}, 80, 24)
	for _, k := range []string{"space", "s", "S", "x", "e"} {
		m.press(k)
		if !strings.Contains(m.flash, "recording") {
			t.Errorf("%s says %q", k, m.flash)
		}
	}
	if footer := m.footer(200); strings.Contains(footer.plain(), "pause") {
		t.Errorf("the footer offers what cannot be done: %q", footer.plain())
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
	for _, k := range strings.Fields("space s S x [ ] { } L end home e f w o 1 6 tab shift+tab z / d y c l n h ? enter esc q ctrl+c j k up down") {
		if !seen[k] {
			t.Errorf("key %s does nothing", k)
		}
	}
}

func TestRewind(t *testing.T) {
	b := newBench(t, duetLive())
	spans := b.index.spans
	newest := spans[len(spans)-1]
	if b.span() != newest {
		t.Fatal("the newest reconcile is not selected at first")
	}
	b.keys("[")
	before := spans[len(spans)-2]
	if b.cursor() != before.Last || b.span().ID != before.ID {
		t.Errorf("[ goes to event %d and #%d, want %d and #%d", b.cursor(), b.span().ID, before.Last, before.ID)
	}
	if o := b.state.Object(trace.Ref{APIVersion: "hikawa.example.org/v1", Kind: "Zundoko", Namespace: "default", Name: "demo-005"}); o == nil {
		t.Error("an object that was there is not")
	}
	for range 100 {
		b.keys("[")
	}
	if b.span().ID != spans[0].ID {
		t.Errorf("many [ end at #%d", b.span().ID)
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
	if b.span() != b.index.spans[len(b.index.spans)-1] {
		t.Error("f does not go to the newest")
	}
	c.run(1000e6, h)
	b.refresh(false)
	if b.span() != b.index.spans[len(b.index.spans)-1] {
		t.Error("the newest is not followed")
	}
}

func TestBreakMenu(t *testing.T) {
	b := newBench(t, story())
	b.keys("1 down x")
	if _, is := b.popup.(*menu); !is {
		t.Fatal("x opens no menu")
	}
	b.keys("enter")
	if want := []string{"delete Zundoko demo-001"}; !slices.Equal(b.cluster.calls, want) {
		t.Errorf("asked for %q, want %q", b.cluster.calls, want)
	}
	if !strings.Contains(b.flash, "done") {
		t.Errorf("says %q", b.flash)
	}
	b.cluster.err = errors.New("forbidden")
	b.keys("x down enter")
	if got := b.cluster.calls[len(b.cluster.calls)-1]; got != `patch Zundoko demo-001 {"spec":{"say":"Zun-drift"}}` {
		t.Errorf("asked for %q", got)
	}
	if !strings.Contains(b.flash, "forbidden") {
		t.Errorf("the error is not shown: %q", b.flash)
	}
}

func TestDrifts(t *testing.T) {
	raw := []byte(`{"spec":{"replicas":3,"paused":false,"template":{"containers":[{"image":"a","name":"c"},{"image":"b"}]},"none":null},"data":{"k":"7"}}`)
	var got []string
	for _, d := range drifts(raw) {
		got = append(got, d.path+" "+d.from+" "+d.to+" "+string(d.merge))
	}
	want := []string{
		`spec.paused false true {"spec":{"paused":true}}`,
		`spec.replicas 3 4 {"spec":{"replicas":4}}`,
		`spec.template.containers[0].name c c-drift {"spec":{"template":{"containers":[{"image":"a","name":"c-drift"},{"image":"b"}]}}}`,
		`spec.template.containers[0].image a a-drift {"spec":{"template":{"containers":[{"image":"a-drift","name":"c"},{"image":"b"}]}}}`,
		`spec.template.containers[1].image b b-drift {"spec":{"template":{"containers":[{"image":"a","name":"c"},{"image":"b-drift"}]}}}`,
		`data.k "7" "8" {"data":{"k":"8"}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("drifts:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if d := drifts([]byte(`{"metadata":{"labels":{"app":"x"}}}`)); len(d) != 1 || string(d[0].merge) != `{"metadata":{"labels":{"app":"x-drift"}}}` {
		t.Errorf("of labels: %+v", d)
	}
}

func TestEdit(t *testing.T) {
	b := newBench(t, story())
	msg, is := b.keys("1 e").(editMsg)
	if !is || msg.err != nil || msg.file == "" {
		t.Fatalf("e brings %+v", msg)
	}
	if err := os.WriteFile(msg.file, []byte("kind: Changed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Update(b.edited(editedMsg{msg, nil})())
	if b.cluster.text != "kind: Changed\n" || !strings.Contains(b.flash, "done") {
		t.Errorf("written back %q, says %q", b.cluster.text, b.flash)
	}
	if _, err := os.Stat(msg.file); !errors.Is(err, os.ErrNotExist) {
		t.Error("the file is left behind")
	}
}

func TestEditThatIsRefusedKeepsTheText(t *testing.T) {
	b := newBench(t, story())
	msg := b.keys("1 e").(editMsg)
	b.cluster.err = errors.New("spec.mood: invalid")
	t.Cleanup(func() { _ = os.Remove(msg.file) })
	if err := os.WriteFile(msg.file, []byte("kind: Bad\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Update(b.edited(editedMsg{msg, nil})())
	if !strings.Contains(b.flash, "spec.mood: invalid") || !strings.Contains(b.flash, msg.file) {
		t.Errorf("says %q", b.flash)
	}
}

func TestEditorCommand(t *testing.T) {
	for env, want := range map[string]string{"EDITOR": `ed -x "$1"`, "": "vi"} {
		cmd := editorCommand(t.Context(), func(name string) string {
			if name == env {
				return "ed -x"
			}
			return ""
		}, "/tmp/f")
		if line := strings.Join(cmd.Args, " "); !strings.Contains(line, want) || !strings.HasSuffix(line, "/tmp/f") {
			t.Errorf("%q runs %q", env, line)
		}
	}
}

func TestQuitLetsTheLoopGo(t *testing.T) {
	b := newBench(t, story())
	if _, is := b.keys("q").(tea.QuitMsg); !is {
		t.Error("q does not quit")
	}
	b.letGo()
	if want := []string{"resume"}; !slices.Equal(b.loop.calls, want) {
		t.Errorf("the loop was told %q, want %q", b.loop.calls, want)
	}
}

func TestBoot(t *testing.T) {
	failed := errors.New("the port is taken")
	m := modelOf(t, Options{Boot: func(context.Context, func(Step)) (Controls, error) { return Controls{}, failed }}, 80, 24)
	m.press("space") // no key but quit works
	m.start()
	m.Update(m.awaitStep()())
	if m.booting == nil || !errors.Is(m.bootErr, failed) || !strings.Contains(m.frame(), "the port is taken") {
		t.Error("the failure is not shown")
	}
	loop := &fakeLoop{}
	m = modelOf(t, Options{Boot: func(_ context.Context, step func(Step)) (Controls, error) {
		step(Step{Name: "etcd", Done: true})
		return Controls{Loop: loop}, nil
	}}, 80, 24)
	m.start()
	for m.booting != nil {
		m.Update(m.awaitStep()())
	}
	if m.press("space"); len(loop.calls) != 1 {
		t.Error("the loop cannot be held after the boot")
	}
}

func TestEnvironment(t *testing.T) {
	for _, test := range []struct {
		env            map[string]string
		ascii, noColor bool
	}{
		{map[string]string{"LANG": "en_US.UTF-8"}, false, false},
		{map[string]string{"LANG": "ja_JP.utf8", "NO_COLOR": "anything"}, false, true},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "C"}, true, false},
		{map[string]string{}, true, false},
		{map[string]string{"LANG": "C.UTF-8", "TERM": "dumb"}, true, true},
	} {
		o := Options{Getenv: func(k string) string { return test.env[k] }}.withDefaults()
		if o.ASCII != test.ascii || o.NoColor != test.noColor {
			t.Errorf("%v: ASCII %v, NoColor %v", test.env, o.ASCII, o.NoColor)
		}
	}
}

func TestNoColorSendsNoColor(t *testing.T) {
	m := modelOf(t, Options{Journal: story().journal, NoColor: true}, 120, 40)
	for _, code := range []string{"[3", ";3", "[4", ";4"} {
		if strings.Contains(strings.ReplaceAll(m.frame(), "\x1b[4m", ""), "\x1b"+code) {
			t.Errorf("a colour code %q is sent", code)
		}
	}
	m = modelOf(t, Options{Journal: story().journal, ASCII: true}, 120, 40)
	m.title = ""
	for _, r := range strings.ReplaceAll(m.frame(), "\x1b", "") {
		if r > 0x7e && !strings.ContainsRune("ズンドコ歌っています", r) {
			t.Fatalf("%q is sent although only ASCII is wanted", r)
		}
	}
}

// TestImports keeps Kubernetes out of the UI.
func TestImports(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, banned := range []string{`"k8s.` + `io/`, `"sigs.` + `k8s.io/`, `"go.` + `etcd.io/`} {
			if strings.Contains(string(text), banned) {
				t.Errorf("%s imports %s", name, banned)
			}
		}
		if n := strings.Count(string(text), "\n"); n >= 450 {
			t.Errorf("%s has %d lines", name, n)
		}
	}
}
