package tui

import (
	"errors"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestSource opens the source at the line that made a call.
func TestSource(t *testing.T) {
	d := newTold(t)
	d.reconcile("configmap")
	key := trace.Key{Namespace: "default", Name: "a"}
	id := d.journal.NewReconcile()
	d.of("configmap", trace.Event{Kind: trace.KindDequeue, Key: key, Reconcile: id})
	d.of("configmap", trace.Event{
		Kind: trace.KindCall, Verb: trace.VerbCreate, Key: key, Reconcile: id, Line: "controller/copier.go:41",
		Object: trace.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "b"}, Source: trace.Server,
	})
	d.of("configmap", trace.Event{Kind: trace.KindEnd, Key: key, Reconcile: id, Outcome: trace.OutcomeDone})
	d.refresh(true)
	d.want(ansi.Strip(d.frame()), true, "called at controller/copier.go:41")
	d.press("C")
	d.want(ansi.Strip(d.frame()), true, "the source is not at hand: controller/copier.go:41")

	var changed bool
	failed, long := error(nil), strings.Repeat("a ", 100)+"end of the line"
	d.source = func(operator, file string) (string, bool, error) {
		if operator != "keeper" || file != "controller/copier.go" {
			t.Errorf("asked for %s of %s", file, operator)
		}
		return strings.Repeat(long+"\n", 40) + "\treturn c.Create(ctx, to)\n}\n", changed, failed
	}
	d.press("C")
	d.want(ansi.Strip(d.frame()), true, ">   41      return c.Create(ctx, to)")
	d.want(ansi.Strip(d.frame()), true, "42  }")
	d.want(ansi.Strip(d.frame()), true, "end of the line")
	d.want(ansi.Strip(d.frame()), false, "may have changed")
	d.press("esc")
	d.want(ansi.Strip(d.frame()), false, "return c.Create")
	changed = true
	d.press("C")
	d.want(ansi.Strip(d.frame()), true, "controller/copier.go:41  (the file may have changed since)")
	d.press("esc")
	failed = errors.New("it is gone")
	d.press("C")
	d.want(ansi.Strip(d.frame()), true, "controller/copier.go:41: it is gone")

	d.press("[") // the reconcile before has no call
	d.press("C")
	d.want(ansi.Strip(d.frame()), true, "select a call of an operator that was built with taps")
}

// TestSourceOfALesson opens what the text of a lesson points at.
func TestSourceOfALesson(t *testing.T) {
	page := pageOf(trace.English)
	page.Text = "See [sing](../../operators/zundoko/hardened.go), [the next](../02-next/en.md) and [elsewhere](https://example.com/a.go)."
	b, _ := lessonBench(t, page, 80, 24)
	var asked []string
	b.source = func(operator, file string) (string, bool, error) {
		asked = append(asked, operator+" "+file)
		return "package a\n", false, nil
	}
	press(b.Model, "C")
	if screen := ansi.Strip(b.frame()); !strings.Contains(screen, "operators/zundoko/hardened.go") || !strings.Contains(screen, "1  package a") {
		t.Errorf("C shows\n%s", screen)
	}
	page.Hints = []string{"Look at [the role](../../operators/zundoko/config/rbac/role.yaml)."}
	b, _ = lessonBench(t, page, 80, 24)
	b.source = func(operator, file string) (string, bool, error) {
		asked = append(asked, operator+" "+file)
		return "kind: Role\n", false, nil
	}
	press(b.Model, "C down enter")
	if screen := ansi.Strip(b.frame()); !strings.Contains(screen, "1  kind: Role") {
		t.Errorf("C down enter shows\n%s", screen)
	}
	if want := "zundoko operators/zundoko/hardened.go; zundoko operators/zundoko/config/rbac/role.yaml"; strings.Join(asked, "; ") != want {
		t.Errorf("asked for %q, want %q", asked, want)
	}
}
