package taps

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// you is the actor of a person's actions on the loop.
const you = "you"

// gate holds workers before they take a key, and writes before they are sent.
type gate struct {
	taps *Taps

	mu     sync.Mutex
	paused bool
	steps  int // number of keys that may be taken although paused
	hold   bool
	held   []chan struct{} // the writes held now, oldest first
	closed bool
}

func newGate(t *Taps) *gate { return &gate{taps: t} }

// admit reports whether a worker may take a key now, and uses up a step if the loop is paused.
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

// errNotSent is returned to an operator that gave up waiting while its write was held.
var errNotSent = errors.New("the write was held by the lab and never sent")

// enter adds a place to the held writes; nil if writes are not held.
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
		// Stopping an operator releases everything; a write that is released that way must not be sent.
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

// releaseLocked releases held writes: n of them, or all if n is negative.
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

// record records a person's action on the loop.
func (t *Taps) record(verb string) {
	t.append(trace.Event{Kind: trace.KindControl, Actor: you, Verb: verb})
}

// wakeWorkers makes all workers check again whether they may take a key.
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

// Paused reports whether the loop is paused.
func (t *Taps) Paused() bool {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	return t.gate.paused
}

// HeldWrites returns the number of writes held now.
func (t *Taps) HeldWrites() int {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	return len(t.gate.held)
}

// Pause holds workers before they take a key. Running reconciles go on; keys collect and merge in the queue, and timers
// that run out become ready and wait. Leader election and watches go on.
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

// Step lets one worker take one key and reconcile it to its end, now or as soon as a key is ready. If a write is held,
// its reconcile continues to its end instead. Step pauses a running loop.
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

// StepCall continues to the next write and holds it before it is sent: it sends the held write if there is one; else it
// lets one worker take a key. StepCall pauses a running loop.
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

// HoldWrites holds each write of a reconcile before it is sent, until StepCall or Release. Reads, and calls outside of
// a reconcile, are not held.
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

// Release sends the held writes and stops holding writes.
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

// Close releases everything that is held, for good; the taps go on recording. Call it before or after the manager is
// stopped: held workers and writes also end with the manager's own shutdown.
func (t *Taps) Close() {
	t.Resume()
	t.gate.mu.Lock()
	t.gate.closed = true
	t.gate.mu.Unlock()
}

// hold holds a write of a reconcile if writes are held. It returns the Seq of the hold event, or 0 if the write was not
// held.
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

// elapsedSince returns the time since a time of the journal.
func (t *Taps) elapsedSince(begun time.Duration) time.Duration { return t.journal.Elapsed() - begun }
