package network

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Pod is the network as one pod sees it: a program.Network.
type Pod struct {
	address   *address
	namespace string
}

// In returns the same network for a pod in the given namespace, in which short names such as "web" are resolved first.
func (p *Pod) In(namespace string) *Pod { return &Pod{p.address, namespace} }

// IP returns the pod's address in the cluster.
func (p *Pod) IP() string { return p.address.ip.String() }

// Listen listens on a port of the pod's address. For port 0, the system chooses one. The addresses of the listener and
// of its connections are the cluster's, as far as they are known.
func (p *Pod) Listen(port int) (net.Listener, error) {
	if port < 0 || port > 65535 {
		return nil, fmt.Errorf("there is no port %d", port)
	}
	return p.address.listen(port)
}

// DialContext connects as the pod: to pods, Services, nodes and hosts outside. As in any pod, localhost is the pod
// itself.
func (p *Pod) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	own := p.address
	return own.node.dial(ctx, network, address, own, client{own.ip, p.namespace})
}

// HostAddress returns the address on this machine at which a process must listen to serve a port of the pod: the
// loopback address mapped to the pod, with the same port. If the port is privileged or taken, or there is only
// 127.0.0.1, it is another port. It stays the same for as long as the pod has its address. An unused port is not
// reserved: another process may take it.
func (p *Pod) HostAddress(port int) (host string, hostPort int, err error) {
	if port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("there is no port %d", port)
	}
	at, err := p.address.assign(port)
	if err != nil {
		return "", 0, err
	}
	return at.Addr().String(), int(at.Port()), nil
}

// Proxy returns the URL of the hub's HTTP proxy, through which a process of the pod reaches the cluster's names. Its
// credentials identify the pod. It is empty while there is no hub.
func (p *Pod) Proxy() string {
	text, err := os.ReadFile(p.address.node.plan.proxyFile())
	if err != nil {
		return ""
	}
	proxy, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil || proxy.User == nil {
		return ""
	}
	password, _ := proxy.User.Password()
	proxy.User = url.UserPassword(podUser(p.address.ip, p.namespace), password)
	return proxy.String()
}

// podUser returns the user name of a pod at the proxy.
func podUser(ip netip.Addr, namespace string) string { return namespace + "." + ip.String() }

// parsePodUser reverses podUser. A namespace contains no dot. A pod in its node's network has the node's address.
func parsePodUser(user string) (client, bool) {
	namespace, ip, _ := strings.Cut(user, ".")
	a, err := netip.ParseAddr(ip)
	if err != nil || len(validation.IsDNS1123Label(namespace)) > 0 {
		return client{}, false
	}
	_, _, ok := nodeOf(a)
	return client{a, namespace}, ok
}
