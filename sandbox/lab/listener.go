package lab

import (
	"sync/atomic"

	"github.com/operator-lab/operator-lab/sandbox"
)

// Listener passes on what a sandbox reports to the lab in it. A sandbox reports from its start, and its lab is opened later:
// what is reported before [Listener.Set] is dropped.
type Listener struct{ lab atomic.Pointer[Lab] }

// Listen has a sandbox that is about to start report writes to its API and programs that end.
func (l *Listener) Listen(o *sandbox.Options) {
	o.OnAudit = func(line []byte) {
		if lab := l.lab.Load(); lab != nil {
			lab.Audit(line)
		}
	}
	o.OnExit = func(e sandbox.Exit) {
		if lab := l.lab.Load(); lab != nil {
			lab.Exited(e)
		}
	}
}

// Set sets the lab that is told from now on.
func (l *Listener) Set(lab *Lab) { l.lab.Store(lab) }
