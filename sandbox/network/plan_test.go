package network

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestPlanMapsAddresses(t *testing.T) {
	p := Plan{Dir: "/run/lab", Loopback: 7}
	for ip, want := range map[string]string{
		"10.244.1.5":     "127.7.1.5",
		"10.244.250.254": "127.7.250.254",
		"172.18.0.2":     "127.7.0.2",
		"172.18.0.251":   "127.7.0.251",
		"10.244.1.1":     "", // the bridge
		"10.244.0.5":     "", // of no node
		"172.18.0.1":     "", // the machine
		"10.96.0.1":      "", // a Service
		"192.0.2.1":      "",
		"::1":            "",
		"web":            "",
	} {
		host, ok := p.Host(ip)
		if ok != (want != "") || ok && host != want {
			t.Errorf("%s: %q, %v, want %q", ip, host, ok, want)
		}
		if !ok {
			continue
		}
		if back, ok := p.cluster(netip.MustParseAddr(host)); !ok || back.String() != ip {
			t.Errorf("%s stands for %s, want %s", host, back, ip)
		}
	}
	if host, ok := (Plan{}).Host("10.244.1.5"); ok {
		t.Errorf("without addresses of its own, a pod has the address %s", host)
	}
	if ip := p.NodeIP(1); ip != "172.18.0.2" {
		t.Errorf("node 1 has the address %s", ip)
	}
	if n, ok := nodeNumber(NodeName(12)); n != 12 || !ok {
		t.Errorf("%s is read as %d, %v", NodeName(12), n, ok)
	}
}

func TestDirectoryTooLongForSockets(t *testing.T) {
	p := Plan{Dir: t.TempDir() + "/" + strings.Repeat("x", 100)}
	if _, err := OpenNode(p, 1); !errors.Is(err, ErrDirTooLong) || !strings.Contains(err.Error(), p.Dir) {
		t.Errorf("node: %v", err)
	}
	if _, err := OpenHub(p, HubOptions{}); !errors.Is(err, ErrDirTooLong) {
		t.Errorf("hub: %v", err)
	}
}

func TestNodeNumbers(t *testing.T) {
	for _, n := range []int{-1, 0, MaxNodes + 1} {
		if _, err := OpenNode(newPlan(t), n); err == nil {
			t.Errorf("there is a node %d", n)
		}
	}
}
