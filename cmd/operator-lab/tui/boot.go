package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// bootScreen shows the steps of the boot in the middle of the screen.
type bootScreen struct{ *state }

// boot is the start of the cluster.
type boot struct {
	steps []Step
	err   error
	news  chan tea.Msg // its steps, and then that it is over
}

// run starts the cluster; [Run] waits for that.
func (b *boot) run(ctx context.Context, start func(context.Context, func(Step)) (Controls, error)) {
	telling, over := context.WithCancel(ctx)
	controls, err := start(ctx, func(st Step) { send(telling, b.news, stepMsg{st}) })
	over()
	send(ctx, b.news, bootedMsg{controls, err})
}

// send sends a message, unless nobody takes it any more.
func send(ctx context.Context, to chan<- tea.Msg, msg tea.Msg) {
	select {
	case to <- msg:
	case <-ctx.Done():
	}
}

// receive waits for the next message; nil if there will be none.
func receive(ctx context.Context, from <-chan tea.Msg) tea.Cmd {
	return func() tea.Msg {
		select {
		case msg := <-from:
			return msg
		case <-ctx.Done():
			return nil
		}
	}
}

// stepMsg carries a step of the boot, bootedMsg its result.
type (
	stepMsg   struct{ Step }
	bootedMsg struct {
		Controls
		err error
	}
)

// addStep notes a step; one of the same name is replaced.
func addStep(steps []Step, st Step, now time.Duration) []Step {
	i := slices.IndexFunc(steps, func(old Step) bool { return old.Name == st.Name })
	st.began = now
	if i >= 0 {
		st.began = steps[i].began
		steps[i] = st
		return steps
	}
	return append(steps, st)
}

func (s bootScreen) draw() []string {
	rows := []row{
		*(&row{}).add(title, " operator-lab  ").add(accent, s.title),
		{},
	}
	rows = append(rows, s.stepRows(s.booting.steps, s.booting.err != nil)...)
	if s.booting.err != nil {
		rows = append(rows, row{}, text(bad, " "+s.t("it did not start:", "起動に失敗:")))
		rows = append(rows, wrapped(plain, "   ", s.booting.err.Error(), s.w-6)...)
		rows = append(rows, row{}, text(dim, " "+s.t("q quits", "q で終了")))
	} else {
		elapsed := ""
		if s.motion {
			elapsed = "  " + clock(s.now.Truncate(time.Second))
		}
		rows = append(rows, row{}, text(dim, " "+s.t("starting on this machine; q quits", "このマシンで起動中。q で終了")+elapsed))
	}
	if extra := len(rows) - s.h; extra > 0 { // the newest steps matter
		rows = rows[extra:]
	}
	return s.centred(rows)
}

// centred fills the screen with rows in its middle.
func (s bootScreen) centred(rows []row) []string {
	out := make([]string, s.h)
	top, left := max(0, (s.h-len(rows))/3), max(0, (s.w-72)/2)
	for y := range out {
		r := row{}
		if i := y - top; i >= 0 && i < len(rows) {
			r.add(plain, strings.Repeat(" ", left))
			r.segs = append(r.segs, rows[i].segs...)
		}
		out[y] = r.draw(&s.theme, s.w)
	}
	return out
}

func (m *Model) boots(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case stepMsg:
		m.booting.steps = addStep(m.booting.steps, msg.Step, m.nav().time())
		return receive(m.ctx, m.booting.news)
	case bootedMsg:
		if msg.err != nil {
			m.bootErr = msg.err
			m.booting.err = msg.err
			return nil
		}
		m.controls = msg.Controls
		m.booting = nil
		m.refresh(true)
	}
	return nil
}
