package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var (
	podNet    = netip.MustParsePrefix(PodCIDR)
	fakePods  = netip.MustParsePrefix(FakePodCIDR)
	fakeNodes = netip.MustParsePrefix(FakeNodeCIDR)
	localhost = netip.AddrFrom4([4]byte{127, 0, 0, 1})
)

// kubernetesKey names the API server's own Service.
var kubernetesKey = key{corev1.NamespaceDefault, "kubernetes"}

// maxAliases limits the length of a chain of external names.
const maxAliases = 8

func isTCP(network string) bool { return network == "tcp" || network == "tcp4" }

// isNodePort reports whether a port is in the range of node ports.
func isNodePort(port uint16) bool { return port >= 30000 && port <= 32767 }

// isFake reports whether an address is that of a node that only answers, or of a pod there.
func isFake(a netip.Addr) bool { return fakePods.Contains(a) || fakeNodes.Contains(a) }

// isLoopback reports whether an address is the client's own loopback address.
func isLoopback(a netip.Addr) bool { return a.IsLoopback() || a.IsUnspecified() }

// splitHostPort parses an address. A port may be a well-known name.
func splitHostPort(ctx context.Context, address string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, other(address, nil, err)
	}
	if !isHost(host) {
		return "", 0, unknown(oneLine(address), oneLine(host), "this is no name")
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", text)
	if err != nil {
		return "", 0, other(address, nil, err)
	}
	return host, uint16(number), nil
}

// isHost keeps out what could be taken for something else on its way to the hub. It need not be a name of anything.
func isHost(host string) bool {
	_, err := netip.ParseAddr(host)
	return !strings.ContainsFunc(host, func(r rune) bool {
		isZone := r == '%' && err == nil
		return !isZone && !strings.ContainsRune(hostRunes, r)
	})
}

const hostRunes = "-.:_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// outside connects to addresses outside the cluster.
func outside(ctx context.Context, asked, address string) (duplex, error) {
	var dialer net.Dialer
	made, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, other(asked, nil, err)
	}
	return made.(*net.TCPConn), nil
}

// reachNode asks a node to connect to one of its addresses. A node that is not there behaves like a host without power.
func reachNode(ctx context.Context, p Plan, asked string, to netip.AddrPort, from client) (duplex, error) {
	n, _, _ := nodeOf(to.Addr())
	made, err := tunnel(ctx, p.NodeSocket(n), to.String(), from)
	if errors.Is(err, errAbsent) {
		return nil, failed(asked, to, syscall.EHOSTUNREACH, NodeName(n)+" does not answer")
	}
	if e, is := errors.AsType[*Error](err); is {
		e.Asked = asked
		return nil, e
	}
	return made, err
}

// dial connects a client to whatever an address means to it.
func (h *Hub) dial(ctx context.Context, asked string, from client) (duplex, error) {
	host, port, err := splitHostPort(ctx, asked)
	if err != nil {
		return nil, err
	}
	if from.namespace == "" {
		from.namespace = defaultNamespace
	}
	return (&call{h, asked, port, from}).host(ctx, host, maxAliases)
}

// call is a connection being made.
type call struct {
	hub   *Hub
	asked string
	port  uint16
	from  client
}

// host connects to a name or an address.
func (c *call) host(ctx context.Context, host string, aliases int) (duplex, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return c.address(ctx, c.hub.plan.meant(a))
	}
	if isLocalhost(host) {
		return c.address(ctx, localhost)
	}
	names, isOutside := meanings(host, c.from.namespace)
	for _, name := range names {
		if name.address.IsValid() {
			return c.address(ctx, name.address)
		}
		if found, ok := c.hub.table.Load().find(name, int(c.port)); ok {
			return c.found(ctx, host, found, aliases)
		}
	}
	if n, is := nodeNumber(strings.ToLower(host)); is {
		return c.address(ctx, netip.MustParseAddr(c.hub.plan.NodeIP(n)))
	}
	if !isOutside {
		return nil, unknown(c.asked, host, "there is no such Service")
	}
	return outside(ctx, c.asked, net.JoinHostPort(host, strconv.Itoa(int(c.port))))
}

// address connects to an address.
func (c *call) address(ctx context.Context, a netip.Addr) (duplex, error) {
	if isLoopback(a) && c.from.isPod() {
		a = c.from.address
	}
	to := netip.AddrPortFrom(a, c.port)
	found, isService := c.hub.table.Load().at(to)
	_, _, isNodes := nodeOf(a)
	switch {
	case isService:
		return c.found(ctx, a.String(), found, 0)
	case isNodes:
		return reachNode(ctx, c.hub.plan, c.asked, to, c.from)
	case a.String() == KubernetesIP:
		return c.found(ctx, a.String(), finding{kind: isAPIServer, ip: a}, 0)
	case serviceNet.Contains(a):
		return nil, refused(c.asked, to, "no Service has this address")
	case podNet.Contains(a):
		return nil, refused(c.asked, to, "no pod has this address")
	}
	return c.elsewhere(ctx, to)
}

