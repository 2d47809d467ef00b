package sandbox

import (
	"maps"
	"slices"
	"testing"
)

func TestPhaseAfterEvents(t *testing.T) {
	for _, test := range []struct {
		name   string
		events []event
		want   phase
	}{
		{"serves", []event{onServe}, serving},
		{"dies by itself", []event{onServe, onDeath, onReap}, starting},
		{"does not come up", []event{onDeath, onReap}, starting},
		{"is killed", []event{onServe, onKill}, killed},
		{"starts again after a kill", []event{onServe, onKill, onDeath, onReap}, starting},
		{"is not killed before it serves", []event{onKill}, starting},
		{"is lost once nothing of it is left", []event{onServe, onLose, onDeath, onReap}, lost},
		{"is still dying", []event{onServe, onLose, onDeath}, losing},
		{"returns", []event{onServe, onLose, onDeath, onReap, onRegain}, starting},
		{"returns before it is dead", []event{onServe, onLose, onRegain}, killed},
		{"is lost, and nobody but onRegain and onRelease returns it", []event{onServe, onLose, onReap, onServe, onKill, onDeath, onReap}, lost},
		{"is held while it serves", []event{onServe, onHold, onDeath, onReap}, held},
		{"is held while it starts, and comes up all the same", []event{onHold, onServe, onDeath, onReap}, held},
		{"is held while it is killed", []event{onServe, onKill, onHold, onDeath, onReap}, held},
		{"is held while it is lost", []event{onServe, onLose, onReap, onHold}, held},
		{"is held, and a node that returns stays held", []event{onServe, onLose, onReap, onHold, onRegain}, held},
		{"is held, and not lost before it serves again", []event{onServe, onHold, onReap, onLose}, held},
		{"is released", []event{onServe, onHold, onDeath, onReap, onRelease}, starting},
		{"is released although it was lost", []event{onServe, onLose, onReap, onRelease}, starting},
		{"is released in vain", []event{onServe, onRelease}, serving},
		{"is stopped", []event{onServe, onStop, onDeath, onReap}, stopped},
		{"is stopped while it is held", []event{onServe, onHold, onReap, onStop, onRelease}, stopped},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &program{}
			for _, e := range test.events {
				p.turn(e)
			}
			if got := p.now(); got != test.want {
				t.Errorf("the phase is %d, not %d", got, test.want)
			}
		})
	}
}

// TestTransitionsAreComplete checks that every phase can be reached and left by some events, except that nothing leaves
// stopped.
func TestTransitionsAreComplete(t *testing.T) {
	reached := map[phase]bool{starting: true}
	for todo := []phase{starting}; len(todo) > 0; todo = todo[1:] {
		for _, e := range slices.Sorted(maps.Keys(transitions)) {
			if next, ok := transitions[e][todo[0]]; ok && !reached[next] {
				reached[next] = true
				todo = append(todo, next)
			}
		}
	}
	for p := starting; p <= stopped; p++ {
		if !reached[p] {
			t.Errorf("phase %d is never reached", p)
		}
		if next, ok := transitions[onStop][p]; ok != (p != stopped) || ok && next != stopped {
			t.Errorf("a program in phase %d cannot be stopped", p)
		}
	}
	for e, changes := range transitions {
		if next, ok := changes[stopped]; ok {
			t.Errorf("event %d takes a stopped program to phase %d", e, next)
		}
	}
	// What switches a program off ends, and what is off can be on again.
	for _, off := range []phase{losing, lost, holding, held} {
		if !off.isOff() {
			t.Errorf("phase %d is not off", off)
		}
		if next, ok := transitions[onRelease][off]; !ok || next.isOff() {
			t.Errorf("a release leaves phase %d off", off)
		}
	}
}
