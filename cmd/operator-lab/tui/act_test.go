package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

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
	b.keys("x down enter enter")
	if got := b.cluster.calls[len(b.cluster.calls)-1]; got != `patch Zundoko demo-001 {"spec":{"say":"Zun-drift"}}` {
		t.Errorf("asked for %q", got)
	}
	if !strings.Contains(b.flash, "forbidden") {
		t.Errorf("the error is not shown: %q", b.flash)
	}
}

// TestFieldMenu narrows the fields of an object by what is typed, completes it, and says who acts on a change.
func TestFieldMenu(t *testing.T) {
	b := newBench(t, story())
	raw := []byte(`{"metadata":{"ownerReferences":[{"kind":"Hikawa","name":"demo","controller":true}]},"spec":{"jobs":3,"template":{"image":"a","pullPolicy":"b"}}}`)
	o := &trace.Object{Ref: trace.Ref{Kind: "Song", Name: "one"}, Raw: raw}
	fieldMenu(b.Model, o, drifts(raw))
	for typing, want := range map[string][]string{
		"j": {"spec.jobs"}, "backspace": {"spec.jobs", "spec.template.image", "spec.template.pullPolicy"},
		"t tab": {"spec.template.image", "spec.template.pullPolicy"}, "t tab p o": nil,
	} {
		b.popup.(*menu).text = ""
		press(b.Model, typing)
		var got []string
		for _, c := range b.popup.(*menu).shown() {
			got = append(got, c.text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %q it shows %q, want %q", typing, got, want)
		}
	}
	b.popup.(*menu).text = "nowhere"
	if press(b.Model, "enter down"); b.popup == nil || len(b.cluster.calls) > 0 {
		t.Errorf("enter without a field does %q", b.cluster.calls)
	}
	b.popup.(*menu).text = ""
	press(b.Model, "t tab i")
	if frame := ansi.Strip(b.frame()); !strings.Contains(frame, "spec.template.i_") || !strings.Contains(frame, "the controller of Hikawa demo sets the field back") {
		t.Errorf("the menu does not show what is typed, and who acts:\n%s", frame)
	}
	b.keys("enter")
	if want := `patch Song one {"spec":{"template":{"image":"a-drift"}}}`; !slices.Equal(b.cluster.calls, []string{want}) {
		t.Errorf("asked for %q, want %q", b.cluster.calls, want)
	}
	o = &trace.Object{Ref: o.Ref, Raw: []byte(`{"spec":{"size":3}}`)}
	if fieldMenu(b.Model, o, drifts(o.Raw)); !strings.Contains(ansi.Strip(b.frame()), "no controller owns this object") {
		t.Errorf("of an object that nobody owns it says:\n%s", b.frame())
	}
}

// TestCopy checks that all of the open tab is copied, also what is not in sight.
func TestCopy(t *testing.T) {
	b := newBench(t, story())
	b.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	copied := fmt.Sprint(b.keys("1 down y Y"))
	for _, line := range []string{"apiVersion: ", "kind: Zundoko\n", "metadata:\n  ", "\n  name: demo-001\n", "\n  resourceVersion: "} {
		if !strings.Contains("\n"+copied, "\n"+strings.TrimPrefix(line, "\n")) {
			t.Errorf("no %q in\n%s", line, copied)
		}
	}
	if want := itoa(strings.Count(copied, "\n")) + " lines"; !strings.Contains(b.flash, want) {
		t.Errorf("says %q, not %s", b.flash, want)
	}
	if diff := fmt.Sprint(b.keys("d Y")); strings.Contains(diff, "…") || diff == copied {
		t.Errorf("of the diff it copies\n%s", diff)
	}
	b = newBench(t, &clockwork{journal: trace.New(trace.Options{})})
	if msg := b.keys("Y"); msg != nil || !strings.Contains(b.flash, "nothing is selected") {
		t.Errorf("of nothing it copies %v, and says %q", msg, b.flash)
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
	said := b.flash
	if p, is := b.popup.(*messagePopup); is {
		said = p.text
	}
	if !strings.Contains(said, "spec.mood: invalid") || !strings.Contains(said, msg.file) {
		t.Errorf("says %q", said)
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

func TestQuitLeavesTheLoopAsItIs(t *testing.T) {
	b := newBench(t, story())
	if _, is := b.keys("q").(tea.QuitMsg); !is {
		t.Error("q does not quit")
	}
	if len(b.loop.calls) > 0 {
		t.Errorf("the loop was told %q: quitting must not send a held write", b.loop.calls)
	}
}

func TestBoot(t *testing.T) {
	failed := errors.New("the port is taken")
	m := modelOf(t, Options{Boot: func(context.Context, func(Step)) (Controls, error) { return Controls{}, failed }}, 80, 24)
	m.press("space") // no key but quit works
	m.booting.run(t.Context(), m.opts.Boot)
	m.Update(receive(m.ctx, m.booting.news)())
	if m.booting == nil || !errors.Is(m.bootErr, failed) || !strings.Contains(m.frame(), "the port is taken") {
		t.Error("the failure is not shown")
	}
	loop := &fakeLoop{}
	m = modelOf(t, Options{Boot: func(_ context.Context, step func(Step)) (Controls, error) {
		step(Step{Name: "etcd", Done: true})
		return Controls{Loop: loop}, nil
	}}, 80, 24)
	m.booting.run(t.Context(), m.opts.Boot)
	for m.booting != nil {
		m.Update(receive(m.ctx, m.booting.news)())
	}
	if press(m, "space"); len(loop.calls) != 1 {
		t.Error("the loop cannot be held after the boot")
	}
}

func TestFaultsOfTheCaller(t *testing.T) {
	b := newBench(t, story())
	var broken trace.Ref
	b.controls.Faults = []Fault{{Text: "fail its next write", Do: func(_ context.Context, r trace.Ref) error {
		broken = r
		return nil
	}}}
	b.keys("1 x end up enter")
	if broken.Name != "demo" {
		t.Errorf("broken was %v", broken)
	}
}

// TestNoCrashOfTheCrashed checks that what needs the operator's program is not offered while it does not run.
func TestNoCrashOfTheCrashed(t *testing.T) {
	c := story()
	b := newBench(t, c)
	b.controls.Faults = []Fault{{Text: "crash it", Running: true}, {Text: "fail its next write"}}
	offers := func() (texts []string) {
		b.keys("1 x")
		for _, c := range b.popup.(*menu).choices {
			texts = append(texts, c.text)
		}
		b.keys("esc")
		return texts
	}
	for _, verb := range []string{trace.VerbStart, trace.VerbStop, trace.VerbStart} {
		c.journal.Append(trace.Event{Kind: trace.KindOperator, Operator: "hikawa", Verb: verb})
		b.refresh(false)
		got := offers()
		if !slices.Contains(got, "fail its next write") || slices.Contains(got, "crash it") != (verb == trace.VerbStart) {
			t.Errorf("after %s it offers %q", verb, got)
		}
	}
}

func TestLongMessagesGetAWindow(t *testing.T) {
	b := newBench(t, story())
	b.cluster.err = errors.New(strings.Repeat("the server refused it. ", 20))
	b.keys("1 x enter")
	checkSize(t, b.Model)
	if _, is := b.popup.(*messagePopup); !is || !strings.Contains(b.frame(), "the server refused it. ") {
		t.Error("a long error cannot be read")
	}
	if b.keys("esc"); b.popup != nil {
		t.Error("it stays")
	}
}
