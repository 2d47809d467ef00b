package shell

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

func ps(p *process, _ []string, io streams) int {
	fmt.Fprintf(io.out, "PID   USER     TIME  COMMAND\n%5d root      0:00 %s\n", 1, p.container.Program)
	return 0
}

// signals that kill knows.
var signals = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "KILL": syscall.SIGKILL,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "TERM": syscall.SIGTERM, "STOP": syscall.SIGSTOP,
	"CONT": syscall.SIGCONT, "ABRT": syscall.SIGABRT,
}

func kill(p *process, argv []string, io streams) int {
	args, signal := argv[1:], syscall.SIGTERM
	if len(args) > 1 && args[0] == "-s" {
		args = append([]string{"-" + args[1]}, args[2:]...)
	}
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		name := strings.TrimPrefix(strings.ToUpper(args[0][1:]), "SIG")
		n, err := strconv.Atoi(name)
		switch {
		case err == nil && n >= 0 && n < 32:
			signal = syscall.Signal(n)
		case signals[name] != 0:
			signal = signals[name]
		default:
			return problem(io, argv, "bad signal name '%s'", name)
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return problem(io, argv, "you need to specify whom to kill")
	}
	code := 0
	for _, pid := range args {
		if _, err := strconv.Atoi(pid); err != nil {
			code = problem(io, argv, "invalid number '%s'", pid)
			continue
		}
		if pid != "1" {
			code = problem(io, argv, "can't kill pid %s: No such process", pid)
			continue
		}
		// As the kernel does, for the first process of a container.
		if signal != syscall.SIGKILL && signal != syscall.SIGSTOP && signal != 0 && p.container.Signal != nil {
			p.container.Signal(signal)
		}
	}
	return code
}
