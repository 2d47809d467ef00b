package names

import (
	"net"
	"testing"
)

// TestNamesHaveAddressesOfTheirOwn: by these two, of one cluster, a member took the other one's ID and never came up. They had
// the same address among the few of 198.18.0.0/15.
func TestNamesHaveAddressesOfTheirOwn(t *testing.T) {
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	Answer()
	seen := map[string]string{}
	for _, name := range []string{
		"example-etcd-cluster-m2gkmxxhk8.example-etcd-cluster.stage-6m4hc.svc",
		"example-etcd-cluster-klbcbq9lv8.example-etcd-cluster.stage-6m4hc.svc",
	} {
		found, err := net.DefaultResolver.LookupIPAddr(t.Context(), name)
		if err != nil || len(found) != 1 {
			t.Fatalf("%s has the addresses %v, %v", name, found, err)
		}
		address := found[0].String()
		if other := seen[address]; other != "" {
			t.Errorf("%s and %s have the same address %s", name, other, address)
		}
		seen[address] = name
		again, err := net.DefaultResolver.LookupIPAddr(t.Context(), name)
		if err != nil || again[0].String() != address {
			t.Errorf("%s has another address the next time: %v, %v", name, again, err)
		}
	}
}
