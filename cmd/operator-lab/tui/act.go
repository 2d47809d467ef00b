package tui

import (
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// maxFilter bounds the length of a filter: it is shown in the title of its pane.
const maxFilter = 60

// press handles a key.
func (m *Model) press(pressed string) tea.Cmd {
	m.flash = ""
	m.opts.Notice = ""
	switch {
	case pressed == "ctrl+c":
		return tea.Quit
	case m.booting != nil || m.layout().TooSmall:
		if pressed == "q" || pressed == "esc" {
			return tea.Quit
		}
		return nil
	case m.busy != nil:
		if pressed == "q" {
			return tea.Quit
		}
		return nil
	case m.typing:
		m.nav().typeFilter(pressed)
		return nil
	case m.popup != nil:
		return m.popup.press(m, pressed)
	}
	if p, is := paneOf(pressed); is {
		m.focusOn(p)
		return nil
	}
	c := m.keys.find(pressed)
	if c == nil {
		return nil
	}
	if reason := c.refuse(&m.state); reason != "" {
		m.say(c.Help().Key + ": " + reason)
		return nil
	}
	if c.group == groupLoop || c.group == groupTime || c.group == groupAct {
		m.nav().toLoop()
	}
	return c.do(m)
}

// pauseOrResume asks the journal what holds now.
func (m *Model) pauseOrResume() tea.Cmd {
	mode := m.index.timeline.Tip().Mode()
	if mode.Paused || mode.HoldWrites {
		m.follow = true
		return m.order(Loop.Resume)
	}
	return m.order(Loop.Pause)
}

// explain opens the window that says what the words on the screen mean.
func explain(m *Model) tea.Cmd {
	m.popup = &wordsPopup{lang: m.lang, shown: ansi.Strip(m.frame())}
	return nil
}

// restart begins another life of the operator.
func (m *Model) restart() {
	m.controls.Restart()
	m.follow = true
	m.say(m.t("r: its next life begins when this one has ended", "r: 今のオペレーターが終了すると、次が起動する"))
}

// paste adds pasted text to what is being typed.
func (m *Model) paste(text string) {
	switch p := m.popup.(type) {
	case *answerPopup:
		p.text.add(text, longestAnswer)
	case *form:
		p.fields[p.at].text.add(text, longestValue)
	case nil:
		if m.typing {
			m.filter[m.focus].add(text, maxFilter)
		}
	}
}

// mouse focuses the pane under the pointer, and moves its selection with the wheel.
func (m *Model) mouse(e tea.Mouse) {
	l := m.layout()
	p := l.paneAt(e.X, e.Y)
	if p == NoPane || m.popup != nil || m.busy != nil {
		return
	}
	m.nav().setFocus(p)
	switch e.Button {
	case tea.MouseWheelUp:
		m.nav().move(-1)
	case tea.MouseWheelDown:
		m.nav().move(1)
	}
}

// focusOn focuses a pane, bringing it on top where it shares a place; focusing
// the focused pane again zooms it.
func (m *Model) focusOn(p Pane) {
	if p == LessonPane && !m.guided {
		m.say("5: " + m.t("there is no lesson here", "レッスンはない"))
		return
	}
	if p == m.focus {
		m.nav().zoomIn()
		return
	}
	m.nav().setFocus(p)
}
