package network

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bindLate makes the kernel choose the source port of a connection at connect time, when the destination is known.
// Otherwise each port could be used for one connection only.
func bindLate(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) // an improvement only
	})
}

// sockDiag is Linux' inet_diag_req_v2 with its header: a query for one socket.
type sockDiag struct {
	header                     unix.NlMsghdr
	family, protocol, ext, pad uint8
	states                     uint32
	id                         sockID
}

// sockID is Linux' inet_diag_sockid. Addresses and ports are in network order.
type sockID struct {
	sourcePort, destinationPort [2]byte
	source, destination         [16]byte
	device                      uint32
	cookie                      [2]uint32
}

// The place of the socket's address in the kernel's answer.
const (
	sockDiagByFamily = 20 // SOCK_DIAG_BY_FAMILY
	answerFamily     = unix.SizeofNlMsghdr
	answerSource     = answerFamily + 4 + 4 // after family, state, timer, retrans and the ports
	anySocket        = ^uint32(0)           // INET_DIAG_NOCOOKIE
)

// listensExactly asks the kernel whether a connection to the address would be accepted by a socket bound to exactly
// that address, not to all addresses of the machine. It reports true if the kernel does not tell.
func listensExactly(at netip.AddrPort) bool {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return true
	}
	defer func() { _ = unix.Close(fd) }() // nothing depends on its error
	question := sockDiag{family: unix.AF_INET, protocol: unix.IPPROTO_TCP, states: anySocket}
	question.header = unix.NlMsghdr{Len: uint32(unsafe.Sizeof(question)), Type: sockDiagByFamily, Flags: unix.NLM_F_REQUEST}
	question.id.cookie = [2]uint32{anySocket, anySocket}
	binary.BigEndian.PutUint16(question.id.sourcePort[:], at.Port())
	address := at.Addr().As4()
	copy(question.id.source[:], address[:])
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&question)), unsafe.Sizeof(question))
	if err := unix.Sendto(fd, bytes, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return true
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return true
	}
	return isOf(answer[:n], at.Addr())
}

// isOf reads the kernel's answer.
func isOf(answer []byte, want netip.Addr) bool {
	if len(answer) < unix.SizeofNlMsghdr+4 {
		return true
	}
	if binary.NativeEndian.Uint16(answer[4:]) == unix.NLMSG_ERROR {
		errno := -int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:]))
		return syscall.Errno(errno) != unix.ENOENT
	}
	if len(answer) < answerSource+16 {
		return true
	}
	source := answer[answerSource : answerSource+16]
	if answer[answerFamily] == unix.AF_INET6 { // which may listen at an IPv4 address too
		got, _ := netip.AddrFromSlice(source)
		return got.Unmap() == want
	}
	got, _ := netip.AddrFromSlice(source[:4])
	return got == want
}
