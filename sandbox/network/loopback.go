package network

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// claimPort is the port of 127.K.0.1 that a sandbox binds to claim the prefix 127.K. It is below the kernel's ephemeral
// ports.
const claimPort = 24417

// The prefixes that can be claimed. 127.0 is everybody's.
const (
	firstLoopback = 2
	lastLoopback  = 254
)

// ClaimLoopback claims a loopback prefix 127.K for a sandbox: the preferred one if it is free, otherwise any free one
// that is not in avoid. No two processes hold the same prefix, and the kernel frees it when its process ends. K is 0
// where the system has no such addresses; release may be called then too, and does nothing.
func ClaimLoopback(prefer int, avoid map[int]bool) (k int, release func(), err error) {
	order := make([]int, 0, lastLoopback)
	if prefer >= firstLoopback && prefer <= lastLoopback {
		order = append(order, prefer)
	}
	for k := firstLoopback; k <= lastLoopback; k++ {
		if k != prefer && !avoid[k] {
			order = append(order, k)
		}
	}
	for _, k := range order {
		_, release, err := hold(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(k), 0, 1}), claimPort), false)
		switch {
		case err == nil:
			return k, release, nil
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			return 0, func() {}, nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return 0, nil, fmt.Errorf("claim 127.%d: %w", k, err)
		}
	}
	return 0, nil, fmt.Errorf("no loopback prefix is free: port %d is in use on all of 127.2 to 127.254", claimPort)
}

// hold binds an address without listening, so that nobody else can bind it and connections are refused. With reuse it
// sets the option that servers set, and fails only if somebody listens there. For port 0 the system chooses a port.
func hold(want netip.AddrPort, reuse bool) (got netip.AddrPort, release func(), err error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return got, nil, fmt.Errorf("open a socket: %w", err)
	}
	release = sync.OnceFunc(func() { _ = unix.Close(fd) }) // there is nothing in it to be lost
	if got, err = bind(fd, want, reuse); err != nil {
		release()
		return got, nil, err
	}
	return got, release, nil
}

func bind(fd int, want netip.AddrPort, reuse bool) (got netip.AddrPort, err error) {
	if reuse {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return got, err
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(want.Port()), Addr: want.Addr().As4()}); err != nil {
		return got, err
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return got, err
	}
	return netip.AddrPortFrom(want.Addr(), uint16(bound.(*unix.SockaddrInet4).Port)), nil
}
