package network

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// filled is a table that has seen a Service and its slices.
func filled(s *corev1.Service, of ...*discoveryv1.EndpointSlice) *table {
	t := newTable()
	t.setService(s)
	for _, slice := range of {
		t.setSlice(slice)
	}
	return t
}

// next is where the next connection to a port of the Service goes; a sentence if nowhere.
func (t *table) next(port int, from string) string {
	client, _ := netip.ParseAddr(from)
	to, reason := t.pick(finding{key: key{"shop", "web"}, port: port}, client, time.Now())
	if reason != "" {
		return reason
	}
	return to.String()
}

const noEndpoints = "the Service has no ready endpoints"

func TestEndpointsOfPort(t *testing.T) {
	udp := webSlice("udp", 53, ready("10.244.1.9"))
	udp.Ports[0].Protocol = new(corev1.ProtocolUDP)
	ipv6 := webSlice("v6", 8080, ready("fd00::1"))
	ipv6.AddressType = discoveryv1.AddressTypeIPv6
	fqdn := webSlice("fqdn", 8080, ready("example.com"))
	fqdn.AddressType = discoveryv1.AddressTypeFQDN
	named := webSlice("named", 8080, ready("10.244.1.9"))
	named.Ports[0].Name = new("admin")
	unnamed := webSlice("unnamed", 8080, ready("10.244.1.3"))
	unnamed.Ports[0].Name = nil
	everyPort := webSlice("every", 0, ready("10.244.1.9"))
	everyPort.Ports[0].Port = nil
	for name, test := range map[string]struct {
		slices []*discoveryv1.EndpointSlice
		want   string // in turn
	}{
		"none":             {nil, ""},
		"one":              {[]*discoveryv1.EndpointSlice{webSlice("a", 8080, ready("10.244.1.2"))}, "10.244.1.2:8080"},
		"unknown is ready": {[]*discoveryv1.EndpointSlice{webSlice("a", 8080, discoveryv1.Endpoint{Addresses: []string{"10.244.1.2"}})}, "10.244.1.2:8080"},
		"ready ones only": {[]*discoveryv1.EndpointSlice{
			webSlice("a", 8080, ready("10.244.1.2"), notReady("10.244.1.3"), ending("10.244.1.4", true)),
		}, "10.244.1.2:8080"},
		"ending ones serve when there are no others": {[]*discoveryv1.EndpointSlice{
			webSlice("a", 8080, notReady("10.244.1.3"), ending("10.244.1.4", true), ending("10.244.1.5", false)),
		}, "10.244.1.4:8080"},
		"nobody serves": {[]*discoveryv1.EndpointSlice{
			webSlice("a", 8080, notReady("10.244.1.3"), ending("10.244.1.5", false)),
		}, ""},
		"several slices, and ports": {[]*discoveryv1.EndpointSlice{
			webSlice("a", 8080, ready("10.244.1.2")), webSlice("b", 9090, ready("10.244.2.2")),
		}, "10.244.1.2:8080 10.244.2.2:9090"},
		"twice the same": {[]*discoveryv1.EndpointSlice{
			webSlice("a", 8080, ready("10.244.1.2")), webSlice("b", 8080, ready("10.244.1.2")),
		}, "10.244.1.2:8080"},
		"what is not meant":   {[]*discoveryv1.EndpointSlice{udp, ipv6, fqdn, named, everyPort, unnamed}, "10.244.1.3:8080"},
		"not an address":      {[]*discoveryv1.EndpointSlice{webSlice("a", 8080, ready("x"), discoveryv1.Endpoint{})}, ""},
		"outside the cluster": {[]*discoveryv1.EndpointSlice{webSlice("a", 8080, ready("192.0.2.7"))}, "192.0.2.7:8080"},
	} {
		t.Run(name, func(t *testing.T) {
			table := filled(web("10.96.1.1"), test.slices...)
			want := strings.Fields(test.want)
			if len(want) == 0 {
				want = []string{noEndpoints}
			}
			for round := range 2 {
				for _, to := range want {
					if got := table.next(80, ""); got != to {
						t.Errorf("round %d: %s, want %s", round, got, to)
					}
				}
			}
		})
	}
}

