package guard

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// dieWithThread has the kernel kill a program when the thread ends that started it.
func dieWithThread(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// killMarked kills all processes whose environment has a variable that begins so, and reports whether there were any.
// One may start another while it is being found, so it looks again until there is nothing new.
func killMarked(mark string) (found bool) {
	killed := map[string]bool{}
	for again := true; again; {
		again = false
		files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is a good one
		for _, file := range files {
			if killed[file] {
				continue
			}
			environment, err := os.ReadFile(file) // that of a process that has ended is empty
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

// buried reports whether all processes of a group are dead, and only nobody has asked for their exit codes.
func buried(group int) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is a good one
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// "pid (name) state parent group …": a name may have anything in it.
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
