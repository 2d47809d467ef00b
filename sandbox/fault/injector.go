package fault

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

	"github.com/operator-lab/operator-lab/sandbox/apirequest"
	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// Injector is the injector of one run of one operator. All methods may be called from any goroutine.
type Injector struct {
	faults   *Faults
	operator string

	isDead atomic.Bool   // like dead, without a channel operation
	dead   chan struct{} // closed when the operator dies

	mu    sync.Mutex
	dying bool              // it is being killed, or dead
	kill  func()            // see OnDie; may be nil
	flows map[flow]struct{} // the answers that the operator is still reading; nil once it is dead
}

// flow is an answer that may last as long as the operator.
type flow interface {
	// end ends the flow, from any goroutine: reads return err.
	end(err error)
}

// Injector returns an injector for one run of an operator. When that run is over, call [Injector.Die].
func (f *Faults) Injector(operator string) *Injector {
	in := &Injector{faults: f, operator: operator, dead: make(chan struct{}), flows: map[flow]struct{}{}}
	f.mu.Lock()
	f.injectors[in] = struct{}{}
	f.mu.Unlock()
	return in
}

// Wrap returns a transport that injects faults; next reaches the API server. It must be the innermost wrapper of a
// rest.Config except for those that authenticate, so that observers of the operator see what the operator sees.
func (in *Injector) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{injector: in, next: next}
}

// Die ends the operator's run: nothing passes from now on. Watches are cut, pending answers are lost, a request that
// belongs to a reconcile ends its goroutine, and any other one fails.
func (in *Injector) Die() { in.die() }

// Dead returns a channel that is closed when the operator's run has ended, by a fault or by [Injector.Die].
func (in *Injector) Dead() <-chan struct{} { return in.dead }

// IsDead reports the same. It waits for an end that is under way: the process may be gone already.
func (in *Injector) IsDead() bool {
	in.mu.Lock()
	dying := in.dying
	in.mu.Unlock()
	if dying {
		<-in.dead
	}
	return dying
}

// OnDie has kill called when the operator's run ends, before a connection is closed or a call fails: a process that is to
// crash must not see any of that. If the run has ended already, kill is called at once.
func (in *Injector) OnDie(kill func()) {
	in.mu.Lock()
	dying := in.dying
	in.kill = kill
	in.mu.Unlock()
	if dying {
		kill()
	}
}

// die does what Die says and reports whether the operator was alive. When it returns, the operator is dead.
func (in *Injector) die() bool {
	in.mu.Lock()
	if in.dying {
		in.mu.Unlock()
		<-in.dead // what the caller does next, the operator must not see
		return false
	}
	in.dying = true
	kill := in.kill
	in.mu.Unlock()
	if kill != nil {
		kill() // it may take seconds, in which the operator's answers go on
	}
	in.mu.Lock()
	in.isDead.Store(true)
	close(in.dead)
	flows := in.flows
	in.flows = nil
	in.mu.Unlock()
	in.faults.mu.Lock()
	delete(in.faults.injectors, in)
	in.faults.mu.Unlock()
	for s := range flows {
		s.end(io.ErrUnexpectedEOF)
	}
	return true
}

// open registers an answer that is cut when the operator dies; false if it is dead already.
func (in *Injector) open(s flow) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.flows == nil {
		return false
	}
	in.flows[s] = struct{}{}
	return true
}

func (in *Injector) forget(s flow) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.flows, s)
}

// ending ends a request of a dead operator: in a reconcile it ends the goroutine, else it returns errDead.
func (in *Injector) ending(req *http.Request) error {
	if req.Body != nil {
		_ = req.Body.Close() // a RoundTripper has to, and nothing can be done about its error
	}
	if controller.ReconcileIDFromContext(req.Context()) != "" {
		runtime.Goexit()
	}
	return errDead
}

// transport is the injector's http.RoundTripper.
type transport struct {
	injector *Injector
	next     http.RoundTripper
}

// WrappedRoundTripper lets client-go reach the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip is part of http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	in := t.injector
	if in.isDead.Load() {
		return nil, in.ending(req)
	}
	armed := in.faults.armed.Load()
	if len(armed.waiting) > 0 && in.crashWaiting(armed) {
		return nil, in.ending(req)
	}
	if apirequest.IsWatch(req) {
		return t.watch(req)
	}
	if v := in.viewOf(armed, req); v != nil && v.allowed(req.URL.Query()) {
		v.counts()
		req = v.list(req)
	}
	if len(armed.calls) == 0 {
		return t.pass(req)
	}
	c := newCall(req)
	if c == nil {
		return t.pass(req)
	}
	injections := t.injections(armed, c)
	if len(injections) == 0 {
		return t.pass(c.req)
	}
	return t.carryOut(c, injections)
}

// pass sends a request that no fault matches.
func (t *transport) pass(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if t.injector.isDead.Load() {
		t.lose(newCall(req), resp, &matcher{})
		return nil, t.injector.ending(req)
	}
	if err == nil && endless(req, resp) {
		t.injector.follow(resp)
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
func (in *Injector) follow(resp *http.Response) {
	p := &pipe{injector: in, ReadCloser: resp.Body}
	resp.Body = p
	if rw, ok := p.ReadCloser.(io.ReadWriteCloser); ok {
		resp.Body = &duplex{pipe: p, Writer: rw}
	}
	if !in.open(p) {
		p.end(errDead)
	}
}

// pipe is an answer that is passed on unread.
type pipe struct {
	io.ReadCloser
	injector *Injector
}

func (p *pipe) end(error) { _ = p.ReadCloser.Close() }

// Close is part of io.Closer.
func (p *pipe) Close() error {
	p.injector.forget(p)
	return p.ReadCloser.Close()
}

// duplex is the connection of an upgraded request.
type duplex struct {
	*pipe
	io.Writer
}

type reconcileKey struct{}

// WithReconcile marks a request that came from another process: of finds the reconcile that it belongs to, zero if it
// belongs to none. It is called only when a fault happens to the request, because it may have to wait.
func WithReconcile(ctx context.Context, of func() trace.ReconcileRef) context.Context {
	return context.WithValue(ctx, reconcileKey{}, of)
}

// reconcileOf returns the reconcile that a request belongs to, and words for it for a message.
func (in *Injector) reconcileOf(ctx context.Context) (r trace.ReconcileRef, words string) {
	if of, ok := ctx.Value(reconcileKey{}).(func() trace.ReconcileRef); ok {
		if r = of(); r == (trace.ReconcileRef{}) {
			return r, ""
		}
	} else {
		if controller.ReconcileIDFromContext(ctx) == "" {
			return r, ""
		}
		if f := in.faults.options.ReconcileOf; f != nil {
			r = f(ctx, in.operator)
		}
	}
	if r.ID == 0 {
		return r, " in a reconcile"
	}
	return r, fmt.Sprintf(" in reconcile #%d", r.ID)
}

// callEvent describes a call that a fault happens at.
func (in *Injector) callEvent(c *call, m *matcher) trace.Event {
	kind := in.faults.callKind(c)
	if kind == "" {
		kind = c.Resource
		if m.kind != "" && m.kind != c.Resource {
			kind = m.shownKind
		}
	}
	r, words := in.reconcileOf(c.req.Context())
	e := trace.Event{
		Operator: in.operator, Controller: r.Controller, Key: r.Key, Reconcile: r.ID, Verb: c.verb, Object: c.ref(kind),
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
