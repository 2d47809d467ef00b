//go:build go1.23

package taps

import (
	"context"
	"net/http"

	"github.com/operator-lab/operator-lab/sandbox/trace"
)

// wire is the transport to the API server. It marks the client's calls as sent, and records what did not come from the
// client: within reconciles everything, outside of them writes and reads of one object.
type wire struct {
	taps *Taps
	next http.RoundTripper
}

// WrappedRoundTripper lets client-go reach the transport below.
func (w *wire) WrappedRoundTripper() http.RoundTripper { return w.next }

// wiredKey marks the context of a request that a wire has.
type wiredKey struct{}

// RoundTrip is part of http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Context().Value(wiredKey{}) != nil { // by the wire of a config that this one was made from
		return w.next.RoundTrip(req)
	}
	req = req.WithContext(context.WithValue(req.Context(), wiredKey{}, true))
	if c := callOf(req.Context()); c != nil {
		return w.sent(c, req)
	}
	x := w.taps.exchange(w.next, req)
	switch {
	case x.isMachinery(), x.verb == trace.VerbWatch:
		return w.next.RoundTrip(req)
	case x.target.Resource == "events":
		return x.sendEvent()
	}
	x.via, x.reconcile = trace.ViaWire, w.taps.reconcileOf(req.Context())
	x.holds = x.reconcile != nil
	if x.holds || x.verb != trace.VerbList {
		return x.send()
	}
	return w.next.RoundTrip(req) // an informer's
}

// sent sends a request of the client.
func (w *wire) sent(c *call, req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.source = trace.Server
	if err != nil {
		return resp, err
	}
	c.status = resp.StatusCode
	// The client discards the answer to a delete, so it is read here.
	if req.Method == http.MethodDelete && resp.StatusCode < http.StatusMultipleChoices {
		c.uid, c.rv = deletedVersion(peekBody(resp))
	}
	return resp, nil
}
