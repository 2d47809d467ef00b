//go:build go1.23

package taps

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// you is the actor of a person's actions on the loop.
const you = "you"

// Control pauses workers before they take a key, and holds writes before they are sent. What is done with it is
// recorded as KindControl events. All methods may be called from any goroutine.
//
// A program behind [Taps.Recorder] has no workers that are known. Its requests take their place: while it is paused they
// wait before they are sent, reads and writes alike, and a step lets one through, the oldest first. Open watches go on
// to deliver, and new ones open; leases, Events, discovery and reviews of access pass.
type Control struct {
	taps *Taps

	mu     sync.Mutex
	paused bool
	steps  int // number of keys that may be taken although paused
	hold   bool
	held   []chan struct{} // the writes held now, oldest first
	queued []chan struct{} // the requests that wait because the loop is paused, oldest first; see Taps.Recorder
	closed bool
}

// admit reports whether a worker may take a key now, and uses up a step if the loop is paused.
func (c *Control) admit() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.admitLocked()
}

func (c *Control) admitLocked() bool {
	if !c.paused {
		return true
	}
	if c.steps == 0 {
		return false
	}
	c.steps--
	return true
}

// errNotSent is returned to an operator that gave up waiting while its write was held, errNotPassed to one whose request
// waited because it is paused.
var (
	errNotSent   = errors.New("the write was held by the lab and never sent")
	errNotPassed = errors.New("the request waited because the lab has paused the program, and was never sent")
)

// pass lets a request go on at once, or makes it wait in the queue of requests while the loop is paused. It returns the Seq
// of the hold event, or 0 if the request did not wait.
func (c *Control) pass(ctx context.Context, planned func() trace.Event) (int64, error) {
	c.mu.Lock()
	if len(c.queued) == 0 && c.admitLocked() {
		c.mu.Unlock()
		return 0, nil
	}
	place := make(chan struct{})
	c.queued = append(c.queued, place)
	c.mu.Unlock()
	e := planned()
	e.Kind, e.Reason = trace.KindHold, trace.ReasonPaused
	seq := c.taps.append(e)
	return seq, c.wait(ctx, &c.queued, place, errNotPassed)
}

// passQueued lets the requests go on that may.
func (c *Control) passQueued() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queued) > 0 && c.admitLocked() {
		close(c.queued[0])
		c.queued = slices.Delete(c.queued, 0, 1)
	}
}

// enter adds a place to the held writes; nil if writes are not held.
func (c *Control) enter() chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hold || c.closed {
		return nil
	}
	place := make(chan struct{})
	c.held = append(c.held, place)
	return place
}

// wait waits at a place of a list until it is released or the context ends.
func (c *Control) wait(ctx context.Context, in *[]chan struct{}, place chan struct{}, ended error) error {
	select {
	case <-place:
		// Stopping an operator releases everything; what is released that way must not be sent.
		if ctx.Err() != nil {
			return errors.Join(ended, context.Cause(ctx))
		}
		return nil
	case <-ctx.Done():
		c.mu.Lock()
		*in = slices.DeleteFunc(*in, func(p chan struct{}) bool { return p == place })
		c.mu.Unlock()
		return errors.Join(ended, context.Cause(ctx))
	}
}

// releaseLocked releases held writes: n of them, or all if n is negative.
func (c *Control) releaseLocked(n int) {
	if n < 0 || n > len(c.held) {
		n = len(c.held)
	}
	for _, place := range c.held[:n] {
		close(place)
	}
	c.held = append([]chan struct{}(nil), c.held[n:]...)
}

// record records an actor's action on the loop.
func (c *Control) record(actor, verb string) {
	c.taps.append(trace.Event{Kind: trace.KindControl, Actor: actor, Verb: verb})
}

// wakeWorkers makes all workers check again whether they may take a key, and requests whether they may pass.
func (c *Control) wakeWorkers() {
	c.passQueued()
	for _, q := range c.taps.allQueues() {
		q.wake()
	}
}

// Paused reports whether the loop is paused.
func (c *Control) Paused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused
}

// HeldWrites returns the number of writes held now.
func (c *Control) HeldWrites() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.held)
}

