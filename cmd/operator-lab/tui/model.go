package tui

import (
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// tickEvery is how often the journal is looked at: often enough that what is
// shown feels immediate, seldom enough that it costs nothing.
const tickEvery = 80 * time.Millisecond

// flashFor is how long a message stands instead of the footer.
const flashFor = 4 * time.Second

// errorFor is how long an error does.
const errorFor = 20 * time.Second

// Model is the only Bubble Tea model. Everything else has methods that are called.
type Model struct {
	scene
	opts     Options
	ctx      context.Context // of the program; Bubble Tea's commands have no other way to get one
	steps    chan Step
	booted   chan bootedMsg
	bootErr  error
	flashEnd time.Time
	clock    func() time.Time
	cursorAt int64 // where the cursor stands; 0 at the live edge
	drawn    string
	stale    bool
	works    sync.WaitGroup // what the guide still does
	followed int64          // the page whose room was asked for last
}

// newModel returns a model. The context ends the commands it starts.
func newModel(ctx context.Context, o Options) *Model {
	o = o.withDefaults()
	m := &Model{opts: o, ctx: ctx, clock: time.Now, steps: make(chan Step, 64), booted: make(chan bootedMsg, 1)}
	m.scene = newScene(o)
	if o.Boot != nil {
		m.booting = &boot{}
	}
	m.refresh(true)
	if o.Notice != "" {
		m.say(o.Notice)
	}
	return m
}

// newScene returns what is seen of a journal at first.
func newScene(o Options) scene {
	index := newIndex(o.Journal)
	return scene{
		theme: newTheme(o), title: o.Title, replay: o.Replay, controls: o.Controls, motion: !o.NoMotion, keys: newKeyMap(),
		index: index, state: index.timeline.Tip(), live: true, focus: LoopPane, from: LoopPane, top: LoopPane, low: DetailPane, follow: true,
		open: map[int64]bool{}, guided: o.Guide != nil,
	}
}

// tickMsg asks to look at the journal.
type tickMsg struct{}

func tick() tea.Cmd { return tea.Tick(tickEvery, func(time.Time) tea.Msg { return tickMsg{} }) }

// Init starts the ticking and the boot.
func (m *Model) Init() tea.Cmd {
	if m.opts.Boot == nil {
		return tick()
	}
	return tea.Batch(tick(), m.awaitStep())
}

// Update takes a message. It waits for nothing.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.stale = true
	switch msg := msg.(type) {
	case tickMsg:
		m.stale = m.refresh(false)
		return m, tea.Batch(tick(), m.catchUp())
	case tea.WindowSizeMsg:
		m.w, m.h = max(msg.Width, 0), max(msg.Height, 0)
		return m, nil
	case tea.KeyPressMsg:
		return m, m.press(msg.String())
	case tea.PasteMsg:
		m.paste(msg.Content)
		return m, nil
	case tea.MouseWheelMsg:
		m.wheel(msg.Mouse())
		return m, nil
	case tea.MouseClickMsg:
		m.click(msg.Mouse())
		return m, nil
	case stepMsg, bootedMsg:
		return m, m.boots(msg)
	case doneMsg:
		m.done(msg)
		return m, nil
	case toldMsg:
		return m, m.told(msg)
	case workedMsg:
		m.worked(msg)
		return m, nil
	case shellMsg:
		return m, m.shells(msg)
	case leftMsg:
		m.left(msg)
		return m, nil
	case editMsg:
		return m, m.editor(msg)
	case editedMsg:
		return m, m.edited(msg)
	}
	m.stale = false
	return m, nil
}

// refresh looks at the journal and reports whether the frame must be drawn anew.
func (m *Model) refresh(always bool) bool {
	grown := m.index.update() || always
	changed := grown
	if grown {
		m.recall()
	}
	changed = m.look() || changed
	if m.flash != "" && m.opts.Notice != m.flash && m.clock().After(m.flashEnd) {
		m.flash, changed = "", true
	}
	now := m.time()
	if now.Truncate(time.Second) != m.now.Truncate(time.Second) || now-m.now > time.Second || grown {
		m.now, changed = now, true
	}
	if m.live && m.follow && grown {
		m.selectNewest()
	}
	if m.busy != nil && m.clock().Sub(m.busy.began) > busyAfter {
		m.busy.shown = true
	}
	return changed || m.booting != nil || m.busy != nil
}

// recall makes the state that of the cursor.
func (m *Model) recall() {
	tip := m.index.timeline.Tip()
	m.live = m.cursorAt == 0 || m.cursorAt >= m.index.lastMark() && !m.replay
	if m.live {
		m.cursorAt, m.state = 0, tip
		return
	}
	m.cursorAt = max(m.cursorAt, m.index.stats.First)
	m.state = m.index.timeline.At(m.cursorAt)
}

// time is the time on the journal's clock that ages are counted to.
func (m *Model) time() time.Duration {
	switch {
	case !m.live:
		return m.state.At()
	case m.replay || !m.motion:
		return m.index.timeline.Tip().At()
	}
	return m.opts.Journal.Elapsed()
}

// say shows a message in place of the footer, until a key is pressed or for a
// while. One that is too long for it gets a window.
func (m *Model) say(text string) {
	m.flash, m.flashEnd = text, m.clock().Add(flashFor)
	if width(clean(text)) > m.w-2 && m.w >= minWidth && m.popup == nil && m.booting == nil {
		m.flash, m.popup = "", &messagePopup{text: text}
	}
}

// fail shows an error, for longer: it was not asked for at this moment.
func (m *Model) fail(text string) {
	m.say(text)
	m.flashEnd = m.clock().Add(errorFor)
}

// View draws the screen.
func (m *Model) View() tea.View {
	if m.stale || m.drawn == "" {
		m.drawn, m.stale = m.frame(), false
	}
	v := tea.NewView(m.drawn)
	v.AltScreen = true
	v.WindowTitle = "operator-lab " + clean(m.title)
	if m.opts.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}
