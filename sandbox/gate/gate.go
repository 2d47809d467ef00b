// Package gate is the API server of an operator in a process of its own: a TLS reverse proxy on loopback, for one
// operator. It takes the operator's requests to the cluster with the credentials that the operator is to have, and lets
// faults and a recorder act on them:
//
//	g, err := gate.Open(gate.Options{Name: "my-operator", Cluster: credentials, Namespace: "default"})
//	g.Use(gate.Run{Injector: faults.Injector("my-operator")})
//	err = os.WriteFile(file, g.Kubeconfig(), 0o600) // KUBECONFIG of the process
//
// Requests with another bearer token, as of a program that acts for several service accounts, are sent with that one.
//
// Watches, logs and upgraded connections (exec, attach, port-forward) are streamed; bodies are kept in memory only where
// a fault or the recorder needs them.
package gate

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/operator-lab/operator-lab/sandbox"
	"github.com/operator-lab/operator-lab/sandbox/certificate"
	"github.com/operator-lab/operator-lab/sandbox/fault"
	"github.com/operator-lab/operator-lab/sandbox/link"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Options are the options of [Open]; Name and Cluster are required.
type Options struct {
	// Name is the operator's name: the user agent of its requests at the API server.
	Name string
	// Cluster has the API server's address and the credentials that the operator acts with.
	Cluster *rest.Config
	// Namespace is that of the kubeconfig's context. Default: "default".
	Namespace string
}

// Run is one run of the operator's process.
type Run struct {
	// Injector injects the faults of this run. When it dies, the gate closes all connections of the run.
	Injector *fault.Injector
	// Wrap puts a recorder between the operator and the injector, such as taps.Recorder. Requests with the header [link.Header]
	// pass beside it: the process that sends them records them itself. Default: none.
	Wrap func(http.RoundTripper) http.RoundTripper
	// ReconcileOf finds the reconcile that a request names in the header [link.Header]. It is called when a fault happens to the
	// request, and may wait. Default: requests belong to no reconcile, and the header means nothing.
	ReconcileOf func(header string) trace.ReconcileRef
}

// Gate is an open gate. All methods may be called from any goroutine.
type Gate struct {
	name       string
	target     *url.URL
	cluster    transports
	address    string
	token      string
	kubeconfig []byte
	server     *http.Server
	background sync.WaitGroup
	closed     chan struct{}
	closeOnce  sync.Once

	mu          sync.Mutex
	run         *run // nil before the first Use
	connections map[*connection]struct{}
}

// run is a [Run] in use.
type run struct {
	handler     http.Handler // of requests with link.Header
	recorded    http.Handler // of all others
	reconcileOf func(string) trace.ReconcileRef
	requests    atomic.Int64
}

// Open opens a gate on a free port of 127.0.0.1. The caller closes it.
func Open(o Options) (*Gate, error) {
	target, _, err := rest.DefaultServerUrlFor(o.Cluster)
	if err != nil {
		return nil, fmt.Errorf("open a gate to the cluster: %w", err)
	}
	cluster, err := newTransports(o.Cluster)
	if err != nil {
		return nil, fmt.Errorf("open a gate to the cluster: %w", err)
	}
	own, authority, err := certificate.ForServer("operator-lab-gate", "127.0.0.1", "localhost")
	if err != nil {
		return nil, fmt.Errorf("make the gate's certificate: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a gate: %w", err)
	}
	g := &Gate{
		name: o.Name, target: target, cluster: cluster, token: rand.Text(), address: "https://" + listener.Addr().String(),
		closed: make(chan struct{}), connections: map[*connection]struct{}{},
	}
	g.kubeconfig, err = sandbox.KubeconfigOf(o.Name, o.Namespace, &rest.Config{
		Host: g.address, BearerToken: g.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: authority},
	})
	if err != nil {
		_ = listener.Close() // nothing was accepted yet
		return nil, fmt.Errorf("write the gate's kubeconfig: %w", err)
	}
	g.server = &http.Server{
		Handler: http.HandlerFunc(g.serve), ConnContext: connContext, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12},
		ErrorLog:  log.New(io.Discard, "", 0), // what a client does wrong it is told itself
	}
	g.background.Go(func() {
		_ = g.server.ServeTLS(&doorway{Listener: listener, gate: g}, "", "") // it ends with Close
	})
	return g, nil
}

// Kubeconfig returns a kubeconfig for the gate, with the gate's certificate authority and the token that stands for the credentials of
// [Options.Cluster]. It is the same for all runs.
func (g *Gate) Kubeconfig() []byte { return g.kubeconfig }

// Address returns the address in the kubeconfig.
func (g *Gate) Address() string { return g.address }

// Use begins a new run of the operator's process: connections of the run before are closed, and those accepted from now
// on belong to the new one.
func (g *Gate) Use(r Run) {
	way := r.Injector.Wrap(g.cluster)
	next := &run{handler: fault.Proxy(g.target, way), reconcileOf: r.ReconcileOf}
	next.recorded = next.handler
	if r.Wrap != nil {
		next.recorded = fault.Proxy(g.target, r.Wrap(way))
	}
	g.mu.Lock()
	before := g.run
	g.run = next
	g.mu.Unlock()
	g.hangUp(before)
	g.background.Go(func() {
		select {
		case <-r.Injector.Dead():
			g.hangUp(next)
		case <-g.closed:
		}
	})
}

