package tui

import (
	"context"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// LiveOptions are the options of [Live]. All but Title are required.
type LiveOptions struct {
	// Frame returns the lines of a screen of w by h cells. What does not fit is cut off.
	Frame func(w, h int) []string
	// Changed tells when Frame has something else to show.
	Changed <-chan struct{}
	// Title of the terminal's window.
	Title string
	In    io.Reader
	Out   io.Writer
}

// Live shows lines on the terminal until the user leaves with q or Ctrl-C, the context ends or a signal comes, and returns
// when the terminal is as it was.
func Live(ctx context.Context, o LiveOptions) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	return runProgram(ctx, &liveLines{LiveOptions: o}, Options{In: o.In, Out: o.Out})
}

// liveLines is the Bubble Tea model of [Live].
type liveLines struct {
	LiveOptions
	w, h int
}

// drawn asks for a frame.
type drawn struct{}

// next waits for something else to show; a second has passed is that, too: times are shown.
func (l *liveLines) next() tea.Msg {
	select {
	case <-l.Changed:
	case <-time.After(time.Second):
	}
	return drawn{}
}

// Init begins to wait.
func (l *liveLines) Init() tea.Cmd { return l.next }

// Update takes a message.
func (l *liveLines) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		l.w, l.h = max(msg.Width, 0), max(msg.Height, 0)
	case drawn:
		return l, l.next
	case tea.KeyPressMsg:
		if key := msg.String(); key == "q" || key == "ctrl+c" {
			return l, tea.Quit
		}
	}
	return l, nil
}

// View draws the screen.
func (l *liveLines) View() tea.View {
	v := tea.NewView(l.frame())
	v.AltScreen, v.WindowTitle = true, l.Title
	return v
}

func (l *liveLines) frame() string {
	lines := l.Frame(l.w, l.h)
	if len(lines) > l.h {
		lines = lines[:l.h]
	}
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, l.w, "…")
	}
	return strings.Join(lines, "\n")
}
