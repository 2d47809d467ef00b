package sandbox

import "context"

// lose kills the program for as long as [program.regain] is not called, and returns when it is dead.
func (p *program) lose() { p.end(true) }

// regain has a lost program be started again.
func (p *program) regain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = false
	p.turned.Broadcast()
}

func (p *program) isLost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// awaitPower returns when the program is not lost any more, or false when it is stopped.
func (p *program) awaitPower() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turned.L = &p.mu
	for p.lost && !p.stopping {
		p.turned.Wait()
	}
	return !p.stopping
}

// awaitServing returns when the program serves, or never will before somebody wants it to, or with ctx's error.
func (p *program) awaitServing(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.turned.Broadcast()
	})
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turned.L = &p.mu
	for !p.serving && !p.stopping && !p.lost && ctx.Err() == nil {
		p.turned.Wait()
	}
	return ctx.Err()
}
