package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// The last bytes of the addresses of a node's pods; .1 would be the bridge.
const (
	firstPod = 2
	lastPod  = 254
)

// ErrNoAddress is returned when all addresses of a node are in use by pods.
var ErrNoAddress = errors.New("the node has no free pod address")

// Node is one node's part of the pod network. All methods may be called from any goroutine.
type Node struct {
	plan   Plan
	number int
	ip     netip.Addr
	server *http.Server
	lot    lot // the server's

	mu        sync.Mutex
	closed    bool
	last      int                     // the last byte of the address that was given last
	addresses map[netip.Addr]*address // of the pods, and the node's own
	assigned  map[int]bool            // the ports of 127.0.0.1 that were promised to processes
}

// OpenNode makes the part of node n in this process, and serves its socket. Nodes are counted from 1.
func OpenNode(p Plan, n int) (*Node, error) {
	if n < 1 || n > MaxNodes {
		return nil, fmt.Errorf("there is no node %d: nodes are numbered from 1 to %d", n, MaxNodes)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	node := &Node{
		plan: p, number: n, ip: netip.MustParseAddr(p.NodeIP(n)),
		last: firstPod - 1, addresses: map[netip.Addr]*address{}, assigned: map[int]bool{},
	}
	node.addresses[node.ip] = newAddress(node, node.ip)
	if err := node.recall(); err != nil {
		return nil, err
	}
	listener, err := listenUnix(p.NodeSocket(n))
	if err != nil {
		return nil, fmt.Errorf("open the network of %s: %w", NodeName(n), err)
	}
	node.server = serve(listener, &node.lot, node.handle)
	return node, nil
}

// recall reads the address that an earlier process of the node assigned last. The cluster may still send to the
// addresses of its pods, so they must not be reused at once.
func (n *Node) recall() error {
	text, err := os.ReadFile(n.plan.lastFile(n.number))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if last, err := strconv.Atoi(string(text)); err == nil && last >= firstPod && last <= lastPod {
		n.last = last
	}
	return nil
}

// IP returns the node's own address in the cluster.
func (n *Node) IP() string { return n.ip.String() }

// Close removes all addresses, and serves nothing any more.
func (n *Node) Close() error {
	n.mu.Lock()
	n.closed = true
	addresses := n.addresses
	n.addresses = map[netip.Addr]*address{}
	n.mu.Unlock()
	err := n.server.Close()
	for _, a := range addresses {
		a.lot.end()
	}
	n.lot.end()
	n.lot.work.Wait()
	return err
}

// Add assigns the next free pod address. Addresses are used in turn, so that a freed one is reused as late as possible.
func (n *Node) Add() (ip string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return "", net.ErrClosed
	}
	for i := range lastPod - firstPod + 1 {
		x := firstPod + (n.last-firstPod+1+i)%(lastPod-firstPod+1)
		a := podIP(n.number, x)
		if n.addresses[a] != nil {
			continue
		}
		if err := os.WriteFile(n.plan.lastFile(n.number), []byte(strconv.Itoa(x)), 0o600); err != nil {
			return "", err
		}
		n.last = x
		n.addresses[a] = newAddress(n, a)
		return a.String(), nil
	}
	return "", ErrNoAddress
}

// Remove frees a pod's address: it closes its listeners and cuts all connections from and to it. Processes of the pod
// that listen themselves must be ended before.
func (n *Node) Remove(ip string) {
	a, err := netip.ParseAddr(ip)
	if err != nil || a == n.ip {
		return
	}
	n.mu.Lock()
	removed := n.addresses[a]
	delete(n.addresses, a)
	n.mu.Unlock()
	if removed != nil {
		removed.remove()
	}
}

// Pod returns the network as a pod sees it: a program.Network. It is valid for as long as the node holds the address.
// Set the pod's namespace with [Pod.In].
func (n *Node) Pod(ip string) *Pod {
	a, err := netip.ParseAddr(ip)
	if err != nil {
		a = netip.IPv4Unspecified()
	}
	own := n.address(a)
	if own == nil || a == n.ip {
		own = newAddress(n, a)
		own.lot.end() // nobody has this address
	}
	return &Pod{own, defaultNamespace}
}

