package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The address ranges of a simulated cluster. They are the defaults of kubeadm and Docker.
const (
	// PodCIDR holds the addresses of all pods; node n has 10.244.n.0/24 of it.
	PodCIDR = "10.244.0.0/16"
	// FakePodCIDR holds the addresses of pods on nodes that only answer. Nothing is behind them.
	FakePodCIDR = "10.245.0.0/16"
	// FakeNodeCIDR holds the addresses of those nodes.
	FakeNodeCIDR = "10.246.0.0/16"
	// ServiceCIDR holds the ClusterIPs.
	ServiceCIDR = "10.96.0.0/16"
	// KubernetesIP is the ClusterIP of the API server's own Service.
	KubernetesIP = "10.96.0.1"
	// DNSServerIP is the address of the cluster's DNS server. Nothing answers there, but errors name it, as in a real
	// cluster.
	DNSServerIP = "10.96.0.10"
	// ClusterDomain ends the name of everything in the cluster.
	ClusterDomain = "cluster.local"
	// MaxNodes is the maximum number of nodes.
	MaxNodes = 250
)

var serviceNet = netip.MustParsePrefix(ServiceCIDR)

// ErrDirTooLong is returned if the path of a unix socket in the directory is longer than the system allows.
var ErrDirTooLong = errors.New("the path of the directory is too long for unix sockets")

// Plan is a sandbox's address plan. All processes of a sandbox have the same.
type Plan struct {
	// Dir is the directory of the unix sockets. Everybody who can enter it can use the network, so its mode should be
	// 0700.
	Dir string
	// Loopback is the K of 127.K.0.0/16, the addresses of this machine that the cluster's are mapped to; see
	// [ClaimLoopback]. With 0, everything is at 127.0.0.1, and only the ports differ.
	Loopback int
}

// HubSocket returns the path of the hub's socket. The API server's egress selector can use it (HTTPConnect over a unix
// socket).
func (p Plan) HubSocket() string { return filepath.Join(p.Dir, "hub.sock") }

// NodeSocket returns the path of node n's socket.
func (p Plan) NodeSocket(n int) string { return filepath.Join(p.Dir, fmt.Sprintf("node-%d.sock", n)) }

// proxyFile is the file to which the hub writes the URL of its proxy.
func (p Plan) proxyFile() string { return filepath.Join(p.Dir, "proxy") }

// lastFile is the file in which node n keeps the last address that it assigned.
func (p Plan) lastFile(n int) string { return filepath.Join(p.Dir, fmt.Sprintf("node-%d.last", n)) }

// NodeName returns the name of node n.
func NodeName(n int) string { return "node-" + strconv.Itoa(n) }

// PodCIDR returns the address range of node n's pods.
func (p Plan) PodCIDR(n int) string { return netip.PrefixFrom(podIP(n, 0), 24).String() }

// FakeNodeIP returns the address of a node that only answers, by its number.
func FakeNodeIP(n int) string {
	return netip.AddrFrom4([4]byte{10, 246, byte(n >> 8), byte(n)}).String()
}

// NodeIP returns the address of node n in the cluster.
func (p Plan) NodeIP(n int) string { return netip.AddrFrom4([4]byte{172, 18, 0, byte(n + 1)}).String() }

// podIP is an address of a pod of node n.
func podIP(n, x int) netip.Addr { return netip.AddrFrom4([4]byte{10, 244, byte(n), byte(x)}) }

// nodeOf returns the node of an address, which is the node's own or a pod's.
func nodeOf(a netip.Addr) (n int, isPod, ok bool) {
	if !a.Is4() {
		return 0, false, false
	}
	b := a.As4()
	switch {
	case b[0] == 10 && b[1] == 244 && b[2] >= 1 && b[2] <= MaxNodes && b[3] >= firstPod && b[3] <= lastPod:
		return int(b[2]), true, true
	case b[0] == 172 && b[1] == 18 && b[2] == 0 && b[3] >= 2 && b[3] <= MaxNodes+1:
		return int(b[3]) - 1, false, true
	}
	return 0, false, false
}

// Host returns the address of this machine that a pod's or a node's address is mapped to. It returns false if the
// address is neither, or if there is only 127.0.0.1.
func (p Plan) Host(ip string) (string, bool) {
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return "", false
	}
	host, ok := p.host(a)
	return host.String(), ok
}

func (p Plan) host(a netip.Addr) (netip.Addr, bool) {
	n, isPod, ok := nodeOf(a)
	if !ok || p.Loopback == 0 {
		return netip.Addr{}, false
	}
	b := a.As4()
	if isPod {
		return netip.AddrFrom4([4]byte{127, byte(p.Loopback), byte(n), b[3]}), true
	}
	return netip.AddrFrom4([4]byte{127, byte(p.Loopback), 0, b[3]}), true
}

// cluster returns the cluster address that is mapped to an address of this machine. It reverses host.
func (p Plan) cluster(a netip.Addr) (netip.Addr, bool) {
	a = a.Unmap()
	if p.Loopback == 0 || !a.Is4() {
		return netip.Addr{}, false
	}
	b := a.As4()
	if b[0] != 127 || int(b[1]) != p.Loopback {
		return netip.Addr{}, false
	}
	of := netip.AddrFrom4([4]byte{10, 244, b[2], b[3]})
	if b[2] == 0 {
		of = netip.AddrFrom4([4]byte{172, 18, 0, b[3]})
	}
	_, _, ok := nodeOf(of)
	return of, ok
}

// meant returns the cluster address for a mapped address of this machine, and any other address unchanged.
func (p Plan) meant(a netip.Addr) netip.Addr {
	if of, ok := p.cluster(a); ok {
		return of
	}
	return a.Unmap()
}

// check finds out what could not work before half of it exists.
func (p Plan) check() error {
	if p.Loopback < 0 || p.Loopback > 255 {
		return fmt.Errorf("the loopback prefix 127.%d does not exist", p.Loopback)
	}
	longest := max(len(p.HubSocket()), len(p.NodeSocket(MaxNodes)))
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; longest > most {
		return fmt.Errorf("%w: %s, which has %d characters too many", ErrDirTooLong, p.Dir, longest-most)
	}
	return os.MkdirAll(p.Dir, 0o700)
}

// nodeNumber reads the name of a node.
func nodeNumber(name string) (int, bool) {
	digits, is := strings.CutPrefix(name, "node-")
	n, err := strconv.Atoi(digits)
	return n, is && err == nil && n >= 1 && n <= MaxNodes && strconv.Itoa(n) == digits
}
