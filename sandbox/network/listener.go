package network

import (
	"net"
	"net/netip"
)

// listener is a pod's.
type listener struct {
	address *address
	port    int
	tcp     *net.TCPListener
}

// Addr returns the pod's address.
func (l *listener) Addr() net.Addr { return l.address.tcp(l.port) }

// Close ends listening. Connections stay.
func (l *listener) Close() error {
	a := l.address
	a.lot.remove(l)
	a.mu.Lock()
	if a.listeners[l.port] == l {
		delete(a.listeners, l.port)
	}
	a.mu.Unlock()
	return l.tcp.Close()
}

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		tcp, err := l.tcp.AcceptTCP()
		if err != nil {
			return nil, err
		}
		c := &conn{duplex: tcp, local: l.Addr(), remote: l.remote(tcp), lots: []*lot{&l.address.lot}}
		if c.join() {
			return c, nil
		}
	}
}

// remote returns the cluster address of the peer, if it is a pod or node that has an address on this machine.
func (l *listener) remote(tcp *net.TCPConn) net.Addr {
	at := tcp.RemoteAddr().(*net.TCPAddr).AddrPort()
	if of, ok := l.address.node.plan.cluster(at.Addr()); ok {
		return net.TCPAddrFromAddrPort(netip.AddrPortFrom(of, at.Port()))
	}
	return tcp.RemoteAddr()
}