func TestPortsByName(t *testing.T) {
	s := web("10.96.1.1")
	s.Spec.Ports = []corev1.ServicePort{
		{Name: "http", Port: 80},
		{Name: "admin", Port: 81, Protocol: corev1.ProtocolTCP},
		{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP},
	}
	slice := webSlice("a", 8080, ready("10.244.1.2"))
	slice.Ports = []discoveryv1.EndpointPort{
		{Name: new("admin"), Port: new(int32(9090))},
		{Name: new("http"), Port: new(int32(8080))},
		{Name: new("dns"), Port: new(int32(53))},
	}
	table := filled(s, slice)
	for port, want := range map[int]string{
		80: "10.244.1.2:8080", 81: "10.244.1.2:9090",
		53:   "the Service has no port 53; it has 80, 81",
		8080: "the Service has no port 8080; it has 80, 81",
	} {
		if got := table.next(port, ""); got != want {
			t.Errorf("%d: %s, want %s", port, got, want)
		}
	}
}

func TestTableFollows(t *testing.T) {
	one, two := webSlice("a", 8080, ready("10.244.1.2")), webSlice("b", 8080, ready("10.244.2.2"))
	table := newTable()
	expect := func(what string, want ...string) {
		t.Helper()
		var got []string
		for range want {
			got = append(got, table.next(80, ""))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	table.setSlice(one)
	expect("a slice without a Service", "the Service was deleted")
	table.setService(web("10.96.1.1"))
	expect("its Service", "10.244.1.2:8080")
	table.setSlice(two)
	expect("another slice", "10.244.1.2:8080", "10.244.2.2:8080")
	changed := web("10.96.1.1")
	changed.Spec.Selector = map[string]string{"a": "b"}
	table.setService(changed)
	expect("a change of the Service", "10.244.1.2:8080", "10.244.2.2:8080")
	table.deleteSlice(one)
	expect("a deleted slice", "10.244.2.2:8080")
	table.setSlice(webSlice("b", 8080, notReady("10.244.2.2")))
	expect("one that is not ready", noEndpoints)
	table.setSlice(webSlice("b", 8080, ready("10.244.2.3")))
	expect("one that is", "10.244.2.3:8080")
	table.deleteService(key{"shop", "web"})
	expect("a deleted Service", "the Service was deleted")
	table.deleteService(key{"shop", "web"})
	table.setService(web("10.96.1.2"))
	expect("the Service again", "10.244.2.3:8080")
	table.deleteSlice(two)
	table.deleteSlice(two)
	expect("no slices", noEndpoints)
	if len(table.slices) != 0 {
		t.Errorf("left: %v", table.slices)
	}
}

func TestAddressesOfServices(t *testing.T) {
	table := filled(web("10.96.1.1"))
	at := func(address string) string {
		found, ok := table.at(netip.MustParseAddrPort(address))
		if !ok {
			return ""
		}
		return found.key.name
	}
	if got := at("10.96.1.1:80"); got != "web" {
		t.Errorf("got %q", got)
	}
	table.setService(web("10.96.1.2"))
	if got := at("10.96.1.1:80"); got != "" {
		t.Errorf("the old address is of %q", got)
	}
	// The address goes to another Service before the end of the first is known.
	other := web("10.96.1.2")
	other.Name = "other"
	table.setService(other)
	table.deleteService(key{"shop", "web"})
	if got := at("10.96.1.2:80"); got != "other" {
		t.Errorf("got %q", got)
	}
	other = other.DeepCopy()
	other.Spec.Ports[0].NodePort = 30080
	table.setService(other)
	for address, want := range map[string]string{
		"172.18.0.2:30080": "other", "172.18.0.9:30080": "other", "172.18.0.2:30081": "", "10.244.1.2:30080": "",
	} {
		if got := at(address); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	other = other.DeepCopy()
	other.Spec.Ports[0].NodePort = 30081
	table.setService(other)
	if got := at("172.18.0.2:30080"); got != "" {
		t.Errorf("the old port is of %q", got)
	}
}

func TestSessionAffinity(t *testing.T) {
	s := web("10.96.1.1")
	s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	table := filled(s, webSlice("a", 8080, ready("10.244.1.2"), ready("10.244.1.3"), ready("10.244.1.4")))
	first := table.next(80, "10.244.1.50")
	for range 5 {
		if got := table.next(80, "10.244.1.50"); got != first {
			t.Errorf("got %s, was %s", got, first)
		}
	}
	if got := table.next(80, "10.244.1.51"); got == first {
		t.Errorf("another client is sent to %s too", got)
	}
	if a, b := table.next(80, ""), table.next(80, ""); a == b {
		t.Errorf("clients that are not known are all sent to %s", a)
	}
	// It outlives a change of the Service, but not its endpoint.
	table.setService(s.DeepCopy())
	if got := table.next(80, "10.244.1.50"); got != first {
		t.Errorf("got %s, was %s", got, first)
	}
	table.setSlice(webSlice("a", 8080, ready("10.244.1.9")))
	if got := table.next(80, "10.244.1.50"); got != "10.244.1.9:8080" {
		t.Errorf("got %s", got)
	}
	// It ends after its time.
	if got := table.services[key{"shop", "web"}].affinity(); got != 3*time.Hour {
		t.Errorf("by default it lasts %v", got)
	}
	s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(10))}}
	table = filled(s, webSlice("a", 8080, ready("10.244.1.2"), ready("10.244.1.3")))
	p := table.services[key{"shop", "web"}].ports[0]
	client, now := netip.MustParseAddr("10.244.1.50"), time.Now()
	one, _ := p.pick(client, now)
	two, _ := p.pick(client, now.Add(9*time.Second))
	three, _ := p.pick(client, now.Add(20*time.Second))
	if one != two || two == three {
		t.Errorf("got %s, %s, %s", one, two, three)
	}
}

