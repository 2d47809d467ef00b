package network

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// key names a Service.
type key struct{ namespace, name string }

// table holds the Services and endpoints that the API reports.
type table struct {
	mu        sync.Mutex
	services  map[key]*service
	slices    map[key]map[string]*discoveryv1.EndpointSlice // by Service, and then by their own names
	byIP      map[netip.Addr]*service
	nodePorts map[int]*port
}

func newTable() *table {
	return &table{
		services: map[key]*service{}, slices: map[key]map[string]*discoveryv1.EndpointSlice{},
		byIP: map[netip.Addr]*service{}, nodePorts: map[int]*port{},
	}
}

// service is a Service.
type service struct {
	key

	object *corev1.Service
	// ip is its ClusterIP; not valid if it has none, as headless ones do.
	ip    netip.Addr
	ports []*port
	// hosts are its endpoints as the cluster's DNS knows them.
	hosts []host
	turn  int
}

// port is a port of a Service.
type port struct {
	service *service
	name    string
	number  int
	node    int // the node port; 0 if it has none
	// endpoints receive connections in turn.
	endpoints []netip.AddrPort
	turn      int
	stuck     map[netip.Addr]stuck
}

// stuck is the endpoint of a client with session affinity.
type stuck struct {
	to   netip.AddrPort
	last time.Time
}

// host is an endpoint that DNS knows.
type host struct {
	name    string
	address netip.Addr
}

// setService takes over a Service as it is now.
func (t *table) setService(object *corev1.Service) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := key{object.Namespace, object.Name}
	before := t.services[k]
	t.drop(before)
	s := &service{key: k, object: object}
	for _, p := range object.Spec.Ports {
		if cmp.Or(p.Protocol, corev1.ProtocolTCP) != corev1.ProtocolTCP {
			continue
		}
		added := &port{service: s, name: p.Name, number: int(p.Port), node: int(p.NodePort)}
		added.inherit(before)
		s.ports = append(s.ports, added)
		if added.node != 0 {
			t.nodePorts[added.node] = added
		}
	}
	for _, text := range append([]string{object.Spec.ClusterIP}, object.Spec.ClusterIPs...) {
		if ip, err := netip.ParseAddr(text); err == nil && ip.Is4() {
			s.ip = ip
			t.byIP[ip] = s
		}
	}
	t.services[k] = s
	s.connect(t.slices[k])
}

// inherit continues the round robin and the affinity of the port of the same name before the change.
func (p *port) inherit(before *service) {
	if before == nil {
		return
	}
	for _, old := range before.ports {
		if old.name == p.name {
			p.turn, p.stuck = old.turn, old.stuck
		}
	}
}

func (t *table) deleteService(k key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(t.services[k])
}

// drop removes a Service, but keeps addresses and ports that another Service has taken over.
func (t *table) drop(s *service) {
	if s == nil {
		return
	}
	delete(t.services, s.key)
	if t.byIP[s.ip] == s {
		delete(t.byIP, s.ip)
	}
	for _, p := range s.ports {
		if t.nodePorts[p.node] == p {
			delete(t.nodePorts, p.node)
		}
	}
}

// ofSlice returns the key of the slice's Service.
func ofSlice(slice *discoveryv1.EndpointSlice) key {
	return key{slice.Namespace, slice.Labels[discoveryv1.LabelServiceName]}
}

// setSlice takes over a slice as it is now.
func (t *table) setSlice(slice *discoveryv1.EndpointSlice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := ofSlice(slice)
	if t.slices[k] == nil {
		t.slices[k] = map[string]*discoveryv1.EndpointSlice{}
	}
	t.slices[k][slice.Name] = slice
	if s := t.services[k]; s != nil {
		s.connect(t.slices[k])
	}
}

func (t *table) deleteSlice(slice *discoveryv1.EndpointSlice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := ofSlice(slice)
	delete(t.slices[k], slice.Name)
	if len(t.slices[k]) == 0 {
		delete(t.slices, k)
	}
	if s := t.services[k]; s != nil {
		s.connect(t.slices[k])
	}
}

// connect finds the endpoints of a Service's ports, and its hosts.
func (s *service) connect(of map[string]*discoveryv1.EndpointSlice) {
	for _, p := range s.ports {
		p.endpoints = endpointsOf(p.name, of)
	}
	s.hosts = nil
	for _, slice := range of {
		if slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		for _, e := range slice.Endpoints {
			if isReady(e) || s.object.Spec.PublishNotReadyAddresses {
				s.hosts = appendHosts(s.hosts, e)
			}
		}
	}
	slices.SortFunc(s.hosts, func(a, b host) int {
		return cmp.Or(a.address.Compare(b.address), strings.Compare(a.name, b.name))
	})
	s.hosts = slices.Compact(s.hosts)
}

