package sandbox

import (
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ports are the loopback TCP ports of one sandbox.
type ports struct {
	API  int `json:"api"`
	Etcd int `json:"etcd"`
	Peer int `json:"etcdPeer"`
	// What OLM would use.
	Packages int `json:"olmPackages"`
	Bundled  int `json:"olmBundled"`
	Catalog  int `json:"olmCatalog"`
}

// all returns where the ports are.
func (p *ports) all() []*int {
	return []*int{&p.API, &p.Etcd, &p.Peer, &p.Packages, &p.Bundled, &p.Catalog}
}

// reservation holds a port without listening on it: the socket is bound with SO_REUSEPORT, which etcd
// (--socket-reuse-port) and kube-apiserver (--permit-port-sharing) set too. Nobody else can be given the port
// between choosing and using it, nor while a program that uses it is restarted; and since the reservation does not
// listen, connections to a dead program are refused, as they should be.
type reservation struct {
	port int
	fd   int
}

// reserve binds a port of 127.0.0.1; 0 lets the kernel choose.
func reserve(port int) (reservation, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return reservation{}, fmt.Errorf("open a socket: %w", err)
	}
	r := reservation{fd: fd}
	if err := r.bind(port); err != nil {
		r.release()
		return reservation{}, fmt.Errorf("bind 127.0.0.1:%d: %w", port, err)
	}
	return r, nil
}

func (r *reservation) bind(port int) error {
	if err := unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	// Go's listeners set SO_REUSEADDR too; on BSDs both sides must agree.
	if err := unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	if err := unix.Bind(r.fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	bound, err := unix.Getsockname(r.fd)
	if err != nil {
		return err
	}
	r.port = bound.(*unix.SockaddrInet4).Port
	return nil
}

func (r *reservation) release() { _ = unix.Close(r.fd) }

// reservations are the reserved ports of one sandbox.
type reservations struct {
	ports
	held []reservation
}

// reservePorts reserves the wanted ports. Where one is zero, taken, or in avoid, the kernel chooses another.
func reservePorts(want ports, avoid map[int]bool) (*reservations, error) {
	r := &reservations{}
	for i, got := range r.all() {
		held, err := reserveUnlessTaken(*want.all()[i], avoid)
		if err != nil {
			r.release()
			return nil, err
		}
		r.held = append(r.held, held)
		*got = held.port
	}
	return r, nil
}

// reserveUnlessTaken falls back to a port of the kernel's choice. SO_REUSEPORT lets programs of one user share a
// port, so one that somebody listens on counts as taken although it could be bound.
func reserveUnlessTaken(port int, avoid map[int]bool) (reservation, error) {
	if port != 0 && !avoid[port] && !staysListening(port) {
		if held, err := reserve(port); err == nil {
			return held, nil
		}
	}
	for {
		held, err := reserve(0)
		if err != nil || !avoid[held.port] {
			return held, err
		}
		defer held.release() // only now, so that the kernel does not choose it again
	}
}

// staysListening reports whether a port is still listened on after a moment: the kernel may be about to end a program that
// was just killed.
func staysListening(port int) bool {
	for range 50 {
		if !listening(port) {
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
	return true
}

func listening(port int) bool {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func (r *reservations) release() {
	for _, held := range r.held {
		held.release()
	}
	r.held = nil
}
