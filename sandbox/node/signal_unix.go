//go:build unix

package node

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// stopSignal is the one that asks the program to end: the pod's, or SIGTERM. Real-time signals have no meaning to a
// program; they are SIGTERM, too.
func (c *container) stopSignal() syscall.Signal {
	if s := signalNumber(c.config.GetStopSignal().String()); s != 0 {
		return s
	}
	return syscall.SIGTERM
}

// signalNumber knows SIGUSR1; 0 is none.
func signalNumber(name string) syscall.Signal { return unix.SignalNum(name) }
