//go:build !linux

package network

import (
	"net/netip"
	"syscall"
)

// bindLate is for Linux.
func bindLate(_, _ string, _ syscall.RawConn) error { return nil }

// listensExactly always reports true, because these systems cannot tell. It is hardly ever called: without addresses
// 127.K there is no need for it.
func listensExactly(netip.AddrPort) bool { return true }
