package network

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// ErrPortTaken is returned if another process listens on the requested port.
var ErrPortTaken = errors.New("the port is taken")

// proxyUser is the user at the proxy for everybody but pods.
const proxyUser = "lab"

// HubOptions configures a hub.
type HubOptions struct {
	// APIServer is the address of the API server on this machine, as host:port. The name kubernetes.default resolves to
	// it.
	APIServer string
	// ProxyPort is the port of the HTTP proxy on 127.0.0.1; 0 means any.
	ProxyPort int
	// Password of the proxy; default: a random one.
	Password string
}

// Hub is the cluster's part of the pod network: Services, names, and the ways in. All methods may be called from any
// goroutine.
type Hub struct {
	plan     Plan
	options  HubOptions
	proxy    *net.TCPAddr
	table    atomic.Pointer[table]
	servers  []*http.Server
	forwards http.Handler
	lot      lot

	mu    sync.Mutex
	watch func() // ends the watch under way
}

// OpenHub serves the hub's socket, and a proxy on 127.0.0.1. Services are known once [Hub.Watch] has returned.
//
// Both are HTTP proxies, for absolute requests and CONNECT. The proxy on 127.0.0.1 requires a user and a password; the
// user identifies the client: a pod, see [Pod.Proxy], or anybody else. The socket requires none: the mode of its
// directory protects it.
func OpenHub(p Plan, o HubOptions) (*Hub, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if o.Password == "" {
		o.Password = strings.ToLower(rand.Text())
	}
	h := &Hub{plan: p, options: o}
	h.table.Store(newTable())
	h.forwards = h.forwarder()
	tcp, err := listenAt(localhost, o.ProxyPort)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("open the cluster's proxy: %w: 127.0.0.1:%d", ErrPortTaken, o.ProxyPort)
	}
	if err != nil {
		return nil, fmt.Errorf("open the cluster's proxy: %w", err)
	}
	h.proxy = tcp.Addr().(*net.TCPAddr)
	unix, err := listenUnix(p.HubSocket())
	if err == nil {
		err = os.WriteFile(p.proxyFile(), []byte(h.ProxyURL()+"\n"), 0o600)
	}
	if err != nil {
		_ = tcp.Close() // the first error counts
		if unix != nil {
			_ = unix.Close()
		}
		return nil, fmt.Errorf("open the cluster's network: %w", err)
	}
	h.servers = []*http.Server{serve(unix, &h.lot, h.handleTrusted), serve(tcp, &h.lot, h.handleUser)}
	return h, nil
}

// ProxyURL returns the URL of the proxy, with credentials: curl -x URL http://web.shop.svc:8080.
func (h *Hub) ProxyURL() string {
	return (&url.URL{Scheme: "http", User: url.UserPassword(proxyUser, h.options.Password), Host: h.proxy.String()}).String()
}

// ProxyEnvironment makes a program use a proxy, such as that of [Pod.Proxy], for all but this machine's own addresses.
func ProxyEnvironment(proxy string) []string {
	const none = "127.0.0.1,127.0.0.0/8,localhost,::1"
	var env []string
	for _, name := range []string{"http_proxy", "https_proxy"} {
		env = append(env, name+"="+proxy, strings.ToUpper(name)+"="+proxy)
	}
	return append(env, "no_proxy="+none, "NO_PROXY="+none)
}

// Close ends everything: the watch, the servers, and all connections through them.
func (h *Hub) Close() error {
	h.mu.Lock()
	stop := h.watch
	h.watch = nil
	h.mu.Unlock()
	if stop != nil {
		stop()
	}
	first := h.lot.end()
	var errs []error
	for _, server := range h.servers {
		errs = append(errs, server.Close())
	}
	h.lot.work.Wait()
	if first {
		errs = append(errs, os.Remove(h.plan.proxyFile()))
	}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, os.ErrNotExist) })...)
}

// DialContext connects to pods, Services by name or ClusterIP, nodes and hosts outside. The network is tcp or tcp4.
func (h *Hub) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if !isTCP(network) {
		return nil, other(address, nil, net.UnknownNetworkError(network))
	}
	return h.join(h.dial(ctx, address, client{}))
}

// join makes a connection end with the hub.
func (h *Hub) join(made duplex, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	c := &conn{duplex: made, local: made.LocalAddr(), remote: made.RemoteAddr(), lots: []*lot{&h.lot}}
	if !c.join() {
		return nil, net.ErrClosed
	}
	return c, nil
}
