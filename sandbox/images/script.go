package images

import (
	"sync"
	"syscall"
)

// foreground holds the image's programs that scripts have started, by container.
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

// script is a script as the command of a container. Real shells are replaced by the last command of a script and by
// exec, so signals for the container go to the image's program once that runs.
type script struct {
	Running

	programs  *foreground
	container string
}

// Signal implements [Running].
func (s script) Signal(signal syscall.Signal) {
	if r := s.programs.of(s.container); r != nil && signal != syscall.SIGKILL {
		r.Signal(signal)
		return
	}
	s.Running.Signal(signal)
}

// processes implements measurable: they are those of the program in the foreground. The shell itself is a function.
func (s script) processes() (group int, begun bool) { return ProcessesOf(s.programs.of(s.container)) }
