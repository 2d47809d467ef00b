package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// TestLiveLines checks that a frame fits the screen, and which keys leave it.
func TestLiveLines(t *testing.T) {
	l := &liveLines{LiveOptions: LiveOptions{Frame: func(w, h int) []string {
		return []string{strings.Repeat("あ", w), "short", "below"}
	}}}
	l.Update(tea.WindowSizeMsg{Width: 5, Height: 2})
	if got, want := l.frame(), "ああ…\nshort"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for key, leaves := range map[rune]bool{'q': true, 'x': false} {
		if _, cmd := l.Update(tea.KeyPressMsg{Code: key, Text: string(key)}); (cmd != nil) != leaves {
			t.Errorf("%c leaves: %v", key, cmd != nil)
		}
	}
}
