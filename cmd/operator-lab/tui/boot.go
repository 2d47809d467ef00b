package tui

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// boot is the screen before the cluster is there.
type boot struct {
	steps []Step
	err   error
}

// stepMsg tells of a step of the boot, bootedMsg that it is over.
type (
	stepMsg   struct{ Step }
	bootedMsg struct {
		Controls
		err error
	}
)

// start runs the boot until it is over; [Run] waits for that.
func (m *Model) start() {
	over := make(chan struct{})
	controls, err := m.opts.Boot(m.ctx, func(st Step) {
		select {
		case m.steps <- st:
		case <-over: // nobody asks for steps any more
		case <-m.ctx.Done(): // the screen is gone
		}
	})
	close(over)
	m.booted <- bootedMsg{controls, err}
}

// awaitStep waits for the next step, or the end.
func (m *Model) awaitStep() tea.Cmd {
	ctx, steps, booted := m.ctx, m.steps, m.booted
	return func() tea.Msg {
		select {
		case st := <-steps:
			return stepMsg{st}
		case over := <-booted:
			return over
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *Model) boots(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case stepMsg:
		if m.booting != nil {
			m.booting.add(msg.Step)
		}
		return m.awaitStep()
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

func (b *boot) add(st Step) { b.steps = addStep(b.steps, st) }

// addStep notes a step; one of the same name is replaced.
func addStep(steps []Step, st Step) []Step {
	i := slices.IndexFunc(steps, func(old Step) bool { return old.Name == st.Name })
	if i >= 0 {
		steps[i] = st
		return steps
	}
	return append(steps, st)
}

// stepRows are a line for each step.
func (s *scene) stepRows(steps []Step, failed bool) []row {
	name := 24
	for _, st := range steps {
		name = max(name, width(st.Name)+2)
	}
	name = min(name, s.w/2)
	var rows []row
	for _, st := range steps {
		sign, signStyle := s.working, warn
		switch {
		case st.Done:
			sign, signStyle = s.ok, ok
		case failed:
			sign, signStyle = s.failing, bad
		}
		r := text(plain, "   ")
		r.cell(&s.theme, signStyle, sign, 2).cell(&s.theme, plain, st.Name, name)
		took := ""
		if st.Took > 0 {
			took = trace.FormatDuration(st.Took)
		}
		r.add(dim, blanks(7-width(took))+took+"  ").add(dim, st.Detail)
		rows = append(rows, r)
	}
	return rows
}

// bootScreen shows the steps in the middle of the screen.
func (s *scene) bootScreen() []string {
	rows := []row{
		*(&row{}).add(title, " operator-lab  ").add(accent, s.title),
		{},
	}
	rows = append(rows, s.stepRows(s.booting.steps, s.booting.err != nil)...)
	if s.booting.err != nil {
		rows = append(rows, row{}, text(bad, " "+s.t("it did not start:", "起動に失敗:")))
		for _, line := range wrap(s.booting.err.Error(), s.w-6) {
			rows = append(rows, text(plain, "   "+line))
		}
		rows = append(rows, row{}, text(dim, " "+s.t("q quits", "q で終了")))
	} else {
		elapsed := ""
		if s.motion {
			elapsed = "  " + clock(s.now.Truncate(time.Second))
		}
		rows = append(rows, row{}, text(dim, " "+s.t("starting a control plane on this machine; q quits", "このマシンでコントロールプレーンを起動中。q で終了")+elapsed))
	}
	if extra := len(rows) - s.h; extra > 0 { // the newest steps matter
		rows = rows[extra:]
	}
	return s.centred(rows)
}

// centred fills the screen with rows in its middle.
func (s *scene) centred(rows []row) []string {
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
