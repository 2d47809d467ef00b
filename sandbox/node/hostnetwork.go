package node

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/operator-lab/operator-lab/sandbox/network"
)

// hostNetwork is the network of a pod that uses the node's address (hostNetwork: true): a program.Network. It shares
// the node's ports, so two pods cannot have the same one.
type hostNetwork struct {
	*network.Pod // for names and the proxy; it has no address of its own

	node      *network.Node
	namespace string

	mu    sync.Mutex
	ports map[int]*hostPort
}

// hostPort is a port of the node that a pod uses.
type hostPort struct {
	at       string // where it really is
	takeBack func()
	listener net.Listener // nil: a process listens
}

func newHostNetwork(node *network.Node, namespace string) *hostNetwork {
	return &hostNetwork{node: node, namespace: namespace, Pod: node.Pod(node.IP()).In(namespace), ports: map[int]*hostPort{}}
}

// Listen listens on a port of the node.
func (h *hostNetwork) Listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	takeBack, err := h.node.Serve(h.node.IP(), port, l.Addr().String())
	if err != nil {
		_ = l.Close() // nobody knows it yet
		return nil, err
	}
	h.ports[port] = &hostPort{l.Addr().String(), takeBack, l}
	return &hostListener{l, func() { h.giveBack(port, l) }}, nil
}

// hostListener gives its port back when it is closed.
type hostListener struct {
	net.Listener
	giveBack func()
}

// Close implements net.Listener.
func (l *hostListener) Close() error {
	l.giveBack()
	return l.Listener.Close()
}

func (h *hostNetwork) giveBack(port int, l net.Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.ports[port]; p != nil && p.listener == l {
		p.takeBack()
		delete(h.ports, port)
	}
}

// HostAddress is a port of 127.0.0.1 that is free now.
func (h *hostNetwork) HostAddress(port int) (host string, number int, err error) {
	if port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("there is no port %d", port)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ports[port] == nil {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return "", 0, err
		}
		_ = l.Close() // the process is to listen there
		takeBack, err := h.node.Serve(h.node.IP(), port, l.Addr().String())
		if err != nil {
			return "", 0, err
		}
		h.ports[port] = &hostPort{at: l.Addr().String(), takeBack: takeBack}
	}
	host, text, err := net.SplitHostPort(h.ports[port].at)
	if err != nil {
		return "", 0, err
	}
	number, err = strconv.Atoi(text)
	return host, number, err
}

// DialContext connects as the node, whose localhost is the node itself.
func (h *hostNetwork) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if host, port, err := net.SplitHostPort(address); err == nil && (host == "localhost" || host == "127.0.0.1") {
		address = net.JoinHostPort(h.node.IP(), port)
	}
	return h.node.DialFrom(ctx, h.namespace, network, address)
}

// close gives all ports back.
func (h *hostNetwork) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for port, p := range h.ports {
		p.takeBack()
		if p.listener != nil {
			_ = p.listener.Close()
		}
		delete(h.ports, port)
	}
}
