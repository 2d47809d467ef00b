//go:build !linux

package guard

import "syscall"

// dieWithThread would have the kernel kill a program when the thread ends that started it: not every kernel does.
func dieWithThread(*syscall.SysProcAttr) {}

// killMarked would kill all processes with a mark: not every kernel shows the environment of a process in a file.
func killMarked(string) bool { return false }

// buried would report whether all processes of a group are dead, and only nobody has asked for their exit codes.
func buried(int) bool { return false }