// Requests returns how many requests with a token came in this run; zero if the program never asked.
func (g *Gate) Requests() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.run == nil {
		return 0
	}
	return g.run.requests.Load()
}

// Close closes the gate and its connections. Further calls do nothing.
func (g *Gate) Close() (err error) {
	g.closeOnce.Do(func() { err = g.close() })
	return err
}

func (g *Gate) close() error {
	close(g.closed)
	err := g.server.Close()
	g.mu.Lock()
	last := g.run
	g.mu.Unlock()
	g.hangUp(nil)
	g.hangUp(last)
	g.background.Wait()
	g.cluster.closeIdle()
	return err
}

// serve serves one request.
func (g *Gate) serve(w http.ResponseWriter, req *http.Request) {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		refuse(w, apierrors.NewUnauthorized("the gate of operator-lab wants the token in its own kubeconfig, or one of the cluster"))
		return
	}
	r := runOf(req.Context())
	if r == nil {
		w.Header().Set("Connection", "close") // the next connection may belong to a run
		refuse(w, apierrors.NewServiceUnavailable("operator-lab has not begun the run of "+g.name))
		return
	}
	r.requests.Add(1)
	handler, reconcile := r.recorded, req.Header.Get(link.Header)
	if reconcile != "" && r.reconcileOf != nil {
		handler = r.handler
		of := sync.OnceValue(func() trace.ReconcileRef { return r.reconcileOf(reconcile) })
		req = req.WithContext(fault.WithReconcile(req.Context(), of))
	}
	req.Header.Del(link.Header)
	if subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1 {
		req.Header.Del("Authorization")
	}
	req.Header.Set("User-Agent", g.name)
	handler.ServeHTTP(w, req)
}

// refuse answers a request with an error, as the API server does.
func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	raw, failed := json.Marshal(status)
	if failed != nil {
		panic(http.ErrAbortHandler) // a Status can always be marshalled
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(raw) // the client may have gone
}

// transports are the transports to the cluster.
type transports struct {
	own    protocols // with the credentials of [Options.Cluster]
	others protocols // with none: the request has a token
}

// protocols are the transports with the same credentials.
type protocols struct {
	any   http.RoundTripper // HTTP/2 where the API server has it
	http1 http.RoundTripper // for requests that ask for an upgrade, which HTTP/2 does not have
}

func newTransports(cluster *rest.Config) (t transports, err error) {
	if t.own, err = newProtocols(cluster); err != nil {
		return t, err
	}
	t.others, err = newProtocols(rest.AnonymousClientConfig(cluster))
	return t, err
}

func newProtocols(config *rest.Config) (p protocols, err error) {
	if p.any, err = rest.TransportFor(config); err != nil {
		return p, err
	}
	old := rest.CopyConfig(config)
	old.NextProtos = []string{"http/1.1"}
	p.http1, err = rest.TransportFor(old)
	return p, err
}

// RoundTrip is part of http.RoundTripper.
func (t transports) RoundTrip(req *http.Request) (*http.Response, error) {
	p := t.own
	if req.Header.Get("Authorization") != "" {
		p = t.others
	}
	if req.Header.Get("Upgrade") != "" {
		return p.http1.RoundTrip(req)
	}
	return p.any.RoundTrip(req)
}

func (t transports) closeIdle() {
	for _, rt := range []http.RoundTripper{t.own.any, t.own.http1, t.others.any, t.others.http1} {
		utilnet.CloseIdleConnectionsFor(rt)
	}
}

// doorway accepts connections, which from then on belong to the run of that moment.
type doorway struct {
	net.Listener
	gate *Gate
}

// Accept is part of net.Listener.
func (d *doorway) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := d.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	c := &connection{Conn: conn, gate: g, run: g.run}
	g.connections[c] = struct{}{}
	return c, nil
}

// connection is a connection of the operator's process.
type connection struct {
	net.Conn
	gate *Gate
	run  *run // nil if it was accepted before the first
}

// Close is part of net.Conn.
func (c *connection) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.connections, c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// hangUp closes the connections of a run.
func (g *Gate) hangUp(r *run) {
	g.mu.Lock()
	var of []*connection
	for c := range g.connections {
		if c.run == r {
			of = append(of, c)
		}
	}
	g.mu.Unlock()
	for _, c := range of {
		_ = c.Close() // it is of no use any more
	}
}

type runKey struct{}

// connContext puts the run of a connection into the context of its requests.
func connContext(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		if own, ok := t.NetConn().(*connection); ok && own.run != nil {
			return context.WithValue(ctx, runKey{}, own.run)
		}
	}
	return ctx
}

// runOf returns the run that a request belongs to, or nil.
func runOf(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}
