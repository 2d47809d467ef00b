package guard

import (
	"bytes"
	"context"
	"os"
	"strconv"
)

// Processes returns the processes of this machine.
func Processes(context.Context) ([]Process, error) {
	pids, err := allPIDs()
	if err != nil {
		return nil, err
	}
	var all []Process
	for _, pid := range pids {
		stat, err := os.ReadFile(fileOf(pid, "stat"))
		if err != nil {
			continue // it has ended
		}
		fields := fieldsOf(stat)
		if len(fields) < 3 {
			continue
		}
		parent, _ := strconv.Atoi(string(fields[1]))
		group, _ := strconv.Atoi(string(fields[2]))
		all = append(all, Process{PID: pid, Parent: parent, Group: group, State: fields[0][0]})
	}
	return all, nil
}

// fieldsOf returns the fields after the name of "pid (name) state parent group …": a name may have anything in it.
func fieldsOf(stat []byte) [][]byte { return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) }

// begun returns when a process began, in ticks since the machine did; empty if there is no such process.
func begun(pid int) string {
	const startTime = 19 // the 22nd field of proc(5), whose third is the first after the name
	stat, _ := os.ReadFile(fileOf(pid, "stat"))
	if fields := fieldsOf(stat); len(fields) > startTime {
		return string(fields[startTime])
	}
	return ""
}

// allPIDs returns the pids of all processes. It lists one directory; filepath.Glob would list that of each process, too.
func allPIDs() (pids []int, err error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = proc.Close() }()
	names, err := proc.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// fileOf returns the path of a file in which the kernel tells of a process.
func fileOf(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }
