package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// address is one address of a node: its own or a pod's.
type address struct {
	node *Node
	ip   netip.Addr
	lot  lot // its listeners, and its connections in both directions

	mu        sync.Mutex
	listeners map[int]*listener // of programs in this process
	real      map[int]string    // where other processes listen
}

func newAddress(n *Node, ip netip.Addr) *address {
	return &address{node: n, ip: ip, listeners: map[int]*listener{}, real: map[int]string{}}
}

// remove ends the use of the address.
func (a *address) remove() {
	if !a.lot.end() {
		return
	}
	a.mu.Lock()
	were := a.real
	a.real = map[int]string{}
	a.mu.Unlock()
	a.node.forget(were)
}

// tcp is an end of a connection.
func (a *address) tcp(port int) net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(a.ip, uint16(port)))
}

func (a *address) register(port int, at string) (takeBack func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.real[port] != "" || a.listeners[port] != nil {
		return nil, fmt.Errorf("port %d: %w", port, syscall.EADDRINUSE)
	}
	a.real[port] = at
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.real, port)
	}), nil
}

// served returns the address on this machine that serves a port; false if the port is not served.
func (a *address) served(port int) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.listeners[port]; l != nil {
		return l.tcp.Addr().String(), true
	}
	if at, ok := a.real[port]; ok {
		return at, true
	}
	// A process may listen at the pod's address without the node knowing. A listener at all addresses of this machine
	// does not belong to the pod.
	host, ok := a.node.plan.host(a.ip)
	if !ok {
		return "", false
	}
	at := netip.AddrPortFrom(host, uint16(port))
	return at.String(), listensExactly(at)
}

// reach connects to one of the node's own addresses.
func (n *Node) reach(ctx context.Context, asked string, to netip.AddrPort, from client) (duplex, error) {
	a := n.address(to.Addr())
	if a == nil {
		return nil, refused(asked, to, "no pod has this address")
	}
	at, ok := a.served(int(to.Port()))
	if !ok {
		return nil, refused(asked, to, "nothing listens there")
	}
	dialer := net.Dialer{}
	if source, ok := n.plan.host(from.address); ok && isLoopbackPort(at) {
		dialer.LocalAddr = &net.TCPAddr{IP: source.AsSlice()}
		dialer.Control = bindLate
	}
	made, err := dialer.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, moved(ctx, asked, to, err)
	}
	c := &conn{duplex: made.(*net.TCPConn), local: made.LocalAddr(), remote: net.TCPAddrFromAddrPort(to), lots: []*lot{&a.lot}}
	if !c.join() {
		return nil, refused(asked, to, "the pod's address was given back")
	}
	return c, nil
}

// isLoopbackPort reports whether host:port is an address that can be reached from any of the loopback device.
func isLoopbackPort(hostPort string) bool {
	a, err := netip.ParseAddrPort(hostPort)
	return err == nil && a.Addr().IsLoopback() && a.Addr().Is4()
}

// assign finds a port for a process that is going to listen, at the address that stands for the pod's: the same port,
// if it can be had. It is registered and remembered.
func (a *address) assign(port int) (netip.AddrPort, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lot.isOver() {
		return netip.AddrPort{}, fmt.Errorf("%s: %w", a.ip, syscall.EADDRNOTAVAIL)
	}
	if at, ok := a.real[port]; ok {
		return netip.ParseAddrPort(at)
	}
	host, mapped := a.node.plan.host(a.ip)
	if mapped {
		want := netip.AddrPortFrom(host, uint16(port))
		if _, release, err := hold(want, true); err == nil {
			release()
			a.real[port] = want.String()
			return want, nil
		}
	} else {
		host = localhost
	}
	got, err := a.node.assignPort(host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("find a port for %s: %w", net.JoinHostPort(a.ip.String(), strconv.Itoa(port)), err)
	}
	a.real[port] = got.String()
	return got, nil
}

// assignPort lets the system choose a port that no other pod of the node was promised.
func (n *Node) assignPort(host netip.Addr) (netip.AddrPort, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		got, release, err := hold(netip.AddrPortFrom(host, 0), false)
		if err != nil {
			return netip.AddrPort{}, err
		}
		if n.assigned[int(got.Port())] {
			defer release() // only now, so that the system does not choose it again
			continue
		}
		release()
		n.assigned[int(got.Port())] = true
		return got, nil
	}
}

// forget lets ports be promised to others again.
func (n *Node) forget(were map[int]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, hostPort := range were {
		if at, err := netip.ParseAddrPort(hostPort); err == nil {
			delete(n.assigned, int(at.Port()))
		}
	}
}

// listen returns a listener for a program in this process. For port 0, the system chooses one.
func (a *address) listen(port int) (*listener, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if port != 0 && a.listeners[port] != nil {
		return nil, a.cannotListen(port, syscall.EADDRINUSE)
	}
	tcp, err := a.listenTCP(port)
	if err != nil {
		return nil, a.cannotListen(port, err)
	}
	if port == 0 {
		port = tcp.Addr().(*net.TCPAddr).Port
	}
	l := &listener{address: a, port: port, tcp: tcp}
	if !a.lot.add(l) {
		_ = tcp.Close() // nobody knows it yet
		return nil, a.cannotListen(port, syscall.EADDRNOTAVAIL)
	}
	a.listeners[port] = l
	return l, nil
}

// cannotListen is an error of the pod's address, whatever address of this machine it is of.
func (a *address) cannotListen(port int, err error) error {
	if errno, is := errors.AsType[syscall.Errno](err); is {
		err = os.NewSyscallError("bind", errno)
	}
	return &net.OpError{Op: "listen", Net: "tcp", Addr: a.tcp(port), Err: err}
}

// listenTCP listens on the mapped address of the pod. If the port is privileged, or taken by a listener at all
// addresses, it uses another port there; without mapped addresses it listens on 127.0.0.1.
func (a *address) listenTCP(port int) (*net.TCPListener, error) {
	host, mapped := a.node.plan.host(a.ip)
	if !mapped {
		return listenAt(localhost, 0)
	}
	l, err := listenAt(host, port)
	if err == nil || port == 0 {
		return l, err
	}
	if listensExactly(netip.AddrPortFrom(host, uint16(port))) {
		return nil, syscall.EADDRINUSE // by another container of the pod
	}
	return listenAt(host, 0)
}

func listenAt(host netip.Addr, port int) (*net.TCPListener, error) {
	return net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(host, uint16(port))))
}