func TestHeadless(t *testing.T) {
	s := web(corev1.ClusterIPNone)
	first := ready("10.244.1.2")
	first.Hostname = new("web-0")
	second := notReady("10.244.1.3")
	second.Hostname = new("web-1")
	slices := []*discoveryv1.EndpointSlice{webSlice("a", 8080, first, second), webSlice("b", 9090, ready("10.244.1.4"))}
	look := func(table *table, n name) string {
		n.service, n.namespace = "web", "shop"
		found, ok := table.find(n, 80)
		if !ok {
			return "-"
		}
		var out []string
		for _, a := range found.hosts {
			out = append(out, a.String())
		}
		return strings.Join(out, " ")
	}
	table := filled(s, slices...)
	for _, test := range []struct{ endpoint, want string }{
		{"", "10.244.1.4 10.244.1.2"},
		{"", "10.244.1.2 10.244.1.4"},
		{"", "10.244.1.4 10.244.1.2"},
		{"web-0", "10.244.1.2"},
		{"web-1", "-"},
		{"10-244-1-4", "10.244.1.4"},
		{"10-244-1-2", "-"},
		{"web-2", "-"},
	} {
		if got := look(table, name{endpoint: test.endpoint}); got != test.want {
			t.Errorf("%q: %q, want %q", test.endpoint, got, test.want)
		}
	}
	s = s.DeepCopy()
	s.Spec.PublishNotReadyAddresses = true
	table.setService(s)
	if got := look(table, name{endpoint: "web-1"}); got != "10.244.1.3" {
		t.Errorf("one that is published without being ready: %q", got)
	}
	// A Service with a ClusterIP has names for its endpoints too.
	table = filled(web("10.96.1.1"), slices...)
	if got := look(table, name{endpoint: "web-0"}); got != "10.244.1.2" {
		t.Errorf("got %q", got)
	}
}

func TestExternalName(t *testing.T) {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
	}
	found, ok := filled(s).find(name{service: "web", namespace: "shop"}, 80)
	if !ok || found.kind != isAlias || found.alias != "example.com" {
		t.Errorf("got %+v, %v", found, ok)
	}
}
