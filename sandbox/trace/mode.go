package trace

import "time"

// Mode says whether loops are paused and writes held.
type Mode struct {
	// Paused means that workers take only keys that were stepped.
	Paused bool
	// HoldWrites means that each write waits for a release before it is sent.
	HoldWrites bool
	// Gated means that only the requests of the program are seen: whether it has a queue is not known.
	Gated bool
	// Logged means that the program's own log tells when its reconciles begin and end. It is Gated too.
	Logged bool
	// Partly means that of its requests some kinds are not recorded. It is Gated, too.
	Partly bool
	// Begun means that a program of the operator has begun once.
	Begun bool
	// Down means that the operator's program has ended and not begun again; Crashed that a fault ended it.
	Down, Crashed bool
	// Back is when the next life of a crashed operator was to begin.
	Back time.Duration
	// Since is when the mode was last changed.
	Since time.Duration
}

// modes are the modes of the operators, by name.
type modes map[string]Mode

// Mode returns the combined mode of all operators, without Gated and Logged.
func (all modes) Mode() Mode {
	var mode Mode
	for _, m := range all {
		mode.Paused = mode.Paused || m.Paused
		mode.HoldWrites = mode.HoldWrites || m.HoldWrites
		mode.Since = max(mode.Since, m.Since)
	}
	return mode
}

// Begun reports whether any operator has begun.
func (all modes) Begun() bool {
	for _, m := range all {
		if m.Begun {
			return true
		}
	}
	return false
}

// ModeOf returns the mode of one operator.
func (all modes) ModeOf(operator string) Mode { return all[operator] }

// apply folds an event in.
func (all modes) apply(e *Event) {
	mode := all[e.Operator]
	if e.Via == ViaGate && !mode.Gated {
		mode.Gated = true
		all[e.Operator] = mode
	}
	if e.Via == ViaLog && !mode.Logged {
		mode.Gated, mode.Logged = true, true
		all[e.Operator] = mode
	}
	if mode.live(e) {
		all[e.Operator] = mode
	}
	if e.Kind != KindControl {
		return
	}
	switch e.Verb {
	case VerbPause:
		mode.Paused = true
	case VerbResume:
		mode.Paused = false
	case VerbHoldWrites:
		mode.HoldWrites = true
	case VerbSendWrites:
		mode.HoldWrites = false
	default:
		return
	}
	mode.Since = e.At
	all[e.Operator] = mode
}

// live folds in an event that begins or ends the operator's program, and reports whether it is one.
func (m *Mode) live(e *Event) bool {
	switch {
	case e.Kind == KindOperator && e.Verb == VerbStart:
		m.Begun, m.Down, m.Crashed = true, false, false
		m.Partly = e.Reason == ReasonPartly
	case e.Kind == KindOperator && e.Verb == VerbStop:
		m.Down = true
	case e.Kind == KindFault && e.Error == "" && (e.Fault().Kind == FaultCrash || e.Fault().Detail == "Restart" && e.Fault().Kind == FaultStale):
		m.Down, m.Crashed, m.Back = true, true, e.At
		if f := e.Fault(); len(f.Of) > 0 {
			if pause, err := time.ParseDuration(f.Of[0]); err == nil {
				m.Back += pause
			}
		}
	default:
		return false
	}
	return true
}
