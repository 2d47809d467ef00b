package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// freezeTime is how long it may take until all processes of the nodes stand still; it takes some milliseconds.
const freezeTime = 5 * time.Second

// freezeNodes has the nodes stand still, with all that runs on them, and the controllers that make and remove volumes,
// until thaw is called. Without nodes there is nothing to freeze.
func (s *Sandbox) freezeNodes(ctx context.Context) (thaw func(), err error) {
	if s.options.Nodes == 0 {
		return func() {}, nil
	}
	var pids []int
	for _, p := range s.programs {
		// The number that a lost node had may be somebody else's now.
		if (nodeIndex(p.name) > 0 || p.name == "kube-controller-manager") && p.pid() > 0 && !p.isOff() {
			pids = append(pids, p.pid())
		}
	}
	ctx, cancel := context.WithTimeout(ctx, freezeTime)
	defer cancel()
	f, err := freeze(ctx, pids)
	if err != nil {
		return nil, fmt.Errorf("freeze the nodes: %w", err)
	}
	return f.thaw, nil
}

// defrost is what a shell runs that lets processes go on whose ids it reads, once nobody is left who could tell it more:
// a process that stands still does not notice that its sandbox is gone. Signals that a terminal sends do not end it.
const defrost = `trap '' HUP INT TERM QUIT
all=
while read -r pid; do all="$all $pid"; done
[ -z "$all" ] || kill -s CONT -- $all 2>/dev/null`

// frozen are processes that stand still.
type frozen struct {
	shell *exec.Cmd
	pipe  io.WriteCloser
	known map[int]bool
}

// freeze has processes stand still with all that descend from them.
func freeze(ctx context.Context, pids []int) (*frozen, error) {
	f := &frozen{shell: exec.Command("sh", "-c", defrost), known: map[int]bool{}}
	f.shell.Env = []string{"PATH=" + os.Getenv("PATH")}
	f.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if f.pipe, err = f.shell.StdinPipe(); err != nil {
		return nil, err
	}
	if err := f.shell.Start(); err != nil {
		return nil, err
	}
	for {
		all, err := processes(ctx)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			f.thaw()
			return nil, err
		}
		if f.stop(pids, all) {
			return f, nil
		}
	}
}

// stop stops what runs, and reports whether nothing did. Parents go first: they make no more children then.
func (f *frozen) stop(pids []int, all map[int]process) (still bool) {
	still = true
	for _, pid := range pids {
		p, alive := all[pid]
		if !alive {
			continue
		}
		still = still && p.still
		if !f.known[pid] {
			f.known[pid] = true
			_, _ = fmt.Fprintln(f.pipe, pid)
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
		still = f.stop(p.children, all) && still
	}
	return still
}

// thaw lets them go on.
func (f *frozen) thaw() {
	_ = f.pipe.Close()
	_ = f.shell.Wait()
}

// process is one of this machine.
type process struct {
	children []int
	// still: it is stopped, or dead.
	still bool
}

// addProcess adds one by what the system says of it.
func addProcess(all map[int]process, pid, parent int, state byte) {
	p := all[pid]
	p.still = state == 'T' || state == 't' || state == 'Z' || state == 'X'
	all[pid] = p
	above := all[parent]
	above.children = append(above.children, pid)
	all[parent] = above
}
