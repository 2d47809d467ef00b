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

// flashFor is the time for which a message replaces the footer.
const flashFor = 4 * time.Second

// errorFor is the time for which an error replaces the footer.
const errorFor = 20 * time.Second

// Model is the only Bubble Tea model. Everything else has methods that are called.
type Model struct {
	state
	opts     Options
	ctx      context.Context // of the program; Bubble Tea's commands have no other way to get one
	bootErr  error
	flashEnd time.Time
	clock    func() time.Time
	drawn    string
	deed     string // that waited when it was drawn
	stale    bool
	works    sync.WaitGroup // what the guide still does
	orders   orders
	followed int64 // serial of the page whose source was requested last
}

// newModel returns a model. The context ends the commands it starts.
func newModel(ctx context.Context, o Options) *Model {
	o = o.withDefaults()
	m := &Model{opts: o, ctx: ctx, clock: time.Now}
	m.state = newState(o)
	if o.Boot != nil {
		m.booting = &boot{news: make(chan tea.Msg, 64)}
	}
	m.refresh(true)
	if o.Notice != "" {
		m.say(o.Notice)
	}
	return m
}

// tickMsg asks to look at the journal.
type tickMsg struct{}

func tick() tea.Cmd { return tea.Tick(tickEvery, func(time.Time) tea.Msg { return tickMsg{} }) }

// Init starts the ticking and the boot.
func (m *Model) Init() tea.Cmd {
	if m.opts.Boot == nil {
		return tick()
	}
	return tea.Batch(tick(), receive(m.ctx, m.booting.news))
}

// Update takes a message. It waits for nothing.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.stale = true
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tickMsg:
		m.stale = m.refresh(false)
		cmd = tea.Batch(tick(), m.catchUp())
	case tea.WindowSizeMsg:
		m.w, m.h = max(msg.Width, 0), max(msg.Height, 0)
	case tea.KeyPressMsg:
		cmd = m.press(msg.String())
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.MouseWheelMsg:
		m.mouse(msg.Mouse())
	case tea.MouseClickMsg:
		m.mouse(msg.Mouse())
	case stepMsg, bootedMsg:
		cmd = m.boots(msg)
	case doneMsg:
		m.done(msg)
	case orderedMsg:
		cmd = m.ordered()
	case toldMsg:
		cmd = m.told(msg)
	case workedMsg:
		m.worked(msg)
	case shellMsg:
		cmd = m.shells(msg)
	case leftMsg:
		m.left(msg)
	case schemaMsg:
		if m.popup == nil { // else the person is doing something else by now
			m.popup = newForm(&m.state, msg.of.kind, msg.of.example, msg.schema)
		}
	case refusedMsg:
		m.refused(msg)
	case editMsg:
		cmd = m.editor(msg)
	case editedMsg:
		cmd = m.edited(msg)
	default:
		m.stale = false
	}
	return m, cmd
}

// refresh looks at the journal and reports whether the frame must be drawn anew.
func (m *Model) refresh(always bool) bool {
	grown := m.index.update() || always
	changed := grown
	if grown {
		m.nav().recall()
	}
	changed = m.look() || changed
	if deed := m.state.deed(); deed != m.deed {
		m.deed, changed = deed, true
	}
	if m.flash != "" && m.opts.Notice != m.flash && m.clock().After(m.flashEnd) {
		m.flash, changed = "", true
	}
	now := m.nav().time()
	if now.Truncate(time.Second) != m.now.Truncate(time.Second) || now-m.now > time.Second || grown {
		m.now, changed = now, true
	}
	if m.live && m.follow && grown {
		m.nav().selectNewest()
	}
	m.tellUnanswered()
	if m.busy != nil && m.clock().Sub(m.busy.began) > busyAfter {
		m.busy.shown = true
	}
	return changed || m.booting != nil || m.busy != nil
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
