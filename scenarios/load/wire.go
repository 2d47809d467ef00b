package load

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/operator-lab/operator-lab/sandbox/apirequest"
)

// Request names requests of one sort.
type Request struct {
	// Verb is that of the API, such as list; Resource is the plural, with the subresource if there is one.
	Verb, Resource string
}

// Traffic counts requests of one sort, and the bytes of their bodies, as they are without compression.
type Traffic struct {
	// Requests is how many there were; a watch is one, however long it lasts.
	Requests int64
	// Sent and Received are bytes, Received those of the answers as far as they were read.
	Sent, Received int64
}

func (t Traffic) less(o Traffic) Traffic {
	return Traffic{t.Requests - o.Requests, t.Sent - o.Sent, t.Received - o.Received}
}

// wire counts requests of one operator, which is known by its user agent, by their sort.
type wire struct {
	operator string
	mu       sync.Mutex
	sorts    map[Request]*sort
	// watching is how many watches are open.
	watching atomic.Int64
}

// sort is what was counted of one sort of requests.
type sort struct{ requests, sent, received atomic.Int64 }

func newWire(operator string) *wire { return &wire{operator: operator, sorts: map[Request]*sort{}} }

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper { return &counting{w, next} }

// now returns what was counted until now.
func (w *wire) now() map[Request]Traffic {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[Request]Traffic{}
	for r, s := range w.sorts {
		out[r] = Traffic{s.requests.Load(), s.sent.Load(), s.received.Load()}
	}
	return out
}

// opened returns how many watches were opened until now.
func (w *wire) opened() (n int64) {
	for r, t := range w.now() {
		if r.Verb == "watch" {
			n += t.Requests
		}
	}
	return n
}

func (w *wire) of(req *http.Request) *sort {
	target, ok := apirequest.Parse(req.URL.Path)
	if !ok {
		return nil // discovery
	}
	r := Request{apirequest.Verb(req, target), target.Resource}
	if target.Subresource != "" {
		r.Resource += "/" + target.Subresource
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sorts[r] == nil {
		w.sorts[r] = &sort{}
	}
	return w.sorts[r]
}

type counting struct {
	*wire
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (c *counting) RoundTrip(req *http.Request) (*http.Response, error) {
	agent, _, _ := strings.Cut(req.UserAgent(), "/")
	if agent != c.operator {
		return c.next.RoundTrip(req)
	}
	s := c.of(req)
	if s == nil {
		return c.next.RoundTrip(req)
	}
	s.requests.Add(1)
	if req.ContentLength > 0 {
		s.sent.Add(req.ContentLength)
	}
	resp, err := c.next.RoundTrip(req)
	if err == nil {
		body := &countedBody{ReadCloser: resp.Body, n: &s.received}
		if apirequest.IsWatch(req) {
			c.watching.Add(1)
			body.close = sync.OnceFunc(func() { c.watching.Add(-1) })
		}
		resp.Body = body
	}
	return resp, err
}

// WrappedRoundTripper lets client-go reach the transport below.
func (c *counting) WrappedRoundTripper() http.RoundTripper { return c.next }

type countedBody struct {
	io.ReadCloser
	n     *atomic.Int64
	close func() // may be nil
}

// Close is part of [io.Closer].
func (b *countedBody) Close() error {
	if b.close != nil {
		b.close()
	}
	return b.ReadCloser.Close()
}

// Read is part of [io.Reader].
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}
