package program

import (
	"sync"
	"syscall"
)

// foreground are the programs of an image that scripts have started, by their containers.
type foreground struct {
	mu      sync.Mutex
	running map[string]Running
}

func newForeground() *foreground { return &foreground{running: map[string]Running{}} }

func (f *foreground) of(container string) Running {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running[container]
}

// begin notes a program until the function that it returns is called.
func (f *foreground) begin(container string, r Running) (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[container] = r
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.running[container] == r {
			delete(f.running, container)
		}
	}
}

// script is a script as the command of a container. Shells leave their place to the last command of a script, and to what
// is run with exec, so what the container is told by signals is meant for the image's program, once that runs.
type script struct {
	Running

	programs  *foreground
	container string
}

// Signal is of Running.
func (s script) Signal(signal syscall.Signal) {
	if r := s.programs.of(s.container); r != nil && signal != syscall.SIGKILL {
		r.Signal(signal)
		return
	}
	s.Running.Signal(signal)
}
