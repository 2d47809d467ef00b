package trace

import "time"

// Mode says whether loops are paused and writes held.
type Mode struct {
	// Paused means that workers take only keys that were stepped.
	Paused bool
	// HoldWrites means that each write waits for a release before it is sent.
	HoldWrites bool
	// Since is when the mode was last changed.
	Since time.Duration
}

// modes are the modes of the operators, by name.
type modes map[string]Mode

// Mode returns the combined mode of all operators.
func (all modes) Mode() Mode {
	var mode Mode
	for _, m := range all {
		mode.Paused = mode.Paused || m.Paused
		mode.HoldWrites = mode.HoldWrites || m.HoldWrites
		mode.Since = max(mode.Since, m.Since)
	}
	return mode
}

// ModeOf returns the mode of one operator.
func (all modes) ModeOf(operator string) Mode { return all[operator] }

// apply folds an event in.
func (all modes) apply(e *Event) {
	if e.Kind != KindControl {
		return
	}
	mode := all[e.Operator]
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
