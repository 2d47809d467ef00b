package tui

import (
	"strings"
	"testing"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// TestJumps goes through a recorded journal by errors, writes and numbers.
func TestJumps(t *testing.T) {
	m := modelOf(t, Options{Journal: recorded(t), Replay: true}, 80, 24)
	for _, c := range []struct {
		keys string
		want int64
	}{
		{"<", 12}, {"<", 9}, {">", 12}, {"(", 11}, {")", 13}, {"# 5 enter", 5}, {"# 9 9 enter", 5}, {"# esc", 5},
	} {
		press(m, c.keys)
		if r := m.reconcile(); r == nil || r.ID != c.want || m.live {
			t.Fatalf("%q goes to %+v, not to #%d", c.keys, r, c.want)
		}
	}
	press(m, "home <")
	if !strings.Contains(m.flash, "no other error or fault") {
		t.Errorf("at the first one it says %q", m.flash)
	}
	if m.reconcile().ID != 1 || strings.Contains(m.asOf(), "#") {
		t.Errorf("before the first reconcile the screen is%s", m.asOf())
	}
	press(m, "K")
	var commands strings.Builder
	for _, r := range m.popup.(*deedsPopup).rows(&m.state) {
		commands.WriteString(strings.TrimPrefix(r.plain(), " "))
	}
	for _, want := range []string{"| kubectl create -f -", "kubectl delete configmap broken"} {
		if !strings.Contains(commands.String(), want) {
			t.Errorf("K does not show %q: %s", want, commands.String())
		}
	}
}

// TestDeedsOfTheDemo checks that the demo's deeds are told from the person's.
func TestDeedsOfTheDemo(t *testing.T) {
	d := newTold(t)
	for _, actor := range []string{trace.Demo, "you", "keeper"} {
		d.journal.Append(trace.Event{
			Kind: trace.KindCall, Actor: actor, Operator: actor, Verb: trace.VerbDelete,
			Object: trace.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: strings.Fields(actor)[0]},
		})
	}
	d.refresh(true)
	for l, want := range map[trace.Language]string{
		trace.English:  " 00:00  the demo: kubectl delete configmap the\n 00:00  you: kubectl delete configmap you\n",
		trace.Japanese: " 00:00  デモ: kubectl delete configmap the\n 00:00  あなた: kubectl delete configmap you\n",
	} {
		d.lang, d.controls.Demo = l, &playing{}
		var got strings.Builder
		for _, r := range (&deedsPopup{}).rows(&d.state) {
			got.WriteString(r.plain() + "\n")
		}
		if got.String() != want {
			t.Errorf("K has\n%s", got.String())
		}
	}
}
