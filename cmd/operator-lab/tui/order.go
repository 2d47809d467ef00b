package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// answerAfter is the time after which an operator is said not to answer an order.
const answerAfter = time.Second

// orders are what the keys of the loop have ordered and the operator has not carried out: its process may be stopped.
type orders struct {
	waiting []func()  // behind the one that is under way
	began   time.Time // of that one; zero if there is none
	told    bool      // that it is not answered
}

// orderedMsg says that the order that was under way is carried out.
type orderedMsg struct{}

// order has the loop do something, outside of Update and after what was ordered before.
func (m *Model) order(do func(Loop)) tea.Cmd {
	loop := m.controls.Loop
	m.orders.waiting = append(m.orders.waiting, func() { do(loop) })
	switch {
	case m.orders.began.IsZero():
		return m.nextOrder()
	case m.orders.told: // or all that was pressed meanwhile would happen at once
		m.orders.waiting = nil
		m.say(unanswered(&m.state))
	}
	return nil
}

// nextOrder gives the next order, if there is one.
func (m *Model) nextOrder() tea.Cmd {
	if len(m.orders.waiting) == 0 {
		m.orders = orders{}
		return nil
	}
	next := m.orders.waiting[0]
	m.orders = orders{waiting: m.orders.waiting[1:], began: m.clock()}
	return func() tea.Msg {
		next()
		return orderedMsg{}
	}
}

// ordered goes on after an order was carried out.
func (m *Model) ordered() tea.Cmd {
	if m.orders.told {
		m.flash = ""
	}
	m.refresh(true)
	return m.nextOrder()
}

// tellUnanswered says that the operator does not answer, once for each order.
func (m *Model) tellUnanswered() {
	if o := &m.orders; !o.began.IsZero() && !o.told && m.clock().Sub(o.began) > answerAfter {
		o.told = true
		m.fail(unanswered(&m.state))
	}
}

func unanswered(s *state) string {
	return s.t("the operator does not answer; is its process stopped?", "オペレーターの応答がない。プロセスが停止していないか確認")
}
