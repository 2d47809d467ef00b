package gate

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Gate is the gate of one run of one operator. All methods may be called from any goroutine.
type Gate struct {
	faults   *Faults
	operator string

	isDead atomic.Bool   // like dead, without a channel operation
	dead   chan struct{} // closed when the operator dies

	mu    sync.Mutex
	flows map[flow]struct{} // the answers that the operator is still reading; nil once it is dead
}

// flow is an answer that may last as long as the operator.
type flow interface {
	// end ends the flow, from any goroutine: reads return err.
	end(err error)
}

// Gate returns a gate for one run of an operator. When that run is over, call [Gate.Die].
func (f *Faults) Gate(operator string) *Gate {
	g := &Gate{faults: f, operator: operator, dead: make(chan struct{}), flows: map[flow]struct{}{}}
	f.mu.Lock()
	f.gates[g] = struct{}{}
	f.mu.Unlock()
	return g
}

// Wrap returns a transport that injects faults; next reaches the API server. It must be the innermost wrapper of a
// rest.Config except for those that authenticate, so that observers of the operator see what the operator sees.
func (g *Gate) Wrap(next http.RoundTripper) http.RoundTripper { return &transport{gate: g, next: next} }

// Die ends the operator's run: nothing passes from now on. Watches are cut, pending answers are lost, a request that
// belongs to a reconcile ends its goroutine, and any other one fails.
func (g *Gate) Die() { g.die() }

// die does what Die says and reports whether the operator was alive.
func (g *Gate) die() bool {
	g.mu.Lock()
	if g.isDead.Load() {
		g.mu.Unlock()
		return false
	}
	g.isDead.Store(true)
	close(g.dead)
	flows := g.flows
	g.flows = nil
	g.mu.Unlock()
	g.faults.mu.Lock()
	delete(g.faults.gates, g)
	g.faults.mu.Unlock()
	for s := range flows {
		s.end(io.ErrUnexpectedEOF)
	}
	return true
}

// open registers an answer that is cut when the operator dies; false if it is dead already.
func (g *Gate) open(s flow) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flows == nil {
		return false
	}
	g.flows[s] = struct{}{}
	return true
}

func (g *Gate) forget(s flow) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.flows, s)
}

// ending ends a request of a dead operator: in a reconcile it ends the goroutine, else it returns errDead.
func (g *Gate) ending(req *http.Request) error {
	if req.Body != nil {
		_ = req.Body.Close() // a RoundTripper has to, and nothing can be done about its error
	}
	if controller.ReconcileIDFromContext(req.Context()) != "" {
		runtime.Goexit()
	}
	return errDead
}

// transport is the gate's http.RoundTripper.
type transport struct {
	gate *Gate
	next http.RoundTripper
}

// WrappedRoundTripper lets client-go reach the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip is part of http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	g := t.gate
	if g.isDead.Load() {
		return nil, g.ending(req)
	}
	armed := g.faults.armed.Load()
	if len(armed.waiting) > 0 && g.crashWaiting(armed) {
		return nil, g.ending(req)
	}
	if isWatch(req) {
		return t.watch(req)
	}
	if len(armed.calls) == 0 {
		return t.pass(req)
	}
	c := newCall(req)
	if c == nil {
		return t.pass(req)
	}
	shots := t.shots(armed, c)
	if len(shots) == 0 {
		return t.pass(c.req)
	}
	return t.carryOut(c, shots)
}

// pass sends a request that no fault matches.
func (t *transport) pass(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if t.gate.isDead.Load() {
		drop(resp)
		return nil, t.gate.ending(req)
	}
	if err == nil && endless(req, resp) {
		t.gate.follow(resp)
	}
	return resp, err
}

// endless reports whether an answer other than a watch may last as long as the operator.
func endless(req *http.Request, resp *http.Response) bool {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return true
	}
	return resp.ContentLength < 0 && (strings.HasSuffix(req.URL.Path, "/log") || strings.Contains(req.URL.Path, "/proxy"))
}

// drop closes an answer that the operator does not get.
func drop(resp *http.Response) {
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
}

// follow makes sure that an answer is cut when the operator dies.
func (g *Gate) follow(resp *http.Response) {
	p := &pipe{gate: g, ReadCloser: resp.Body}
	resp.Body = p
	if rw, ok := p.ReadCloser.(io.ReadWriteCloser); ok {
		resp.Body = &duplex{pipe: p, Writer: rw}
	}
	if !g.open(p) {
		p.end(errDead)
	}
}

// pipe is an answer that is passed on unread.
type pipe struct {
	io.ReadCloser
	gate *Gate
}

func (p *pipe) end(error) { _ = p.ReadCloser.Close() }

// Close is part of io.Closer.
func (p *pipe) Close() error {
	p.gate.forget(p)
	return p.ReadCloser.Close()
}

// duplex is the connection of an upgraded request.
type duplex struct {
	*pipe
	io.Writer
}

// visit returns the reconcile that a request belongs to, and words for it for a message.
func (g *Gate) visit(ctx context.Context) (v Visit, words string) {
	if controller.ReconcileIDFromContext(ctx) == "" {
		return Visit{}, ""
	}
	if f := g.faults.options.Visit; f != nil {
		v = f(ctx, g.operator)
	}
	if v.Reconcile == 0 {
		return v, " in a reconcile"
	}
	return v, fmt.Sprintf(" in reconcile #%d", v.Reconcile)
}

// callEvent describes a call that a fault happens at.
func (g *Gate) callEvent(c *call, m *matcher) trace.Event {
	kind := g.faults.callKind(c)
	if kind == "" {
		kind = c.Resource
		if m.kind != "" && m.kind != c.Resource {
			kind = m.shownKind
		}
	}
	v, words := g.visit(c.req.Context())
	e := trace.Event{
		Operator: g.operator, Controller: v.Controller, Key: v.Key, Reconcile: v.Reconcile, Verb: c.verb, Object: c.ref(kind),
	}
	e.Message = c.verb + " " + objectText(e.Object) + words
	return e
}

// objectText names an object with its namespace.
func objectText(r trace.Ref) string {
	s := strings.TrimSpace(r.Kind + " " + r.Key().String())
	if r.Subresource != "" {
		s += " (" + r.Subresource + ")"
	}
	return s
}