// elsewhere connects to an address that is no Service's and on no node that runs programs.
func (c *call) elsewhere(ctx context.Context, to netip.AddrPort) (duplex, error) {
	if isFake(to.Addr()) {
		return nil, failed(c.asked, to, syscall.EHOSTUNREACH, "KWOK answers for the node: no program runs there")
	}
	return outside(ctx, c.asked, to.String())
}

// found connects to a Service.
func (c *call) found(ctx context.Context, host string, f finding, aliases int) (duplex, error) {
	shown := netip.AddrPortFrom(f.ip, c.port)
	switch f.kind {
	case isAPIServer:
		if c.port != 443 {
			return nil, refused(c.asked, shown, "the API server's Service has the port 443 only")
		}
		return outside(ctx, c.asked, c.hub.options.APIServer)
	case isAlias:
		if aliases == 0 {
			return nil, unknown(c.asked, host, "external names lead in a circle")
		}
		return c.host(ctx, f.alias, aliases-1)
	case isHosts:
		return c.hosts(ctx, host, f.hosts)
	}
	to, reason := c.hub.table.Load().pick(f, c.from.address, time.Now())
	if reason != "" {
		return nil, refused(c.asked, shown, reason)
	}
	made, err := c.endpoint(ctx, to)
	if err != nil {
		return nil, err
	}
	return &conn{duplex: made, local: made.LocalAddr(), remote: net.TCPAddrFromAddrPort(shown)}, nil
}

// hosts connects to the first of several addresses that answers, as DNS clients do.
func (c *call) hosts(ctx context.Context, host string, addresses []netip.Addr) (duplex, error) {
	if len(addresses) == 0 {
		return nil, unknown(c.asked, host, "the headless Service has no ready endpoints")
	}
	var first error
	for _, a := range addresses {
		made, err := c.endpoint(ctx, netip.AddrPortFrom(a, c.port))
		if err == nil {
			return made, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, first
}

// endpoint connects to an endpoint of a Service: a pod, a node, or an address outside that somebody wrote there.
func (c *call) endpoint(ctx context.Context, to netip.AddrPort) (duplex, error) {
	if _, _, ok := nodeOf(to.Addr()); ok {
		return reachNode(ctx, c.hub.plan, c.asked, to, c.from)
	}
	return c.elsewhere(ctx, to)
}

// finding is the result of resolving a name or an address.
type finding struct {
	kind  kind
	ip    netip.Addr
	key   key
	port  int // the Service's
	alias string
	hosts []netip.Addr
}

type kind int

const (
	isPort      kind = iota // of a Service with a ClusterIP
	isHosts                 // the addresses of endpoints
	isAlias                 // an external name
	isAPIServer             // the API server's own Service
)

// find looks a name up.
func (t *table) find(n name, port int) (finding, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := key{n.namespace, n.service}
	s := t.services[k]
	switch {
	case n.endpoint == "" && k == kubernetesKey:
		return finding{kind: isAPIServer, ip: netip.MustParseAddr(KubernetesIP)}, true
	case s == nil:
		return finding{}, false
	case s.object.Spec.Type == corev1.ServiceTypeExternalName:
		return finding{kind: isAlias, alias: s.object.Spec.ExternalName}, n.endpoint == ""
	case n.endpoint != "" || !s.ip.IsValid():
		hosts := s.inTurn(n.endpoint)
		return finding{kind: isHosts, hosts: hosts}, n.endpoint == "" || len(hosts) > 0
	}
	return finding{kind: isPort, ip: s.ip, key: k, port: port}, true
}

// at looks an address up: a ClusterIP, or a node's with a port that Services have on all nodes.
func (t *table) at(to netip.AddrPort) (finding, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byIP[to.Addr()]; s != nil {
		if s.key == kubernetesKey {
			return finding{kind: isAPIServer, ip: s.ip}, true
		}
		return finding{kind: isPort, ip: s.ip, key: s.key, port: int(to.Port())}, true
	}
	if p := t.nodePorts[int(to.Port())]; p != nil {
		if _, isPod, ok := nodeOf(to.Addr()); ok && !isPod {
			return finding{kind: isPort, ip: to.Addr(), key: p.service.key, port: p.number}, true
		}
	}
	return finding{}, false
}

// pick chooses an endpoint. If there is none, reason says why.
func (t *table) pick(f finding, from netip.Addr, now time.Time) (to netip.AddrPort, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.services[f.key]
	if s == nil {
		return to, "the Service was deleted"
	}
	p := s.port(f.port)
	if p == nil {
		return to, fmt.Sprintf("the Service has no port %d; it has %s", f.port, s.portList())
	}
	to, ok := p.pick(from, now)
	if !ok {
		return to, "the Service has no ready endpoints"
	}
	return to, ""
}

// inTurn lists the addresses of a Service's endpoints, or of the named one, starting with another one each time.
func (s *service) inTurn(endpoint string) []netip.Addr {
	var addresses []netip.Addr
	for _, h := range s.hosts {
		if endpoint == "" || h.name == endpoint {
			addresses = append(addresses, h.address)
		}
	}
	addresses = slices.Compact(addresses) // they are in order
	if len(addresses) > 1 {
		s.turn = (s.turn + 1) % len(addresses)
		addresses = slices.Concat(addresses[s.turn:], addresses[:s.turn])
	}
	return addresses
}
