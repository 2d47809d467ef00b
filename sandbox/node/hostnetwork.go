package node

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/operator-lab/operator-lab/sandbox/network"
)

// hostNetwork is the network of a pod that has the node's own address (hostNetwork: true): a program.Network. Its ports
// are the node's, so two pods cannot have the same one.
type hostNetwork struct {
	node      *network.Node
	namespace string

	mu    sync.Mutex
	ports map[int]string // where they really are
	open  []net.Listener
}

// Listen listens on a port of the node.
func (h *hostNetwork) Listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = append(h.open, l)
	h.serve(port, l.Addr().String())
	return l, nil
}

func (h *hostNetwork) serve(port int, at string) {
	if h.ports == nil {
		h.ports = map[int]string{}
	}
	h.ports[port] = at
	h.node.Serve(h.node.IP(), port, at)
}

// DialContext connects as the node.
func (h *hostNetwork) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if host, port, err := net.SplitHostPort(address); err == nil && (host == "localhost" || host == "127.0.0.1") {
		address = net.JoinHostPort(h.node.IP(), port)
	}
	return h.node.DialContext(ctx, network, address)
}

// HostAddress is a port of 127.0.0.1 that is free now.
func (h *hostNetwork) HostAddress(port int) (host string, hostPort int, err error) {
	if port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("there is no port %d", port)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ports[port] == "" {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return "", 0, err
		}
		h.serve(port, l.Addr().String())
		_ = l.Close()
	}
	host, number, err := net.SplitHostPort(h.ports[port])
	if err != nil {
		return "", 0, err
	}
	hostPort, err = strconv.Atoi(number)
	return host, hostPort, err
}

// Proxy is the hub's.
func (h *hostNetwork) Proxy() string { return h.node.Pod(h.node.IP()).In(h.namespace).Proxy() }

// close gives all ports back.
func (h *hostNetwork) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.open {
		_ = l.Close()
	}
	for port := range h.ports {
		h.node.Serve(h.node.IP(), port, "")
	}
	h.open, h.ports = nil, nil
}
