//go:build unix

package node

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// stopSignal returns the signal that asks the program to end: the pod's, or SIGTERM. Real-time signals are replaced by
// SIGTERM, since they mean nothing to a program.
func (c *container) stopSignal() syscall.Signal {
	if s := signalNumber(c.config.GetStopSignal().String()); s != 0 {
		return s
	}
	return syscall.SIGTERM
}

// signalNumber knows SIGUSR1; 0 is none.
func signalNumber(name string) syscall.Signal { return unix.SignalNum(name) }
