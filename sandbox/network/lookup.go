package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// lookupPath is the path on the hub's socket at which pods look up the addresses of a name.
const lookupPath = "/lookup"

// LookupHost resolves a name as the cluster's DNS does for the pod: a Service to its ClusterIP, a headless Service and
// its pods to the addresses of the ready endpoints, a node to its address, and any other name as this machine does. The
// error for an unknown name is a [*net.DNSError].
func (p *Pod) LookupHost(ctx context.Context, host string) ([]string, error) {
	socket := p.address.node.plan.HubSocket()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}
	query := url.Values{"name": {host}, "namespace": {p.namespace}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://hub"+lookupPath+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("look %s up: %w", host, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1024)) // as much as could be read
		return nil, &net.DNSError{Err: strings.TrimSpace(string(text)), Name: host, Server: DNSServerIP, IsTemporary: true}
	}
	var addresses []string
	if err := json.NewDecoder(response.Body).Decode(&addresses); err != nil {
		return nil, fmt.Errorf("look %s up: %w", host, err)
	}
	if len(addresses) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: DNSServerIP, IsNotFound: true}
	}
	return addresses, nil
}

// handleLookup answers LookupHost with a list, which is empty where the name is not known.
func (h *Hub) handleLookup(w http.ResponseWriter, r *http.Request) {
	namespace := r.FormValue("namespace")
	if namespace == "" {
		namespace = defaultNamespace
	}
	addresses, err := h.lookup(r.Context(), r.FormValue("name"), namespace, maxAliases)
	if unknown, is := errors.AsType[*net.DNSError](err); err != nil && (!is || !unknown.IsNotFound) {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	_ = json.NewEncoder(w).Encode(addresses) // the client may be gone
}

func (h *Hub) lookup(ctx context.Context, host, namespace string, aliases int) ([]string, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []string{a.String()}, nil
	}
	names, isOutside := meanings(host, namespace)
	for _, name := range names {
		if name.address.IsValid() {
			return []string{name.address.String()}, nil
		}
		found, ok := h.table.Load().find(name, 0)
		switch {
		case !ok:
		case found.kind == isAlias && aliases > 0:
			return h.lookup(ctx, found.alias, namespace, aliases-1)
		case found.kind == isAlias:
			return nil, nil
		case found.kind == isHosts:
			return texts(found.hosts), nil
		default:
			return []string{found.ip.String()}, nil
		}
	}
	if n, is := nodeNumber(strings.ToLower(host)); is {
		return []string{h.plan.NodeIP(n)}, nil
	}
	if !isOutside {
		return nil, nil
	}
	return net.DefaultResolver.LookupHost(ctx, host)
}

func texts(addresses []netip.Addr) []string {
	out := make([]string, len(addresses))
	for i, a := range addresses {
		out[i] = a.String()
	}
	return out
}
