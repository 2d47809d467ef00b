//go:build !linux

package guard

import "syscall"

// dieWithThread does nothing: this kernel cannot kill a program when the thread that started it ends.
func dieWithThread(*syscall.SysProcAttr) {}

// killMarked does nothing: this kernel does not show environments as files.
func killMarked(string) bool { return false }

// buried reports false: this kernel does not show the states of processes as files.
func buried(int) bool { return false }
