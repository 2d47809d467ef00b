package tui

import (
	"strings"
	"testing"
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
