package tui

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

func TestCommand(t *testing.T) {
	page := pageOf(trace.English)
	page.Text = "Do it.\n\n```sh\nkubectl get pods\nkubectl delete pod web-…  # one\n```\n\n```sh\nkubectl patch a \\\n  -p '{}'\n```\n"
	b, _ := lessonBench(t, page, 80, 24)
	if press(b.Model, "$"); b.popup != nil || !strings.Contains(b.flash, "no shell") {
		t.Errorf("without a shell it says %q", b.flash)
	}
	ran := []string{}
	b.controls.Command = func(c string) (*exec.Cmd, error) {
		ran = append(ran, c)
		return exec.Command("true"), nil
	}
	for _, c := range []struct{ keys, ran string }{
		{"$ enter", "kubectl get pods"},
		{"$ enter backspace 1 enter", "kubectl delete pod web-1"}, // the first enter is refused
		{"$ enter", "kubectl patch a \\\n  -p '{}'"},
		{"$ up left left right delete home delete end space - w enter", "ubectl patch a \\\n  -p '{} -w"},
		{"$ down down down ctrl+u esc $ ctrl+u enter esc", ""},
	} {
		ran = nil
		for k := range strings.FieldsSeq(c.keys) {
			if cmd := b.press(k); cmd != nil {
				b.Update(cmd())
			}
			checkSize(t, b.Model)
		}
		if got := strings.Join(ran, "; "); got != c.ran {
			t.Errorf("%s runs %q, want %q", c.keys, got, c.ran)
		}
	}
	page.Text = "Only words."
	b, _ = lessonBench(t, page, 80, 24)
	b.controls.Command = func(string) (*exec.Cmd, error) { return nil, nil }
	if press(b.Model, "$"); b.popup != nil || !strings.Contains(b.flash, "no command") {
		t.Errorf("without a command it says %q", b.flash)
	}
}

func TestBackAsksFirst(t *testing.T) {
	page := pageOf(trace.English)
	page.Earlier = true
	b, g := lessonBench(t, page, 80, 24)
	if press(b.Model, "N n"); b.popup != nil || len(g.calls) > 0 {
		t.Errorf("N n does %q", g.calls)
	}
	if press(b.Model, "N y"); !slices.Equal(g.calls, []string{"back"}) {
		t.Errorf("N y does %q", g.calls)
	}
	page.Earlier = false
	b, g = lessonBench(t, page, 80, 24)
	if press(b.Model, "N"); len(g.calls) > 0 || !strings.Contains(b.flash, "first task") {
		t.Errorf("in the first task N does %q and says %q", g.calls, b.flash)
	}
}

// TestLessonWithoutOperator: there is no loop to show, until there is an operator.
func TestLessonWithoutOperator(t *testing.T) {
	for _, l := range []trace.Language{trace.English, trace.Japanese} {
		var cases []partCase
		page := halfTicked(l)
		page.NoOperator, page.Text = true, "```sh\nkubectl get pods\n```\n"
		for _, size := range goldenSizes {
			o := Options{Journal: trace.New(trace.Options{}), Title: "song", Language: l, Guide: lessonOf(page), Controls: withShell}
			cases = append(cases, partCase{"without an operator", size[0], size[1], o, "3 tab", "header lesson aside footer"})
		}
		goldenParts(t, "lesson-bare-"+string(l), cases)
	}

	page := pageOf(trace.English)
	page.NoOperator, page.Text = true, "Only words."
	b, _ := lessonBench(t, page, 120, 40) // with a journal in which an operator works
	if b.bare() || b.layout().Pane[LoopPane].Empty() {
		t.Error("the loop of an operator that was loaded is not shown")
	}
	b.opts.Journal = trace.New(trace.Options{})
	b.moveTo(&Source{Journal: b.opts.Journal, Controls: withShell})
	for _, k := range []string{"space", "s", "[", "L", "/", "z"} {
		if press(b.Model, k); !strings.Contains(b.flash, "no operator") {
			t.Errorf("%s says %q", k, b.flash)
		}
	}
	for _, k := range []string{"1", "2", "3", "4", "6", "tab", "esc", "enter"} {
		if press(b.Model, k); b.focus != LessonPane {
			t.Errorf("%s leaves the lesson", k)
		}
	}
	press(b.Model, "w")
	if frame := b.frame(); !strings.Contains(frame, "This lesson has no operator") {
		t.Errorf("w says:\n%s", frame)
	}
	press(b.Model, "q")
	frame := b.frame()
	for _, wrong := range []string{"The operator", "WATCH", "Queue", "reconcile"} {
		if strings.Contains(frame, wrong) {
			t.Errorf("the screen speaks of %q:\n%s", wrong, frame)
		}
	}
}

// TestNoOperatorYet: while an operator is being built, nothing is said of what has not woken it.
func TestNoOperatorYet(t *testing.T) {
	journal := trace.New(trace.Options{})
	journal.Append(trace.Event{Kind: trace.KindNote, Actor: "lab", Message: "cafe is being built"})
	m := modelOf(t, Options{Journal: journal, Title: "cafe", Guide: lessonOf(pageOf(trace.English))}, 120, 40)
	for _, c := range []struct{ sentence, mode string }{
		{"No operator runs yet.", "LIVE"}, {"The operator has not reconciled anything yet", "QUIET"},
	} {
		m.refresh(true)
		m.now = time.Minute
		if frame := m.frame(); !strings.Contains(frame, c.sentence) || !strings.Contains(frame, c.mode) {
			t.Errorf("want %q and %s, got\n%s", c.sentence, c.mode, frame)
		}
		journal.Append(trace.Event{Kind: trace.KindOperator, Operator: "cafe", Verb: trace.VerbStart})
	}
}

// TestInspect runs kubectl for what is selected.
func TestInspect(t *testing.T) {
	ran := ""
	c := withShell
	c.Command = func(command string) (*exec.Cmd, error) {
		ran = command
		return exec.Command("true"), nil
	}
	b := newBench(t, story())
	b.controls = c
	play := func(keys string) {
		ran = ""
		for k := range strings.FieldsSeq(keys) {
			if cmd := b.press(k); cmd != nil {
				b.Update(cmd())
			}
			checkSize(t, b.Model)
		}
	}
	for keys, want := range map[string]string{
		"1 i enter":           "kubectl describe hikawa.hikawa.example.org demo",
		"1 i down enter":      "kubectl events --for hikawa.hikawa.example.org/demo",
		"1 i down down enter": "kubectl get hikawa.hikawa.example.org demo -o yaml",
		"1 i esc":             "",
	} {
		if play(keys); ran != want || b.popup != nil {
			t.Errorf("%s runs %q, want %q", keys, ran, want)
		}
	}
	b.controls.Command = nil
	if play("1 i"); b.popup != nil || !strings.Contains(b.flash, "no shell") {
		t.Errorf("without a shell it says %q", b.flash)
	}

	var of []string
	for _, c := range inspections(&b.state, trace.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-1"}) {
		of = append(of, c.text)
	}
	want := []string{
		"kubectl describe pod web-1 -n shop", "kubectl events --for pod/web-1 -n shop", "kubectl get pod web-1 -n shop -o yaml",
		"kubectl logs web-1 -n shop --all-containers --tail 200", "kubectl logs web-1 -n shop --all-containers --tail 200 --previous",
		"kubectl exec -it web-1 -n shop -- sh",
	}
	if !slices.Equal(of, want) {
		t.Errorf("of a pod: %q", of)
	}
}
