package network

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
)

// handleTrusted serves the socket: nodes send the client's identity, the API server does not. Pods also look up names
// there.
func (h *Hub) handleTrusted(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && !isForProxy(r) && r.URL.Path == lookupPath {
		h.handleLookup(w, r)
		return
	}
	h.handle(w, r, clientOf(r.Header))
}

// handleUser serves the TCP port, which requires the password.
func (h *Hub) handleUser(w http.ResponseWriter, r *http.Request) {
	from, known := h.authenticate(r)
	if !known && isForProxy(r) {
		w.Header().Set("Proxy-Authenticate", `Basic realm="operator-lab"`)
		http.Error(w, "this proxy wants the user name and the password that the sandbox printed with its address",
			http.StatusProxyAuthRequired)
		return
	}
	h.handle(w, r, from)
}

// authenticate finds out who asks.
func (h *Hub) authenticate(r *http.Request) (client, bool) {
	user, password, ok := proxyAuth(r)
	got, want := sha256.Sum256([]byte(password)), sha256.Sum256([]byte(h.options.Password))
	if !ok || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		return client{}, false
	}
	if user == proxyUser {
		return client{}, true
	}
	return parsePodUser(user)
}

// proxyAuth reads the proxy's credentials, which have the form of any others.
func proxyAuth(r *http.Request) (user, password string, ok bool) {
	as := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	return as.BasicAuth()
}

// isForProxy reports whether a request is of a form that only proxies get.
func isForProxy(r *http.Request) bool { return r.Method == http.MethodConnect || r.URL.IsAbs() }

func (h *Hub) handle(w http.ResponseWriter, r *http.Request, from client) {
	switch {
	case r.Method == http.MethodConnect:
		serveTunnel(w, r, &h.lot, from, h.dial)
	case !isForProxy(r):
		http.Error(w, "this is the proxy into the cluster's network, not a web server; use it like this:\n"+
			"  curl -x http://"+proxyUser+":PASSWORD@"+h.proxy.String()+" http://SERVICE.NAMESPACE.svc:PORT/",
			http.StatusBadRequest)
	case !strings.EqualFold(r.URL.Scheme, "http") || r.URL.Host == "":
		http.Error(w, "this proxy forwards http:// only; for everything else it is asked to CONNECT", http.StatusBadRequest)
	default:
		h.forwards.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), clientKey{}, from)))
	}
}

// clientKey is the context key of the client, for the dialler.
type clientKey struct{}

// forwarder forwards absolute requests. Each uses a new connection, whose destination is chosen anew, so that the next
// request sees a change of a Service.
func (h *Hub) forwarder() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			// The request is passed on unchanged: this is not a reverse proxy of one server.
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if values, has := r.In.Header[name]; has {
					r.Out.Header[name] = values
				}
			}
		},
		Transport: &http.Transport{
			DialContext:        h.dialForward,
			DisableKeepAlives:  true,
			DisableCompression: true,
		},
		FlushInterval: -1,                         // at once
		ErrorLog:      log.New(io.Discard, "", 0), // the client gets the error
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			// This lets clients tell it from an answer of the server (RFC 9209).
			w.Header().Set("Proxy-Status", "operator-lab; error=destination_unavailable")
			http.Error(w, oneLine(Explain(err)), http.StatusBadGateway)
		},
	}
}

func (h *Hub) dialForward(ctx context.Context, _, address string) (net.Conn, error) {
	from, _ := ctx.Value(clientKey{}).(client)
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	return h.join(h.dial(ctx, address, from))
}
