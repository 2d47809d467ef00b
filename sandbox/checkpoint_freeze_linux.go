package sandbox

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
)

// processes are all of this machine.
func processes(context.Context) (map[int]process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	all := map[int]process{}
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// "pid (name) state parent …": a name may have anything in it.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parent, _ := strconv.Atoi(string(fields[1]))
		addProcess(all, pid, parent, fields[0][0])
	}
	return all, nil
}
