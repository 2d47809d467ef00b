package guard

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// dieWithThread makes the kernel kill a program when the thread that started it ends.
func dieWithThread(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// killMarked kills all processes whose environment has a variable that begins with mark, and reports whether there were
// any. A process may start another one meanwhile, so it repeats until it finds no new one.
func killMarked(mark string) (found bool) {
	killed := map[string]bool{}
	for again := true; again; {
		again = false
		files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is valid
		for _, file := range files {
			if killed[file] {
				continue
			}
			environment, err := os.ReadFile(file) // empty for a process that has ended
			if err != nil || !bears(environment, mark) {
				continue
			}
			killed[file], found, again = true, true, true
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	return found
}

// buried reports whether all processes of a group are zombies.
func buried(group int) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// "pid (name) state parent group …": a name may contain anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 3 || string(fields[2]) != strconv.Itoa(group) {
			continue
		}
		if state := fields[0][0]; state != 'Z' && state != 'X' {
			return false
		}
	}
	return true
}
