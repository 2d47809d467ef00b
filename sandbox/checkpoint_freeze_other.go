//go:build !linux

package sandbox

import (
	"bytes"
	"context"
	"os/exec"
	"strconv"
)

// processes are all of this machine.
func processes(ctx context.Context) (map[int]process, error) {
	table, err := exec.CommandContext(ctx, "ps", "-A", "-o", "pid=,ppid=,state=").Output()
	if err != nil {
		return nil, err
	}
	all := map[int]process{}
	for line := range bytes.Lines(table) {
		fields := bytes.Fields(line)
		if len(fields) < 3 {
			continue
		}
		pid, _ := strconv.Atoi(string(fields[0]))
		parent, _ := strconv.Atoi(string(fields[1]))
		addProcess(all, pid, parent, fields[2][0])
	}
	return all, nil
}
