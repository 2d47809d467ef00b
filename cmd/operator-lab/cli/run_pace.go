package cli

import (
	"context"
	"sync"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/sandbox/trace"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

// pace lets a demo wait until the person at the screen asks it to go on: after the first reconcile, and before each deed but
// the first.
type pace struct {
	unasked bool // it never waits: nobody is at the screen, or asked for that
	mu      sync.Mutex
	auto    bool          // it waits no more, until its end
	waiting string        // what the deed that waits will do; empty if none does
	next    chan struct{} // closed to play it
	opened  chan struct{} // closed when the loop goes on after the first reconcile; nil if it was not paused
}

// openLoop is the loop that open pauses.
type openLoop interface {
	StepBy(actor string)
	Resume()
	Paused() bool
}

var _ tui.Demo = (*pace)(nil)

// open lets the loop do one reconcile, that of the first deed, and pauses it then until the person asks the demo to go on, or
// resumes the loop by its own key. It returns at once; await waits until the loop goes on.
func (p *pace) open(ctx context.Context, journal *trace.Journal, loop openLoop, text string) {
	opened := make(chan struct{})
	p.mu.Lock()
	on := p.auto || p.unasked
	if !on {
		p.opened = opened
	}
	p.mu.Unlock()
	if on {
		return
	}
	changed, unsubscribe := journal.Subscribe()
	loop.StepBy(trace.Demo) // it may take a while, and the screen asks for Waiting meanwhile
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer unsubscribe()
		defer cancel()
		for loop.Paused() {
			select {
			case <-changed: // the journal has who resumes it
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() {
		defer close(opened)
		defer cancel()
		if p.ask(ctx, text) {
			loop.Resume()
		}
	}()
}

// await returns when a deed may be done, or with the context.
func (p *pace) await(ctx context.Context, deed string) {
	p.mu.Lock()
	opened := p.opened
	p.mu.Unlock()
	if opened != nil {
		<-opened // it ends with the same context
	}
	p.ask(ctx, deed)
}

// ask waits until a deed may be done, and reports whether it may: not if the context has ended before.
func (p *pace) ask(ctx context.Context, deed string) bool {
	p.mu.Lock()
	if p.auto || p.unasked {
		p.mu.Unlock()
		return true
	}
	next := make(chan struct{})
	p.waiting, p.next = deed, next
	p.mu.Unlock()
	select {
	case <-next:
		return true
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = ""
	return false
}

// again waits after the last deed, and reports whether the demo is to begin again, which the text tells.
func (p *pace) again(ctx context.Context, text string) bool {
	p.mu.Lock()
	p.auto = false
	p.mu.Unlock()
	p.await(ctx, text)
	return !p.unasked && ctx.Err() == nil
}

// Waiting returns what the deed that waits will do; empty if none does.
func (p *pace) Waiting() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}

// Next plays the deed that waits.
func (p *pace) Next() { p.play(false) }

// PlayOn plays it and all that follow.
func (p *pace) PlayOn() { p.play(true) }

func (p *pace) play(auto bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.auto = p.auto || auto
	if p.waiting != "" {
		close(p.next)
		p.waiting = ""
	}
}

// isDeed reports whether a step does something, and not only waits for something.
func isDeed(step format.TestStep) bool {
	for _, o := range step.Try {
		if o.Apply != nil || o.Command != nil || o.Create != nil || o.Delete != nil || o.Patch != nil || o.Script != nil || o.Update != nil {
			return true
		}
	}
	return false
}
