package tui

import (
	"context"
	"errors"
	"io"
	"log"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// TestDrawing holds Bubble Tea to the name by which the goroutine that draws is known: it is all that a command has to wait
// for.
func TestDrawing(t *testing.T) {
	if drawing() {
		t.Fatal("something draws although there is no screen")
	}
	in, keys := io.Pipe()
	p := tea.NewProgram(newModel(t.Context(), Options{Journal: story().journal}), tea.WithInput(in), tea.WithOutput(io.Discard), tea.WithoutSignalHandler())
	ended := make(chan error, 1)
	go func() { _, err := p.Run(); ended <- err }()
	for !drawing() {
		runtime.Gosched()
	}
	p.Quit()
	if err := errors.Join(<-ended, outsideCommand{exec.Command("true")}.Run()); err != nil || drawing() {
		t.Errorf("after the end it draws: %v; error: %v", drawing(), err)
	}
	_ = keys.Close()
}

// TestNothingIsLoggedOverTheScreen: libraries that use Go's standard logger write to the terminal.
func TestNothingIsLoggedOverTheScreen(t *testing.T) {
	var logged strings.Builder
	defer log.SetOutput(log.Writer())
	log.SetOutput(&logged)
	in, keys := io.Pipe()
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		o := Options{Journal: story().journal, In: in, Out: io.Discard}
		ended <- runProgram(ctx, newModel(ctx, o), o)
	}()
	for !drawing() {
		runtime.Gosched()
	}
	log.Print("over the screen")
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_ = keys.Close()
	log.Print("after it")
	if got := logged.String(); strings.Contains(got, "over the screen") || !strings.Contains(got, "after it") {
		t.Errorf("logged: %q", got)
	}
}

// TestScreenTakesCharactersInPieces: a terminal's output is read in pieces, whose ends may be anywhere.
func TestScreenTakesCharactersInPieces(t *testing.T) {
	text := "\x1b[2J\x1b[1;1H┏━ ドコ ━┛\x1b[2;1H\x1b]0;title\x07[✓]…\x1b[31mred\x1b[m\x1b[3;1H↺ own"
	whole := newScreen(20, 4)
	_, _ = whole.Write([]byte(text))
	for i := range len(text) {
		s := newScreen(20, 4)
		_, _ = s.Write([]byte(text[:i]))
		_, _ = s.Write([]byte(text[i:]))
		if got, want := s.text(), whole.text(); got != want {
			t.Errorf("cut at %q: got\n%swant\n%s", text[:i], got, want)
		}
	}
}