// appendHosts names an endpoint as DNS does: by its own host name, or after its address.
func appendHosts(hosts []host, e discoveryv1.Endpoint) []host {
	for _, text := range e.Addresses {
		ip, err := netip.ParseAddr(text)
		if err != nil || !ip.Is4() {
			continue
		}
		name := strings.ReplaceAll(text, ".", "-")
		if e.Hostname != nil && *e.Hostname != "" {
			name = *e.Hostname
		}
		hosts = append(hosts, host{name, ip})
	}
	return hosts
}

// endpointsOf returns the endpoints of a port: the ready ones, or, if there are none, those that are terminating but
// still serving, as kube-proxy does.
func endpointsOf(portName string, of map[string]*discoveryv1.EndpointSlice) []netip.AddrPort {
	var ready, ending []netip.AddrPort
	for _, slice := range of {
		number := slicePort(portName, slice)
		if number == 0 {
			continue
		}
		for _, e := range slice.Endpoints {
			if len(e.Addresses) == 0 {
				continue
			}
			ip, err := netip.ParseAddr(e.Addresses[0]) // the others have no meaning
			if err != nil || !ip.Is4() {
				continue
			}
			switch at := netip.AddrPortFrom(ip, number); {
			case isReady(e):
				ready = append(ready, at)
			case isEnding(e):
				ending = append(ending, at)
			}
		}
	}
	if len(ready) == 0 {
		ready = ending
	}
	slices.SortFunc(ready, netip.AddrPort.Compare)
	return slices.Compact(ready)
}

// slicePort returns the port of the slice's endpoints for the Service port of that name; 0 if it has none. The slice
// already holds the resolved targetPort.
func slicePort(name string, slice *discoveryv1.EndpointSlice) uint16 {
	if slice.AddressType != discoveryv1.AddressTypeIPv4 {
		return 0
	}
	for _, p := range slice.Ports {
		if p.Port == nil || p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP {
			continue
		}
		if p.Name == nil && name == "" || p.Name != nil && *p.Name == name {
			return uint16(*p.Port)
		}
	}
	return 0
}

func isReady(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready }

func isEnding(e discoveryv1.Endpoint) bool {
	serving := e.Conditions.Serving == nil || *e.Conditions.Serving
	return serving && e.Conditions.Terminating != nil && *e.Conditions.Terminating
}

// pick returns the next endpoint, or the client's last one with session affinity; false if there is none.
func (p *port) pick(from netip.Addr, now time.Time) (netip.AddrPort, bool) {
	if len(p.endpoints) == 0 {
		return netip.AddrPort{}, false
	}
	patience := p.service.affinity()
	if patience > 0 && from.IsValid() {
		if was, ok := p.stuck[from]; ok && now.Sub(was.last) < patience && slices.Contains(p.endpoints, was.to) {
			p.stuck[from] = stuck{was.to, now}
			return was.to, true
		}
	}
	to := p.endpoints[p.turn%len(p.endpoints)]
	p.turn = (p.turn + 1) % len(p.endpoints)
	if patience > 0 && from.IsValid() {
		if p.stuck == nil {
			p.stuck = map[netip.Addr]stuck{}
		}
		p.stuck[from] = stuck{to, now} // one for each pod and node: there are few
	}
	return to, true
}

// affinity returns how long a client keeps its endpoint after its last connection; 0 without session affinity.
func (s *service) affinity() time.Duration {
	spec := &s.object.Spec
	if spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	seconds := corev1.DefaultClientIPServiceAffinitySeconds
	if c := spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		seconds = *c.ClientIP.TimeoutSeconds
	}
	return time.Duration(seconds) * time.Second
}

// port finds a port by its number.
func (s *service) port(number int) *port {
	for _, p := range s.ports {
		if p.number == number {
			return p
		}
	}
	return nil
}

// portList is for errors.
func (s *service) portList() string {
	numbers := make([]string, 0, len(s.ports))
	for _, p := range s.ports {
		numbers = append(numbers, fmt.Sprint(p.number))
	}
	return cmp.Or(strings.Join(numbers, ", "), "none")
}
