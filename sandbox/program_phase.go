package sandbox

import "context"

// phase says where a program is between its start and its end.
type phase int

const (
	starting phase = iota // it is launched, or about to be launched again
	serving
	killed  // it is being killed, and is started again
	losing  // it is being killed, and stays off until onRegain
	lost    // it is off until onRegain
	holding // it is being ended, and stays off until onRelease
	held    // it is off until onRelease
	stopped // it is never started again
)

// isOff reports whether the program is not to run, so that its death is no surprise.
func (p phase) isOff() bool { return p == losing || p == lost || p == holding || p == held }

// event is a reason for a program to enter another phase.
type event int

const (
	onServe   event = iota // the launched process serves
	onDeath                // the process has ended
	onReap                 // nothing of the process is left
	onKill                 // somebody asked for its death
	onLose                 // somebody asked for its death, and for it to stay off
	onRegain               // it may be on again if it was lost
	onHold                 // somebody is about to change its files
	onRelease              // it may be on again, whoever switched it off
	onStop                 // the sandbox stops, or gives up on the program
)

// transitions are all changes of phase. An event changes nothing in a phase that it does not list.
var transitions = map[event]map[phase]phase{
	onServe:   {starting: serving},
	onDeath:   {serving: starting, killed: starting},
	onReap:    {losing: lost, holding: held},
	onKill:    {serving: killed},
	onLose:    {serving: losing},
	onRegain:  {losing: killed, lost: starting},
	onHold:    {starting: holding, serving: holding, killed: holding, losing: holding, lost: held},
	onRelease: {losing: killed, lost: starting, holding: starting, held: starting},
	onStop: {
		starting: stopped, serving: stopped, killed: stopped, losing: stopped, lost: stopped, holding: stopped, held: stopped,
	},
}

// turn applies an event, and returns the phase before it.
func (p *program) turn(e event) (before phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turnLocked(e)
}

// turnLocked is turn for callers that hold p.mu.
func (p *program) turnLocked(e event) (before phase) {
	before = p.phase
	if next, ok := transitions[e][before]; ok {
		p.phase = next
		p.turned.Broadcast()
	}
	return before
}

// now returns the phase.
func (p *program) now() phase {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.phase
}

// wait waits for a phase that fulfills a condition, or for the end of ctx. The caller holds p.mu.
func (p *program) wait(ctx context.Context, until func(phase) bool) {
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.turned.Broadcast()
	})
	defer stop()
	p.turned.L = &p.mu
	for !until(p.phase) && ctx.Err() == nil {
		p.turned.Wait()
	}
}

// isSettled reports whether the program serves, or will not before somebody asks for it.
func (p phase) isSettled() bool { return p == serving || p == losing || p == lost || p == stopped }

// isDown reports whether nobody waits for the end of the process.
func (p phase) isDown() bool { return p != losing && p != holding }

// awaitServing returns when the program serves, or will not before somebody asks for it, or with ctx's error.
func (p *program) awaitServing(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait(ctx, phase.isSettled)
	return ctx.Err()
}

// awaitDown returns when a program that is being switched off is off. If it were allowed to start before, its death would
// count as its own fault.
func (p *program) awaitDown() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait(context.Background(), phase.isDown)
}

// awaitPower notes that the process is gone, and returns when the program may be started again. on is false if it is
// stopped instead. wasHeld says that it was ended by hold, and not by itself.
func (p *program) awaitPower() (on, wasHeld bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turnLocked(onReap)
	wasHeld = p.phase == held
	p.wait(context.Background(), func(now phase) bool { return now != lost && now != held })
	return p.phase != stopped, wasHeld
}

// kill ends the process with SIGKILL and returns when it is dead; [program.watch] starts it again. It waits for one that
// is being started: killed before it serves, the program would seem to be one that cannot be started.
func (p *program) kill() { p.end(onKill) }

// lose kills the program and keeps it off until [program.regain]. It returns when it is off.
func (p *program) lose() {
	p.end(onLose)
	p.awaitDown()
}

// regain lets a lost program be started again.
func (p *program) regain() { p.turn(onRegain) }

// end kills a program once it serves. It does nothing to one that is lost or stopped.
func (p *program) end(e event) {
	p.mu.Lock()
	p.wait(context.Background(), phase.isSettled)
	before, out := p.turnLocked(e), p.out
	p.mu.Unlock()
	if before != serving {
		return
	}
	out.kill()
	<-out.ended
}

// hold ends the program in any phase, and keeps it off until [program.release]. It returns when nothing of the process is
// left, because the caller changes its files then.
func (p *program) hold() {
	p.mu.Lock()
	p.turnLocked(onHold)
	out := p.out
	p.mu.Unlock()
	if p.orderly {
		_ = p.halt()
	}
	out.kill()
	p.awaitDown()
}

// release lets a program be started again that was held, or lost by anybody.
func (p *program) release() { p.turn(onRelease) }