// Pause holds workers before they take a key. Running reconciles go on; keys collect and merge in the queue, and timers
// that run out become ready and wait. Leader election and watches go on.
func (c *Control) Pause() { c.pause(you) }

func (c *Control) pause(actor string) {
	c.mu.Lock()
	done := c.paused || c.closed
	if !done {
		c.paused, c.steps = true, 0
	}
	c.mu.Unlock()
	if !done {
		c.record(actor, trace.VerbPause)
	}
}

// Resume lets workers take keys again, and sends held writes.
func (c *Control) Resume() {
	c.Release()
	c.mu.Lock()
	was := c.paused
	c.paused, c.steps = false, 0
	c.mu.Unlock()
	if was {
		c.record(you, trace.VerbResume)
		c.wakeWorkers()
	}
}

// Step lets one worker take one key and reconcile it to its end, now or as soon as a key is ready. If a write is held,
// its reconcile continues to its end instead. Step pauses a running loop.
func (c *Control) Step() { c.StepBy(you) }

// StepBy is Step, recorded as the action of an actor, such as the demo.
func (c *Control) StepBy(actor string) {
	c.pause(actor)
	c.mu.Lock()
	closed, held := c.closed, len(c.held) > 0
	if !closed && !held {
		c.steps++
	}
	c.mu.Unlock()
	if closed {
		return
	}
	c.record(actor, trace.VerbStep)
	c.Release()
	c.wakeWorkers()
}

// StepCall continues to the next write and holds it before it is sent: it sends the held write if there is one; else it
// lets one worker take a key. StepCall pauses a running loop.
func (c *Control) StepCall() {
	c.Pause()
	c.HoldWrites()
	c.mu.Lock()
	closed, held := c.closed, len(c.held) > 0
	c.mu.Unlock()
	if closed {
		return
	}
	verb := trace.VerbStep
	if held {
		verb = trace.VerbRelease
	}
	c.record(you, verb) // before anything that comes of it
	c.mu.Lock()
	if held {
		c.releaseLocked(1)
	} else {
		c.steps++
	}
	c.mu.Unlock()
	c.wakeWorkers()
}

// HoldWrites holds each write of a reconcile before it is sent, until StepCall or Release. Reads, and calls outside of
// a reconcile, are not held. Of a program behind [Taps.Recorder] all writes are held that may be paused.
func (c *Control) HoldWrites() {
	c.mu.Lock()
	done := c.hold || c.closed
	if !done {
		c.hold = true
	}
	c.mu.Unlock()
	if !done {
		c.record(you, trace.VerbHoldWrites)
	}
}

// Release sends the held writes and stops holding writes.
func (c *Control) Release() {
	c.mu.Lock()
	was := c.hold
	c.hold = false
	c.mu.Unlock()
	if was {
		c.record(you, trace.VerbSendWrites) // before the writes
	}
	c.mu.Lock()
	c.releaseLocked(-1)
	c.mu.Unlock()
}

// Close releases everything that is held, for good; the taps go on recording. It is called when the manager has ended, which
// ends held workers and writes itself: before, a worker that is let go would take one more key.
func (c *Control) Close() {
	c.mu.Lock()
	c.closed, c.hold, c.paused, c.steps = true, false, false, 0
	c.releaseLocked(-1)
	c.mu.Unlock()
	c.wakeWorkers()
}

// holdWrite holds a write of a reconcile if writes are held. It returns the Seq of the hold event, or 0 if the write was
// not held.
func (c *Control) holdWrite(ctx context.Context, r *runningReconcile, planned func() trace.Event) (int64, error) {
	if r == nil {
		return 0, nil
	}
	return c.holdNow(ctx, planned)
}

// holdNow does what holdWrite says for any write.
func (c *Control) holdNow(ctx context.Context, planned func() trace.Event) (int64, error) {
	place := c.enter()
	if place == nil {
		return 0, nil
	}
	e := planned()
	e.Kind = trace.KindHold
	seq := c.taps.append(e)
	return seq, c.wait(ctx, &c.held, place, errNotSent)
}
