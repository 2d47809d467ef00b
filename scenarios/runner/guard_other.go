//go:build !linux

package runner

import "syscall"

// dieWithThread would have the kernel kill a program when the thread ends that started it: not every kernel does.
func dieWithThread(*syscall.SysProcAttr) {}
