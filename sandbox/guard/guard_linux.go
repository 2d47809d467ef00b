package guard

import (
	"context"
	"os"
	"slices"
	"syscall"
)

// dieWithThread makes the kernel kill a program when the thread that started it ends.
func dieWithThread(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// killMarked kills all processes whose environment has a variable that begins with mark, and reports whether there were
// any. A process may start another one meanwhile, so it repeats until it finds no new one.
func killMarked(mark string) (found bool) {
	killed := map[int]bool{}
	for again := true; again; {
		again = false
		all, _ := allPIDs() // none without /proc
		for _, pid := range all {
			if killed[pid] {
				continue
			}
			environment, err := os.ReadFile(fileOf(pid, "environ")) // empty for a process that has ended
			if err != nil || !bears(environment, mark) {
				continue
			}
			killed[pid], found, again = true, true, true
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return found
}

// buried reports whether all processes of a group are zombies.
func buried(group int) bool {
	all, _ := Processes(context.Background()) // none without /proc
	return !slices.ContainsFunc(all, func(p Process) bool { return p.Group == group && !p.Dead() })
}
