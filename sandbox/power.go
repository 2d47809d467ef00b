package sandbox

import "context"

// lose kills the program and keeps it dead until [program.regain]. It returns when it is dead.
func (p *program) lose() { p.end(true) }

// regain has a lost program be started again.
func (p *program) regain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = false
	p.turned.Broadcast()
}

// hold ends the program, whatever it is about, and keeps it from being started until [program.release]. It returns when
// nothing of it is left: in contrast to one that is lost, somebody changes its files then.
func (p *program) hold() {
	p.mu.Lock()
	p.held, p.serving = true, false
	out := p.out
	p.mu.Unlock()
	if p.orderly {
		_ = p.halt()
	}
	out.kill()
	p.awaitParked()
}

// awaitParked returns when the death of a program that is kept from being started was noticed: before, who allows it to start
// again would make that death look like its own fault.
func (p *program) awaitParked() {
	_ = p.await(context.Background(), func() bool { return p.parked || p.stopping })
}

// release has a program be started again that was held, or lost by whomever.
func (p *program) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.lost = false, false
	p.turned.Broadcast()
}

// isOff reports whether the program is not to be running, so that its death is no surprise.
func (p *program) isOff() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost || p.held
}

// awaitPower returns when the program is neither lost nor held any more: on is false when it is stopped instead. It was
// held when it did not die by itself.
func (p *program) awaitPower() (on, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turned.L = &p.mu
	p.parked = true
	p.turned.Broadcast()
	for (p.lost || p.held) && !p.stopping {
		held = held || p.held
		p.turned.Wait()
	}
	p.parked = false
	return !p.stopping, held
}

// awaitServing returns when the program serves, or never will before somebody wants it to, or with ctx's error.
func (p *program) awaitServing(ctx context.Context) error {
	return p.await(ctx, func() bool { return p.serving || p.stopping || p.lost })
}

// await returns when a condition holds, which is looked at with p.mu held, or with ctx's error.
func (p *program) await(ctx context.Context, condition func() bool) error {
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.turned.Broadcast()
	})
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turned.L = &p.mu
	for !condition() && ctx.Err() == nil {
		p.turned.Wait()
	}
	return ctx.Err()
}
