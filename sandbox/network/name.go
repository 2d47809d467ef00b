package network

import (
	"net/netip"
	"slices"
	"strings"
)

// defaultNamespace is the namespace of clients whose namespace is not known.
const defaultNamespace = "default"

// name is the meaning of a name in the cluster's DNS.
type name struct {
	// service and namespace name a Service.
	service, namespace string
	// endpoint, if any, is one pod of the Service: its host name, or its address with dashes.
	endpoint string
	// address is set instead of all these where the name itself contains it, as those of pods do.
	address netip.Addr
}

// meanings lists the possible meanings of a host name, in the order in which the search list of a pod in that namespace
// tries them. If none of them exists, the name is outside the cluster, or, if outside is false, does not exist at all.
//
// It does not handle IP addresses.
func meanings(host, namespace string) (names []name, outside bool) {
	host = strings.ToLower(host)
	host, absolute := strings.CutSuffix(host, ".")
	labels := strings.Split(host, ".")
	if slices.Contains(labels, "") {
		return nil, true
	}
	if inCluster, is := strings.CutSuffix(host, "."+ClusterDomain); is {
		return appendMeaning(nil, strings.Split(inCluster, ".")), false
	}
	if absolute {
		return nil, true
	}
	for _, search := range [][]string{{namespace, "svc"}, {"svc"}, nil} {
		names = appendMeaning(names, slices.Concat(labels, search))
	}
	// No name outside ends like this; asking there would only hide the mistake.
	last := labels[len(labels)-1]
	return names, host != ClusterDomain && (len(labels) == 1 || last != "svc" && last != "pod")
}

// appendMeaning parses a name without the cluster's domain.
func appendMeaning(names []name, labels []string) []name {
	last := len(labels) - 1
	switch {
	case last == 2 && labels[last] == "svc":
		return append(names, name{service: labels[0], namespace: labels[1]})
	case last == 3 && labels[last] == "svc":
		return append(names, name{endpoint: labels[0], service: labels[1], namespace: labels[2]})
	case last == 2 && labels[last] == "pod":
		if a, err := netip.ParseAddr(strings.ReplaceAll(labels[0], "-", ".")); err == nil && a.Is4() {
			return append(names, name{address: a})
		}
	}
	return names
}

// isLocalhost reports whether a name stands for the machine's own loopback address.
func isLocalhost(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
