package cli

import (
	"context"
	"sync"

	"github.com/operator-lab/operator-lab/cmd/operator-lab/tui"
	"github.com/operator-lab/operator-lab/scenarios/format"
)

// pace lets a demo wait before each of its deeds until the person at the screen asks for it.
type pace struct {
	unasked bool // it never waits: nobody is at the screen, or asked for that
	mu      sync.Mutex
	auto    bool          // it waits no more, until its end
	waiting string        // what the deed that waits will do; empty if none does
	next    chan struct{} // closed to play it
}

var _ tui.Demo = (*pace)(nil)

// await returns when a deed may be done, or with the context.
func (p *pace) await(ctx context.Context, deed string) {
	p.mu.Lock()
	if p.auto || p.unasked {
		p.mu.Unlock()
		return
	}
	next := make(chan struct{})
	p.waiting, p.next = deed, next
	p.mu.Unlock()
	select {
	case <-next:
	case <-ctx.Done():
	}
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
