package usage

import (
	"time"

	"github.com/prometheus/procfs"
)

// Processes are the processes of this machine at a moment.
type Processes struct {
	all []procfs.ProcStat
}

// Look reads what each process has used. It fails where the system does not tell.
func Look() (*Processes, error) {
	system, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, err
	}
	list, err := system.AllProcs()
	if err != nil {
		return nil, err
	}
	p := &Processes{}
	for _, one := range list {
		if stat, err := one.Stat(); err == nil { // else it has ended
			p.all = append(p.all, stat)
		}
	}
	return p, nil
}

// OfGroup returns what a process group has used; false: it has ended.
func (p *Processes) OfGroup(id int) (sum Used, found bool) {
	return p.sum(func(s procfs.ProcStat) bool { return s.PGRP == id })
}

// OfTree returns what a process and those below it have used; false: it has ended.
func (p *Processes) OfTree(pid int) (sum Used, found bool) {
	parents := map[int]int{}
	for _, s := range p.all {
		parents[s.PID] = s.PPID
	}
	return p.sum(func(s procfs.ProcStat) bool {
		at := s.PID
		for range len(p.all) { // what was read while processes came and went may have a loop
			if at == pid || at == 0 {
				break
			}
			at = parents[at]
		}
		return at == pid
	})
}

// tick is the unit in which Linux tells times of processors.
const tick = time.Second / 100

func (p *Processes) sum(of func(procfs.ProcStat) bool) (sum Used, found bool) {
	for _, s := range p.all {
		if !of(s) {
			continue
		}
		found = found || s.State != "Z" && s.State != "X" // those have ended
		sum.CPU += time.Duration(s.UTime+s.STime) * tick
		sum.CPU += time.Duration(s.CUTime+s.CSTime) * tick
		sum.Resident += uint64(max(0, s.ResidentMemory()))
	}
	return sum, found
}
