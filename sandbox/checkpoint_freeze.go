package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/operator-lab/operator-lab/sandbox/guard"
)

// freezeTime limits how long freezing may take; it takes some milliseconds.
const freezeTime = 5 * time.Second

// freezeNodes stops all processes of the nodes, and the controllers that make and remove volumes, until thaw is called.
// Without nodes there is nothing to freeze.
func (c *Checkpoints) freezeNodes(ctx context.Context) (thaw func(), err error) {
	if c.box.options.Nodes == 0 {
		return func() {}, nil
	}
	var pids []int
	for _, p := range c.box.programs {
		// The pid that a lost node had may be another process's now.
		if (nodeIndex(p.name) > 0 || p.name == "kube-controller-manager") && p.pid() > 0 && !p.now().isOff() {
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

// defrost is a script for a shell: it reads pids until its input ends, which it does when this process ends or calls
// thaw, and then continues those processes. A stopped process cannot notice itself that its sandbox is gone. Signals
// that a terminal sends to all processes do not end the shell.
const defrost = `trap '' HUP INT TERM QUIT
all=
while read -r pid; do all="$all $pid"; done
[ -z "$all" ] || kill -s CONT -- $all 2>/dev/null`

// frozen holds processes that are stopped by SIGSTOP.
type frozen struct {
	shell *exec.Cmd
	pipe  io.WriteCloser
	known map[int]bool
}

// freeze stops processes and all their descendants.
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

// stop stops processes that are not known yet, and reports whether all were stopped before. Parents go first, so that
// they start no more children.
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

// thaw continues all of them.
func (f *frozen) thaw() {
	_ = f.pipe.Close()
	_ = f.shell.Wait()
}

// process is a process of this machine.
type process struct {
	children []int
	// still says that it is stopped or dead.
	still bool
}

// processes returns those of this machine by their pids.
func processes(ctx context.Context) (map[int]process, error) {
	list, err := guard.Processes(ctx)
	all := map[int]process{}
	for _, l := range list {
		p := all[l.PID]
		p.still = l.Dead() || l.State == 'T' || l.State == 't'
		all[l.PID] = p
		above := all[l.Parent]
		above.children = append(above.children, l.PID)
		all[l.Parent] = above
	}
	return all, err
}
