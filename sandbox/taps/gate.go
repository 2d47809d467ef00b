package taps

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// you is the actor of what a person does to the loop.
const you = "you"

// gate holds workers before they take a key, and writes before they are sent.
type gate struct {
	taps *Taps

	mu     sync.Mutex
	paused bool
	steps  int // keys that may be taken although paused
	hold   bool
	held   []chan struct{} // the writes held now, oldest first
	closed bool
}

func newGate(t *Taps) *gate { return &gate{taps: t} }

// admit reports whether a worker may take a key now, and uses up a step if that is why.
func (g *gate) admit() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.paused {
		return true
	}
	if g.steps == 0 {
		return false
	}
	g.steps--
	return true
}

// errNotSent tells an operator that its write was not sent because it gave up
// waiting while the write was held.
var errNotSent = errors.New("the write was held by the lab and never sent")

// enter takes a place among the held writes; nil if writes are not held.
func (g *gate) enter() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.hold || g.closed {
		return nil
	}
	c := make(chan struct{})
	g.held = append(g.held, c)
	return c
}

// wait holds a write at its place until it is released or its context ends.
func (g *gate) wait(ctx context.Context, place chan struct{}) error {
	select {
	case <-place:
		// Whoever stops an operator lets everything go; what was held is not to be sent by that.
		if ctx.Err() != nil {
			return errors.Join(errNotSent, context.Cause(ctx))
		}
		return nil
	case <-ctx.Done():
		g.mu.Lock()
		g.held = slices.DeleteFunc(g.held, func(c chan struct{}) bool { return c == place })
		g.mu.Unlock()
		return errors.Join(errNotSent, context.Cause(ctx))
	}
}

// releaseLocked lets held writes go: n of them, or all if n is negative.
func (g *gate) releaseLocked(n int) (released int) {
	if n < 0 || n > len(g.held) {
		n = len(g.held)
	}
	for _, c := range g.held[:n] {
		close(c)
	}
	g.held = append([]chan struct{}(nil), g.held[n:]...)
	return n
}

// record notes in the journal what a person did to the loop.
func (t *Taps) record(verb string) {
	t.append(trace.Event{Kind: trace.KindControl, Actor: you, Verb: verb})
}

// wakeWorkers lets all workers look again whether they may take a key.
func (t *Taps) wakeWorkers() {
	t.mu.Lock()
	queues := make([]*queue, 0, len(t.queues))
	for q := range t.queues {
		queues = append(queues, q)
	}
	t.mu.Unlock()
	for _, q := range queues {
		q.wake()
	}
}

// Paused reports whether workers are held.
func (t *Taps) Paused() bool {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	return t.gate.paused
}

// HeldWrites returns how many writes are held now.
func (t *Taps) HeldWrites() int {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	return len(t.gate.held)
}

// Pause holds workers before they take a key. Reconciles that run go on; keys
// pile up in the queue and merge there, and timers that run out become ready
// and wait. Leader election and watches go on.
func (t *Taps) Pause() {
	t.gate.mu.Lock()
	done := t.gate.paused || t.gate.closed
	if !done {
		t.gate.paused, t.gate.steps = true, 0
	}
	t.gate.mu.Unlock()
	if !done {
		t.record(trace.VerbPause)
	}
}

// Resume lets workers take keys again, and sends held writes.
func (t *Taps) Resume() {
	t.Release()
	t.gate.mu.Lock()
	was := t.gate.paused
	t.gate.paused, t.gate.steps = false, 0
	t.gate.mu.Unlock()
	if was {
		t.record(trace.VerbResume)
		t.wakeWorkers()
	}
}

// Step lets one worker take one key and reconcile it to its end, now or as
// soon as a key is ready. If a write is held, its reconcile is let go on to
// its end instead. It pauses a loop that runs.
func (t *Taps) Step() {
	t.Pause()
	t.gate.mu.Lock()
	closed, held := t.gate.closed, len(t.gate.held) > 0
	if !closed && !held {
		t.gate.steps++
	}
	t.gate.mu.Unlock()
	if closed {
		return
	}
	t.record(trace.VerbStep)
	t.Release()
	t.wakeWorkers()
}

// StepCall goes on to the next write and holds it before it is sent: it sends
// the write that is held, if there is one; else it lets one worker take a key.
// It pauses a loop that runs.
func (t *Taps) StepCall() {
	t.Pause()
	t.HoldWrites()
	t.gate.mu.Lock()
	closed := t.gate.closed
	verb := trace.VerbStep
	switch {
	case closed:
	case t.gate.releaseLocked(1) == 1:
		verb = trace.VerbRelease
	default:
		t.gate.steps++
	}
	t.gate.mu.Unlock()
	if closed {
		return
	}
	t.record(verb)
	t.wakeWorkers()
}

// HoldWrites holds each write of a reconcile before it is sent, until StepCall
// or Release. Reads are not held, nor is anything outside of a reconcile.
func (t *Taps) HoldWrites() {
	t.gate.mu.Lock()
	done := t.gate.hold || t.gate.closed
	if !done {
		t.gate.hold = true
	}
	t.gate.mu.Unlock()
	if !done {
		t.record(trace.VerbHoldWrites)
	}
}

// Release sends the writes that are held and holds no more.
func (t *Taps) Release() {
	t.gate.mu.Lock()
	was := t.gate.hold
	t.gate.hold = false
	t.gate.releaseLocked(-1)
	t.gate.mu.Unlock()
	if was {
		t.record(trace.VerbSendWrites)
	}
}

// Close lets go of everything that is held, for good; the taps go on
// recording. Call it before the manager is stopped or after: workers and
// writes that are held also give way to the manager's own shutdown.
func (t *Taps) Close() {
	t.Resume()
	t.gate.mu.Lock()
	t.gate.closed = true
	t.gate.mu.Unlock()
}

// hold holds a write of a reconcile if writes are held. It returns the Seq of
// the event that shows the write, or 0 if it was not held.
func (t *Taps) hold(ctx context.Context, v *visit, planned func() trace.Event) (int64, error) {
	if v == nil {
		return 0, nil
	}
	place := t.gate.enter()
	if place == nil {
		return 0, nil
	}
	e := planned()
	e.Kind, e.Cause = trace.KindHold, v.start
	seq := t.append(e)
	return seq, t.gate.wait(ctx, place)
}

// elapsedSince returns the time since a moment of the journal.
func (t *Taps) elapsedSince(begun time.Duration) time.Duration { return t.journal.Elapsed() - begun }