// Serve maps a port of one of the node's addresses, its own or a pod's, to the address host:port on this machine, until
// takeBack is called. It is used for the kubelet's own API and for the ports of pods with hostNetwork. If the port is
// served already, the error is EADDRINUSE.
func (n *Node) Serve(ip string, port int, served string) (takeBack func(), err error) {
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return nil, err
	}
	own := n.address(a)
	if own == nil {
		return nil, syscall.EADDRNOTAVAIL
	}
	return own.register(port, served)
}

// DialContext connects as the node: to pods, Services, nodes and hosts outside. The network is tcp or tcp4.
func (n *Node) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return n.DialFrom(ctx, defaultNamespace, network, address)
}

// DialFrom connects as the node, and looks for names such as "web" in a namespace first: that of a pod with hostNetwork.
func (n *Node) DialFrom(ctx context.Context, namespace, network, address string) (net.Conn, error) {
	own := n.address(n.ip)
	if own == nil {
		return nil, net.ErrClosed
	}
	return n.dial(ctx, network, address, own, client{n.ip, namespace})
}

func (n *Node) address(a netip.Addr) *address {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addresses[a]
}

// handle serves requests for a connection to one of the node's addresses.
func (n *Node) handle(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "this is the pod network of "+NodeName(n.number)+": it answers CONNECT only",
			http.StatusMethodNotAllowed)
		return
	}
	serveTunnel(w, r, &n.lot, clientOf(r.Header), func(ctx context.Context, asked string, from client) (duplex, error) {
		to, err := netip.ParseAddrPort(asked)
		if err != nil {
			return nil, other(asked, nil, errors.New("not an address and a port"))
		}
		return n.reach(ctx, asked, to, from)
	})
}

// dial makes a connection that belongs to an address of this node, and is cut with it.
func (n *Node) dial(ctx context.Context, network, asked string, own *address, from client) (net.Conn, error) {
	if !isTCP(network) {
		return nil, other(asked, nil, net.UnknownNetworkError(network))
	}
	made, err := n.route(ctx, asked, from)
	if err != nil {
		return nil, err
	}
	c := &conn{duplex: made, local: own.tcp(0), remote: made.RemoteAddr(), lots: []*lot{&own.lot}}
	if local, is := made.LocalAddr().(*net.TCPAddr); is {
		c.local = own.tcp(local.Port)
	}
	if !c.join() {
		return nil, failed(asked, netip.AddrPortFrom(own.ip, 0), syscall.ENETUNREACH, "the pod's address was given back")
	}
	return c, nil
}

// route chooses how to connect: from this node, through another node, through the hub, which knows the names, or
// directly.
func (n *Node) route(ctx context.Context, asked string, from client) (duplex, error) {
	host, port, err := splitHostPort(ctx, asked)
	if err != nil {
		return nil, err
	}
	to, err := netip.ParseAddr(host)
	to = n.plan.meant(to)
	isAddress := err == nil
	isOwn := isLocalhost(host) || isAddress && isLoopback(to)
	if isOwn && from.isPod() {
		return n.reach(ctx, asked, netip.AddrPortFrom(from.address, port), from)
	}
	if of, isPod, ok := nodeOf(to); ok && (isPod || !isNodePort(port)) {
		if of == n.number {
			return n.reach(ctx, asked, netip.AddrPortFrom(to, port), from)
		}
		return reachNode(ctx, n.plan, asked, netip.AddrPortFrom(to, port), from)
	}
	_, _, isNodes := nodeOf(to)
	if isOwn || isAddress && !isNodes && !serviceNet.Contains(to) && !podNet.Contains(to) && !isFake(to) {
		return outside(ctx, asked, net.JoinHostPort(host, strconv.Itoa(int(port))))
	}
	if isAddress {
		host = to.String()
	}
	made, err := tunnel(ctx, n.plan.HubSocket(), net.JoinHostPort(host, strconv.Itoa(int(port))), from)
	if errors.Is(err, errAbsent) {
		return nil, failed(asked, netip.AddrPortFrom(to, port), syscall.ENETUNREACH, "the cluster's network does not answer")
	}
	if e, is := errors.AsType[*Error](err); is {
		e.Asked = asked
	}
	return made, err
}
