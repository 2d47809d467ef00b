package runner

import "syscall"

// dieWithThread has the kernel kill a program when the thread ends that started it.
func dieWithThread(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
